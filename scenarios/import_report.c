/* The report as text for people and as JSON for programs. */
#include "scenarios/import.h"

#include <json-glib/json-glib.h>
#include <string.h>

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
add_text(JsonBuilder *builder, const char *name, const char *text)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_string_value(builder, text);
}

static void
add_number(JsonBuilder *builder, const char *name, gint64 number)
{
    json_builder_set_member_name(builder, name);
    json_builder_add_int_value(builder, number);
}

static void
add_messages(JsonBuilder *builder, const ZpImportMessages *messages)
{
    json_builder_set_member_name(builder, "messages");
    json_builder_begin_array(builder);
    for (guint i = 0; i < messages->list->len; i++) {
        const ZpImportMessage *message = messages->list->pdata[i];
        json_builder_begin_object(builder);
        add_text(builder, "severity", zp_import_message_severity_name(message->severity));
        add_number(builder, "line", message->line);
        add_number(builder, "column", message->column);
        add_text(builder, "key", message->key);
        add_text(builder, "text", message->text);
        add_text(builder, "mend", message->mend ? message->mend : "");
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

static void
add_rows(JsonBuilder *builder, const GPtrArray *rows)
{
    json_builder_set_member_name(builder, "keys");
    json_builder_begin_array(builder);
    for (guint i = 0; i < rows->len; i++) {
        const ZpImportRow *row = rows->pdata[i];
        json_builder_begin_object(builder);
        add_text(builder, "key", row->key);
        add_text(builder, "value", row->value);
        add_text(builder, "unit", row->unit);
        add_text(builder, "effect", row->effect);
        add_text(builder, "origin", row->origin);
        add_text(builder, "reason", row->reason);
        add_number(builder, "line", row->line);
        json_builder_set_member_name(builder, "ignored");
        json_builder_add_boolean_value(builder, row->ignored);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
}

void
zp_import_report_members(const ZpImportReport *report, JsonBuilder *builder)
{
    add_text(builder, "file", report->messages->file);
    add_text(builder, "kind", zp_import_kind_name(report->kind));
    add_text(builder, "verdict", zp_import_message_verdict_name(report->verdict));
    add_messages(builder, report->messages);
    add_rows(builder, report->rows);
}

char *
zp_import_report_json(const ZpImportReport *report)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    zp_import_report_members(report, builder);
    json_builder_end_object(builder);
    g_autoptr(JsonNode) root = json_builder_get_root(builder);
    return json_to_string(root, TRUE);
}
