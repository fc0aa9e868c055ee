/* The report as text for people and as JSON for programs. */
#include "scenarios/imports/import.h"

#include <string.h>

#include "scenarios/readers/readers.h"

static void
pad(GString *out, const char *text, glong width)
{
    glong length = g_utf8_strlen(text, -1);
    g_string_append(out, text);
    for (glong i = length; i < width; i++)
        g_string_append_c(out, ' ');
    g_string_append(out, "  ");
}

static void
append_message(GString *out, const char *file, const ZpImportMessage *message)
{
    g_string_append(out, file);
    if (message->line)
        g_string_append_printf(out, ":%d", message->line);
    if (message->line && message->column)
        g_string_append_printf(out, ":%d", message->column);
    g_string_append_printf(out, ": %s: ", zp_import_message_severity_name(message->severity));
    if (*message->key)
        g_string_append_printf(out, "%s: ", message->key);
    g_string_append(out, message->text);
    if (message->mend)
        g_string_append_printf(out, "\n    mend: %s", message->mend);
    g_string_append_c(out, '\n');
}

char *
zp_import_report_text(const ZpImportReport *report)
{
    static const char *const titles[] = {"key", "value", "unit", "effect", "origin"};
    enum { N_COLUMNS = G_N_ELEMENTS(titles) };
    glong widths[N_COLUMNS];
    GString *out = g_string_new(NULL);
    g_string_append_printf(out, "%s: %s file: %s\n", report->messages->file,
                           zp_import_kind_name(report->kind),
                           zp_import_message_verdict_name(report->verdict));
    for (guint i = 0; i < report->messages->list->len; i++)
        append_message(out, report->messages->file, report->messages->list->pdata[i]);
    if (report->rows->len == 0)
        return g_string_free(out, FALSE);
    for (int c = 0; c < N_COLUMNS; c++)
        widths[c] = (glong)strlen(titles[c]);
    for (guint i = 0; i < report->rows->len; i++) {
        const ZpImportRow *row = report->rows->pdata[i];
        const char *cells[N_COLUMNS] = {row->key, row->value, row->unit, row->effect, row->origin};
        for (int c = 0; c < N_COLUMNS; c++)
            widths[c] = MAX(widths[c], g_utf8_strlen(cells[c], -1));
    }
    g_string_append_c(out, '\n');
    for (int c = 0; c < N_COLUMNS; c++)
        pad(out, titles[c], widths[c]);
    g_string_append(out, "remark\n");
    for (guint i = 0; i < report->rows->len; i++) {
        const ZpImportRow *row = report->rows->pdata[i];
        const char *cells[N_COLUMNS] = {row->key, row->value, row->unit, row->effect, row->origin};
        for (int c = 0; c < N_COLUMNS; c++)
            pad(out, cells[c], widths[c]);
        g_string_append_printf(out, "%s%s\n", row->ignored ? "ignored: " : "", row->reason);
    }
    return g_string_free(out, FALSE);
}

static void
add_messages(JsonBuilder *builder, const ZpImportMessages *messages)
{
    zp_json_write_array(builder, "messages");
    for (guint i = 0; i < messages->list->len; i++) {
        const ZpImportMessage *message = messages->list->pdata[i];
        json_builder_begin_object(builder);
        zp_json_write_text(builder, "severity", zp_import_message_severity_name(message->severity));
        zp_json_write_int(builder, "line", message->line);
        zp_json_write_int(builder, "column", message->column);
        zp_json_write_text(builder, "key", message->key);
        zp_json_write_text(builder, "text", message->text);
        zp_json_write_text(builder, "mend", message->mend ? message->mend : "");
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void
add_rows(JsonBuilder *builder, const GPtrArray *rows)
{
    zp_json_write_array(builder, "keys");
    for (guint i = 0; i < rows->len; i++) {
        const ZpImportRow *row = rows->pdata[i];
        json_builder_begin_object(builder);
        zp_json_write_text(builder, "key", row->key);
        zp_json_write_text(builder, "value", row->value);
        zp_json_write_text(builder, "unit", row->unit);
        zp_json_write_text(builder, "effect", row->effect);
        zp_json_write_text(builder, "origin", row->origin);
        zp_json_write_text(builder, "reason", row->reason);
        zp_json_write_int(builder, "line", row->line);
        zp_json_write_bool(builder, "ignored", row->ignored);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

void
zp_import_report_members(const ZpImportReport *report, JsonBuilder *builder)
{
    zp_json_write_text(builder, "file", report->messages->file);
    zp_json_write_text(builder, "kind", zp_import_kind_name(report->kind));
    zp_json_write_text(builder, "verdict", zp_import_message_verdict_name(report->verdict));
    add_messages(builder, report->messages);
    add_rows(builder, report->rows);
}

char *
zp_import_report_json(const ZpImportReport *report)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    zp_import_report_members(report, builder);
    return zp_json_write_finish(builder);
}
