/* What an importer has to say about a file: notes, warnings and errors with their place.
 *
 * A list belongs to one file.  Every message names the key it is about ("" for the file as a
 * whole), the line and column where that key or value stands (0: nowhere in particular), and,
 * where there is one, the mend: what to write instead. */
#pragma once

#include <glib.h>

typedef enum {
    ZP_IMPORT_NOTE,       /* worth knowing; the file is in order */
    ZP_IMPORT_DEPRECATED, /* read, but the key has a living successor */
    ZP_IMPORT_WARNING,    /* read, but probably not what was meant */
    ZP_IMPORT_ERROR,      /* the framework refuses it, or nothing sensible can be read */
} ZpImportSeverity;

typedef enum {
    ZP_IMPORT_OK,         /* nothing above a note */
    ZP_IMPORT_SUSPICIOUS, /* deprecated keys or warnings; called "warning" */
    ZP_IMPORT_REFUSED,    /* errors; called "error" */
} ZpImportVerdict;

typedef struct {
    ZpImportSeverity severity;
    int line, column; /* from 1; 0: the whole file */
    char *key;        /* dotted path, "" for the file */
    char *text;
    char *mend; /* NULL: nothing to suggest */
} ZpImportMessage;

typedef struct {
    char *file;
    GPtrArray *list; /* of ZpImportMessage, in the order found */
} ZpImportMessages;

ZpImportMessages *zp_import_message_list_new(const char *file);
void zp_import_message_list_free(ZpImportMessages *messages);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpImportMessages, zp_import_message_list_free)

/* After 200 messages further ones are dropped and one line says so. */
void zp_import_message_add(ZpImportMessages *messages, ZpImportSeverity severity, int line,
                           int column, const char *key, const char *mend, const char *format, ...)
    G_GNUC_PRINTF(7, 8);
/* A copy fit to be printed: valid UTF-8, control characters as "?".  What a stranger's file says
 * must not reach a terminal raw.  NULL stays NULL. */
char *zp_import_message_clean(const char *text);
gboolean zp_import_message_is_full(const ZpImportMessages *messages);
/* By line, then column, then order of arrival; messages about the whole file come last. */
void zp_import_message_sort(ZpImportMessages *messages);
ZpImportVerdict zp_import_message_verdict(const ZpImportMessages *messages);
const char *zp_import_message_severity_name(ZpImportSeverity severity); /* "warning" */
const char *zp_import_message_verdict_name(ZpImportVerdict verdict);    /* "ok" */
/* First error as GError text: "FILE:LINE: key: text (mend)"; NULL if there is none. */
char *zp_import_message_first_error(const ZpImportMessages *messages);
