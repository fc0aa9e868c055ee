/* check_inputs_ds DIR...: compares what the importers say about the files of a folder with the
 * folder's README.md.
 *
 * The README holds a table "| file | verdict | what | ... |" with a header line that names the
 * columns.  A verdict is words: "ok", "warn", "error", joined by "+" (ok + warn: a warning;
 * ok + note: ok; ok + deprecated: a warning), with alternatives split by "/" or ",": "ok old /
 * error new" is asked of an old and of the newest version, "ok with world 2, error else" of that
 * world and of another.  Numbers of five digits or more in the "what" column must appear in the
 * report.  Files of a folder without verdicts must be recognised.  Every row has its file and every
 * file (but README.md and expected.txt) its row.  Exit code 0: all hold. */
#include "scenarios/imports/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLD_VERSION "0.14.0"

typedef struct {
    char *file, *verdict, *what;
} Case;

static int failures, checks;

static void
fail(const char *file, const char *text)
{
    printf("FAIL %s: %s\n", file, text);
    failures++;
}

static ZpImportReport *
run(const char *dir, const char *file, const ZpImportContext *context)
{
    g_autofree char *path = g_build_filename(dir, file, NULL);
    g_autoptr(GError) error = NULL;
    ZpImportReport *report = zp_import_check_in(path, context, &error);
    if (!report)
        fail(file, error->message);
    return report;
}

/* One alternative of a verdict cell against one run. */
static void
expect(const char *dir, const char *file, const char *wanted, const ZpImportContext *context)
{
    g_autoptr(ZpImportReport) report = run(dir, file, context);
    if (!report)
        return;
    g_autofree char *lower = g_ascii_strdown(wanted, -1);
    gboolean error = strstr(lower, "error") != NULL;
    gboolean warning = strstr(lower, "warn") || strstr(lower, "deprecated");
    ZpImportVerdict verdict = error     ? ZP_IMPORT_REFUSED
                              : warning ? ZP_IMPORT_SUSPICIOUS
                                        : ZP_IMPORT_OK;
    /* "warn / error" leaves both open. */
    gboolean either = error && warning;
    checks++;
    if (report->verdict == verdict || (either && report->verdict == ZP_IMPORT_SUSPICIOUS))
        return;
    g_autofree char *text = zp_import_report_text(report);
    g_autofree char *line = g_strdup_printf("wanted '%s', got %s\n%s", wanted,
                                            zp_import_message_verdict_name(report->verdict), text);
    fail(file, line);
}

static void
check_verdict(const char *dir, const Case *test)
{
    ZpImportContext context = {0};
    const char *world = strstr(test->verdict, "with world ");
    if (world) {
        g_auto(GStrv) halves = g_strsplit(test->verdict, ",", 2);
        context.deepspeed.world = strtoll(world + strlen("with world "), NULL, 10);
        expect(dir, test->file, halves[0], &context);
        context.deepspeed.world = context.deepspeed.world == 1 ? 2 : 1;
        expect(dir, test->file, halves[1] ? halves[1] : "error", &context);
        return;
    }
    if (!strstr(test->verdict, " old")) {
        expect(dir, test->file, test->verdict, &context);
        return;
    }
    g_auto(GStrv) halves = g_strsplit(test->verdict, "/", 2);
    for (int i = 0; halves[i]; i++) {
        gboolean old = strstr(halves[i], " old") != NULL;
        context.deepspeed.version = old ? OLD_VERSION : NULL;
        /* An old version may take a file with a warning. */
        if (!old) {
            expect(dir, test->file, halves[i], &context);
            continue;
        }
        g_autoptr(ZpImportReport) report = run(dir, test->file, &context);
        checks++;
        for (guint m = 0; report && m < report->messages->list->len; m++) {
            const ZpImportMessage *message = report->messages->list->pdata[m];
            if (message->severity == ZP_IMPORT_ERROR && !strstr(message->text, "unknown key"))
                fail(test->file, "refused for an old version too");
        }
    }
}

