#include "scenarios/settings/text_internal.h"

#include <string.h>

typedef struct {
    ZpSettingsText *text;
    ZpProblems *problems;
    GHashTable *seen; /* "group" or "group\nkey" to its line */
    gboolean in_group;
    int line;
} Scan;

G_GNUC_PRINTF(3, 4)
static void
complain(Scan *scan, ZpScenarioError code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *where = g_strdup_printf("%s:%d", scan->problems->name, scan->line);
    zp_problems_add(scan->problems, code, where, "%s", what);
}

/* The line where `name` was seen before, or 0; remembers it. */
static int
seen_before(Scan *scan, const char *name)
{
    gpointer line = g_hash_table_lookup(scan->seen, name);
    if (line == NULL)
        g_hash_table_insert(scan->seen, g_strdup(name), GINT_TO_POINTER(scan->line));
    return GPOINTER_TO_INT(line);
}

/* Cuts a comment: '#' at the start or after a blank. */
static void
cut_comment(char *line)
{
    for (char *c = line; *c != '\0'; c++) {
        if (*c == '#' && (c == line || c[-1] == ' ' || c[-1] == '\t')) {
            *c = '\0';
            return;
        }
    }
}

static void
read_group(Scan *scan, char *line)
{
    gsize length = strlen(line);
    char *inner = line + 1;
    scan->in_group = FALSE;
    if (line[length - 1] != ']' || strpbrk(inner, "[]") != line + length - 1) {
        complain(scan, ZP_SCENARIO_ERROR_SYNTAX, "'%s' is not a group: write [name]", line);
        return;
    }
    line[length - 1] = '\0';
    g_strstrip(inner);
    /* Group names are compared, so blanks inside must be alike. */
    for (char *c = inner; *c != '\0'; c++) {
        if (*c == '\t')
            *c = ' ';
    }
    if (*inner == '\0') {
        complain(scan, ZP_SCENARIO_ERROR_SYNTAX, "a group needs a name: write [name]");
        return;
    }
    int before = seen_before(scan, inner);
    if (before > 0) {
        complain(scan, ZP_SCENARIO_ERROR_DUPLICATE,
                 "group [%s] was opened before in line %d; a group stands once in a file", inner,
                 before);
        return;
    }
    ZpSettingsTextGroup group = {g_string_chunk_insert(scan->text->strings, inner), scan->line};
    g_array_append_val(scan->text->groups, group);
    scan->in_group = TRUE;
}

static void
read_entry(Scan *scan, char *line)
{
    char *equals = strchr(line, '=');
    if (equals == NULL || equals == line) {
        complain(scan, ZP_SCENARIO_ERROR_SYNTAX,
                 "'%.60s' is neither a [group], a 'key = value' nor a # comment", line);
        return;
    }
    *equals = '\0';
    char *key = g_strchomp(line), *value = g_strchug(equals + 1);
    if (scan->text->groups->len == 0) {
        complain(scan, ZP_SCENARIO_ERROR_SYNTAX, "key '%.60s' stands before the first [group]",
                 key);
        return;
    }
    if (!scan->in_group) /* of a refused group: one message is enough */
        return;
    guint index = scan->text->groups->len - 1;
    const char *group = g_array_index(scan->text->groups, ZpSettingsTextGroup, index).name;
    g_autofree char *name = g_strconcat(group, "\n", key, NULL);
    int before = seen_before(scan, name);
    if (before > 0) {
        complain(scan, ZP_SCENARIO_ERROR_DUPLICATE,
                 "[%s] %s: was set before in line %d; a key stands once in its group", group, key,
                 before);
        return;
    }
    ZpSettingsTextEntry entry = {index, g_string_chunk_insert(scan->text->strings, key),
                                 g_string_chunk_insert(scan->text->strings, value), scan->line};
    g_array_append_val(scan->text->entries, entry);
}

