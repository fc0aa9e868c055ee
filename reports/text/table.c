#include "reports/text/table.h"

#include <string.h>

typedef enum { ROW_PLAIN, ROW_HEADER, ROW_RULE } RowKind;

typedef struct {
    RowKind kind;
    GPtrArray *cells; /* GString */
} Row;

struct _ZpTable {
    char *alignments;
    guint n_columns;
    int indent, limit, limited_column;
    GPtrArray *rows; /* Row */
};

static void
free_cell(gpointer data)
{
    g_string_free(data, TRUE);
}

static void
free_row(gpointer data)
{
    Row *row = data;
    g_ptr_array_unref(row->cells);
    g_free(row);
}

ZpTable *
zp_table_new(const char *alignments, int indent)
{
    ZpTable *table = g_new0(ZpTable, 1);
    table->alignments = g_strdup(alignments);
    table->n_columns = (guint)strlen(alignments);
    table->indent = indent;
    table->limited_column = -1;
    table->rows = g_ptr_array_new_with_free_func(free_row);
    return table;
}

void
zp_table_free(ZpTable *table)
{
    if (table == NULL)
        return;
    g_ptr_array_unref(table->rows);
    g_free(table->alignments);
    g_free(table);
}

void
zp_table_set_limit(ZpTable *table, int columns, int column)
{
    g_assert(column >= 0 && (guint)column < table->n_columns);
    table->limit = columns;
    table->limited_column = column;
}

static void
add_row(ZpTable *table, RowKind kind)
{
    Row *row = g_new(Row, 1);
    row->kind = kind;
    row->cells = g_ptr_array_new_with_free_func(free_cell);
    g_ptr_array_add(table->rows, row);
}

void
zp_table_row(ZpTable *table)
{
    add_row(table, ROW_PLAIN);
}

void
zp_table_header(ZpTable *table)
{
    add_row(table, ROW_HEADER);
}

void
zp_table_rule(ZpTable *table)
{
    add_row(table, ROW_RULE);
}

GString *
zp_table_open_cell(ZpTable *table)
{
    g_assert(table->rows->len > 0);
    Row *row = g_ptr_array_index(table->rows, table->rows->len - 1);
    g_assert(row->kind != ROW_RULE && row->cells->len < table->n_columns);
    GString *cell = g_string_new(NULL);
    g_ptr_array_add(row->cells, cell);
    return cell;
}

void
zp_table_cell(ZpTable *table, const char *text)
{
    g_string_append(zp_table_open_cell(table), text);
}

/* Characters of a column's widest cell, for all columns. */
static int *
measure(const ZpTable *table)
{
    int *widths = g_new0(int, table->n_columns + 1);
    for (guint r = 0; r < table->rows->len; r++) {
        const Row *row = g_ptr_array_index(table->rows, r);
        for (guint c = 0; c < row->cells->len; c++) {
            const GString *cell = g_ptr_array_index(row->cells, c);
            widths[c] = MAX(widths[c], (int)g_utf8_strlen(cell->str, (gssize)cell->len));
        }
    }
    int total = table->indent - 2;
    for (guint c = 0; c < table->n_columns; c++)
        total += widths[c] + 2;
    if (table->limit > 0 && total > table->limit) {
        int *width = &widths[table->limited_column];
        *width = MAX(8, *width - (total - table->limit));
    }
    return widths;
}

static void
print_cell(GString *out, const GString *cell, int width, gboolean right)
{
    int length = (int)g_utf8_strlen(cell->str, (gssize)cell->len);
    if (length > width) {
        g_autofree char *cut = g_utf8_substring(cell->str, 0, width - 3);
        g_string_append_printf(out, "%s...", cut);
        return;
    }
    if (right)
        g_string_append_printf(out, "%*s", width - length, "");
    g_string_append(out, cell->str);
    if (!right)
        g_string_append_printf(out, "%*s", width - length, "");
}

static void
print_rule(const ZpTable *table, const int *widths, GString *out)
{
    g_string_append_printf(out, "%*s", table->indent, "");
    for (guint c = 0; c < table->n_columns; c++) {
        if (c > 0)
            g_string_append(out, "  ");
        for (int i = 0; i < widths[c]; i++)
            g_string_append_c(out, '-');
    }
    g_string_append_c(out, '\n');
}

static void
print_row(const ZpTable *table, const Row *row, const int *widths, gboolean color, GString *out)
{
    gboolean bold = color && row->kind == ROW_HEADER;
    g_autoptr(GString) line = g_string_new(NULL);
    g_string_append_printf(line, "%*s", table->indent, "");
    for (guint c = 0; c < row->cells->len; c++) {
        if (c > 0)
            g_string_append(line, "  ");
        print_cell(line, g_ptr_array_index(row->cells, c), widths[c], table->alignments[c] == 'r');
    }
    while (line->len > 0 && line->str[line->len - 1] == ' ')
        g_string_truncate(line, line->len - 1);
    g_string_append_printf(out, "%s%s%s\n", bold ? "\033[1m" : "", line->str,
                           bold ? "\033[0m" : "");
}

void
zp_table_print(const ZpTable *table, gboolean color, GString *out)
{
    g_autofree int *widths = measure(table);
    for (guint r = 0; r < table->rows->len; r++) {
        const Row *row = g_ptr_array_index(table->rows, r);
        if (row->kind == ROW_RULE) {
            print_rule(table, widths, out);
            continue;
        }
        print_row(table, row, widths, color, out);
        if (row->kind == ROW_HEADER)
            print_rule(table, widths, out);
    }
}
