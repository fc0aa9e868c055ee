/* Text tables: cells aligned in columns, two spaces between them. */
#pragma once

#include <glib.h>

typedef struct _ZpTable ZpTable;

/* `alignments` has a letter per column: 'l' or 'r'.  `indent` spaces stand before each line. */
ZpTable *zp_table_new(const char *alignments, int indent);
void zp_table_free(ZpTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpTable, zp_table_free)

/* Keeps lines within `columns` characters by cutting the cells of one column ("..."). */
void zp_table_set_limit(ZpTable *table, int columns, int column);

/* Adds a row; its cells are those appended until the next row.  Missing cells are empty. */
void zp_table_row(ZpTable *table);
void zp_table_header(ZpTable *table); /* the same, in bold when coloured, ruled off below */
void zp_table_rule(ZpTable *table);   /* a line of dashes */
void zp_table_cell(ZpTable *table, const char *text);
/* An empty cell to append to; owned by the table, valid until the next call. */
GString *zp_table_open_cell(ZpTable *table);

/* Lines without trailing spaces, each ending in a newline.  Widths are in characters, UTF-8. */
void zp_table_print(const ZpTable *table, gboolean color, GString *out);
