#include "scenarios/readers/message.h"

#include <string.h>

#define MAX_MESSAGES 200

static void
message_free(gpointer data)
{
    ZpImportMessage *message = data;
    g_free(message->key);
    g_free(message->text);
    g_free(message->mend);
    g_free(message);
}

ZpImportMessages *
zp_import_message_list_new(const char *file)
{
    ZpImportMessages *messages = g_new0(ZpImportMessages, 1);
    messages->file = g_strdup(file);
    messages->list = g_ptr_array_new_with_free_func(message_free);
    return messages;
}

void
zp_import_message_list_free(ZpImportMessages *messages)
{
    g_ptr_array_unref(messages->list);
    g_free(messages->file);
    g_free(messages);
}

char *
zp_import_message_clean(const char *text)
{
    if (!text)
        return NULL;
    char *clean = g_utf8_make_valid(text, -1);
    for (char *p = clean; *p; p++)
        if (g_ascii_iscntrl(*p))
            *p = '?';
    return clean;
}

void
zp_import_message_add(ZpImportMessages *messages, ZpImportSeverity severity, int line, int column,
                      const char *key, const char *mend, const char *format, ...)
{
    if (messages->list->len > MAX_MESSAGES)
        return;
    ZpImportMessage *message = g_new0(ZpImportMessage, 1);
    message->severity = severity;
    message->line = line;
    message->column = column;
    message->key = zp_import_message_clean(key ? key : "");
    if (messages->list->len == MAX_MESSAGES) {
        /* Errors must not be lost among notes: the closing line is itself an error. */
        message->severity = ZP_IMPORT_ERROR;
        message->text =
            g_strdup_printf("more than %d messages; the rest is not shown", MAX_MESSAGES);
    } else {
        va_list arguments;
        va_start(arguments, format);
        g_autofree char *text = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        message->text = zp_import_message_clean(text);
        message->mend = zp_import_message_clean(mend);
    }
    g_ptr_array_add(messages->list, message);
}

gboolean
zp_import_message_is_full(const ZpImportMessages *messages)
{
    return messages->list->len > MAX_MESSAGES;
}

static int
compare_places(gconstpointer a, gconstpointer b, gpointer data)
{
    (void)data;
    const ZpImportMessage *left = *(ZpImportMessage *const *)a;
    const ZpImportMessage *right = *(ZpImportMessage *const *)b;
    int left_line = left->line ? left->line : G_MAXINT;
    int right_line = right->line ? right->line : G_MAXINT;
    if (left_line != right_line)
        return left_line < right_line ? -1 : 1;
    return (left->column > right->column) - (left->column < right->column);
}

void
zp_import_message_sort(ZpImportMessages *messages)
{
    /* g_ptr_array_sort_with_data is a merge sort, hence stable. */
    g_ptr_array_sort_with_data(messages->list, compare_places, NULL);
}

ZpImportVerdict
zp_import_message_verdict(const ZpImportMessages *messages)
{
    ZpImportVerdict verdict = ZP_IMPORT_OK;
    for (guint i = 0; i < messages->list->len; i++) {
        const ZpImportMessage *message = messages->list->pdata[i];
        if (message->severity == ZP_IMPORT_ERROR)
            return ZP_IMPORT_REFUSED;
        if (message->severity != ZP_IMPORT_NOTE)
            verdict = ZP_IMPORT_SUSPICIOUS;
    }
    return verdict;
}

const char *
zp_import_message_severity_name(ZpImportSeverity severity)
{
    static const char *const names[] = {"note", "deprecated", "warning", "error"};
    g_assert((gsize)severity < G_N_ELEMENTS(names));
    return names[severity];
}

const char *
zp_import_message_verdict_name(ZpImportVerdict verdict)
{
    static const char *const names[] = {"ok", "warning", "error"};
    g_assert((gsize)verdict < G_N_ELEMENTS(names));
    return names[verdict];
}

char *
zp_import_message_first_error(const ZpImportMessages *messages)
{
    for (guint i = 0; i < messages->list->len; i++) {
        const ZpImportMessage *message = messages->list->pdata[i];
        if (message->severity != ZP_IMPORT_ERROR)
            continue;
        GString *text = g_string_new(messages->file);
        if (message->line)
            g_string_append_printf(text, ":%d", message->line);
        if (*message->key)
            g_string_append_printf(text, ": %s", message->key);
        g_string_append_printf(text, ": %s", message->text);
        if (message->mend)
            g_string_append_printf(text, " (%s)", message->mend);
        return g_string_free(text, FALSE);
    }
    return NULL;
}