/* Figures that the README gives must be in the report. */
static void
check_figures(const char *dir, const Case *test)
{
    g_autoptr(ZpImportReport) report = run(dir, test->file, NULL);
    if (!report)
        return;
    g_autofree char *text = zp_import_report_text(report);
    for (const char *p = test->what; *p;) {
        gsize digits = strspn(p, "0123456789");
        if (digits >= 5) {
            g_autofree char *figure = g_strndup(p, digits);
            checks++;
            if (!strstr(text, figure)) {
                g_autofree char *line = g_strdup_printf("%s is nowhere in the report", figure);
                fail(test->file, line);
            }
        }
        p += digits ? digits : 1;
    }
}

static void
check_places(const char *dir, const Case *test)
{
    g_autoptr(ZpImportReport) report = run(dir, test->file, NULL);
    for (guint m = 0; report && m < report->messages->list->len; m++) {
        const ZpImportMessage *message = report->messages->list->pdata[m];
        checks++;
        if (message->severity == ZP_IMPORT_ERROR && (message->line == 0 || !message->mend))
            fail(test->file, message->text);
    }
    if (report && report->kind == ZP_IMPORT_UNKNOWN)
        fail(test->file, "not recognised");
}

/* Cells of a table line; NULL if it is none. */
static char **
split_row(const char *line)
{
    if (*line != '|')
        return NULL;
    char **cells = g_strsplit(line + 1, "|", -1);
    for (int i = 0; cells[i]; i++)
        g_strstrip(cells[i]);
    return cells;
}

static int
column(char **header, const char *name)
{
    for (int i = 0; header && header[i]; i++)
        if (g_str_has_prefix(header[i], name))
            return i;
    return -1;
}

/* A row of files: neither a header nor the line below it. */
static gboolean
names_a_file(char **cells)
{
    return cells != NULL && cells[0] != NULL && strchr(cells[0], '.') != NULL;
}

static void
check_row(const char *dir, char **header, char **cells, GHashTable *rows)
{
    g_autofree char *file = g_build_filename(dir, cells[0], NULL);
    g_hash_table_add(rows, g_strdup(cells[0]));
    checks++;
    if (!g_file_test(file, G_FILE_TEST_IS_REGULAR)) {
        fail(cells[0], "the README has a row, the folder no such file");
        return;
    }
    if (header == NULL || g_strv_length(cells) < g_strv_length(header)) {
        fail(cells[0], "its row in the README has too few cells");
        return;
    }
    int verdict = column(header, "verdict"), what = column(header, "what");
    Case test = {cells[0], verdict > 0 ? cells[verdict] : NULL, what > 0 ? cells[what] : ""};
    check_places(dir, &test);
    if (!test.verdict)
        return;
    check_verdict(dir, &test);
    check_figures(dir, &test);
}

static void
check_rows_of_files(const char *dir, GHashTable *rows)
{
    g_autoptr(GDir) folder = g_dir_open(dir, 0, NULL);
    const char *name;
    while (folder != NULL && (name = g_dir_read_name(folder)) != NULL) {
        if (strcmp(name, "README.md") == 0 || strcmp(name, "expected.txt") == 0)
            continue;
        checks++;
        if (!g_hash_table_contains(rows, name))
            fail(name, "has no row in the README");
    }
}

static void
check_folder(const char *dir)
{
    g_autofree char *path = g_build_filename(dir, "README.md", NULL);
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(path, &text, NULL, &error)) {
        fail(dir, error->message);
        return;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_auto(GStrv) header = NULL;
    g_autoptr(GHashTable) rows = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (int i = 0; lines[i]; i++) {
        g_auto(GStrv) cells = split_row(lines[i]);
        if (cells && column(cells, "file") == 0) {
            g_strfreev(header);
            header = g_steal_pointer(&cells);
            continue;
        }
        if (names_a_file(cells))
            check_row(dir, header, cells, rows);
    }
    check_rows_of_files(dir, rows);
}

int
main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "--show") == 0) {
        for (int i = 2; i < argc; i++) {
            g_autoptr(GError) error = NULL;
            g_autoptr(ZpImportReport) report = zp_import_check(argv[i], &error);
            g_autofree char *text = report ? zp_import_report_text(report) : NULL;
            printf("%s\n", text ? text : error->message);
        }
        return 0;
    }
    if (argc < 2) {
        fprintf(stderr, "usage: check_inputs_ds DIR... | --show FILE...\n");
        return 2;
    }
    for (int i = 1; i < argc; i++)
        check_folder(argv[i]);
    printf("%d checks, %d failures\n", checks, failures);
    return failures > 0 || checks == 0;
}