static gboolean
has_control(const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (g_ascii_iscntrl(*c) && *c != '\t')
            return TRUE;
    }
    return FALSE;
}

static void
read_line(Scan *scan, char *line)
{
    gsize length = strlen(line);
    if (length > 0 && line[length - 1] == '\r')
        line[length - 1] = '\0';
    if (has_control(line)) {
        complain(scan, ZP_SCENARIO_ERROR_SYNTAX, "a control character in the line");
        return;
    }
    cut_comment(line);
    g_strstrip(line);
    if (*line == '[')
        read_group(scan, line);
    else if (*line != '\0')
        read_entry(scan, line);
}

/* What makes reading on pointless. */
static gboolean
check_whole(Scan *scan, const char *text, gsize length)
{
    const char *end = NULL;
    if (length > ZP_SCENARIO_MAX_BYTES) {
        zp_problems_add(scan->problems, ZP_SCENARIO_ERROR_SYNTAX, NULL,
                        "larger than 16 MiB; a scenario is a small text file");
        return FALSE;
    }
    if (!g_utf8_validate_len(text, length, &end)) {
        for (const char *c = text; c < end; c++)
            scan->line += *c == '\n';
        scan->line++;
        complain(scan, ZP_SCENARIO_ERROR_SYNTAX, "not UTF-8 text (byte 0x%02x)",
                 (unsigned)(guchar)*end);
        return FALSE;
    }
    return TRUE;
}

static void
read_lines(Scan *scan, const char *text, gsize length)
{
    static const char byte_order_mark[] = "\xef\xbb\xbf";
    const char *end = text + length;
    if (length >= 3 && memcmp(text, byte_order_mark, 3) == 0)
        text += 3;
    while (text < end && !zp_problems_full(scan->problems)) {
        const char *stop = memchr(text, '\n', (gsize)(end - text));
        gsize n = (gsize)((stop ? stop : end) - text);
        scan->line++;
        if (n > ZP_SCENARIO_MAX_LINE) {
            complain(scan, ZP_SCENARIO_ERROR_SYNTAX, "a line of more than 64 KiB");
            return;
        }
        if (scan->text->entries->len + scan->text->groups->len > ZP_SCENARIO_MAX_ENTRIES) {
            complain(scan, ZP_SCENARIO_ERROR_SYNTAX, "more than %d keys", ZP_SCENARIO_MAX_ENTRIES);
            return;
        }
        g_autofree char *line = g_strndup(text, n);
        read_line(scan, line);
        text += n + (stop != NULL);
    }
}

ZpSettingsText *
zp_settings_text_scan(const char *text, gsize length, ZpProblems *problems)
{
    ZpSettingsText *result = g_new0(ZpSettingsText, 1);
    result->strings = g_string_chunk_new(4096);
    result->groups = g_array_new(FALSE, FALSE, sizeof(ZpSettingsTextGroup));
    result->entries = g_array_new(FALSE, FALSE, sizeof(ZpSettingsTextEntry));
    g_autoptr(GHashTable) seen = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Scan scan = {.text = result, .problems = problems, .seen = seen};
    if (check_whole(&scan, text, length))
        read_lines(&scan, text, length);
    return result;
}

void
zp_settings_text_free(ZpSettingsText *text)
{
    if (text == NULL)
        return;
    g_string_chunk_free(text->strings);
    g_array_unref(text->groups);
    g_array_unref(text->entries);
    g_free(text);
}

gboolean
zp_settings_text_is_value(const char *value)
{
    gsize length = strlen(value);
    return g_utf8_validate(value, -1, NULL) && !has_control(value) && strstr(value, " #") == NULL &&
           strstr(value, "\t#") == NULL && *value != '#' && *value != ' ' && *value != '\t' &&
           length <= ZP_SCENARIO_MAX_LINE / 2 &&
           (length == 0 || (value[length - 1] != ' ' && value[length - 1] != '\t'));
}
