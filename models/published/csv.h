/* Comma-separated text with a header line (RFC 4180: quotes, doubled quotes, line ends in quotes).
 */
#pragma once

#include <glib.h>

typedef struct {
    GPtrArray *names;   /* char * */
    GPtrArray *records; /* GPtrArray of char *, as long as names */
    GArray *lines;      /* gint: line of each record in the text, from 1 */
} ZpValidateCsv;

/* Fails on text after a closing quote, a quote that never closes, and on records longer than the
 * header; shorter ones are filled with "". */
ZpValidateCsv *zp_validate_csv_parse(const char *text, GError **error);
void zp_validate_csv_free(ZpValidateCsv *csv);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpValidateCsv, zp_validate_csv_free)

/* The value of column `name`; "" where the table has no such column. */
const char *zp_validate_csv_get(const ZpValidateCsv *csv, guint record, const char *name);
/* Its number; `missing` where it is empty or no number. */
double zp_validate_csv_number(const ZpValidateCsv *csv, guint record, const char *name,
                              double missing);

typedef enum { ZP_VALIDATE_ERROR_SYNTAX, ZP_VALIDATE_ERROR_ROW } ZpValidateError;
#define ZP_VALIDATE_ERROR (zp_validate_error_quark())
GQuark zp_validate_error_quark(void);
