/* One line of the table that `zeropeak check` prints: a setting as the tool understood it. */
#pragma once

#include <glib.h>

typedef struct {
    char *key;        /* dotted path as in the file */
    char *value;      /* in effect; "unset" */
    char *unit;       /* "elements", "bytes", ...; "" */
    char *effect;     /* "memory", "time", "memory, time", "none" */
    char *origin;     /* "file", "default", "auto: ...", ... */
    char *reason;     /* why it is ignored, or what follows from it; "" */
    int line;         /* 0: not in the file */
    gboolean ignored; /* has no effect although it was written */
} ZpImportRow;

void zp_import_row_free(gpointer row);
/* Array of rows that owns them. */
GPtrArray *zp_import_row_list_new(void);
/* Copies the texts, fit to be printed (NULL: ""). */
ZpImportRow *zp_import_row_add(GPtrArray *rows, const char *key, const char *value,
                               const char *unit, const char *effect, const char *origin,
                               const char *reason, int line);
