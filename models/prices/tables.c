#include "models/prices/tables.h"

#include <math.h>
#include <string.h>

#include "models/words/resources.h"

enum { GPU, NODES, GPUS, NETWORK, KIND, SOURCE, POINTS, N_FIELDS };

struct _ZpCostTables {
    GPtrArray *tables; /* const ZpCostTable, of the built-in ones */
};

static ZpKind
kind_of(const char *name)
{
    for (int k = 0; k < ZP_N_KINDS; k++) {
        if (strcmp(zp_vocabulary_kind_name((ZpKind)k), name) == 0)
            return (ZpKind)k;
    }
    g_error("collectives.csv: unknown collective '%s'", name);
}

static GArray *
parse_points(const char *text)
{
    GArray *points = g_array_new(FALSE, FALSE, sizeof(ZpCostPoint));
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    for (char **word = words; *word != NULL; word++) {
        char *end = NULL;
        ZpCostPoint point = {.bytes = g_ascii_strtoll(*word, &end, 10)};
        g_assert(*end == ':');
        point.seconds = g_ascii_strtod(end + 1, NULL) * 1e-6;
        g_assert(point.seconds > 0.0);
        g_array_append_val(points, point);
    }
    return points;
}

static gpointer
load(gpointer unused G_GNUC_UNUSED)
{
    GArray *tables = g_array_new(FALSE, FALSE, sizeof(ZpCostTable));
    g_auto(GStrv) lines = g_strsplit(zp_resources_text("catalog/collectives.csv"), "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if (**line == '#' || **line == '\0')
            continue;
        g_auto(GStrv) fields = g_strsplit(*line, ",", N_FIELDS);
        g_assert(g_strv_length(fields) == N_FIELDS);
        ZpCostTable table = {
            .gpu = g_intern_string(fields[GPU]),
            .network = g_intern_string(fields[NETWORK]),
            .source = g_intern_string(fields[SOURCE]),
            .nodes = (gint32)g_ascii_strtoll(fields[NODES], NULL, 10),
            .gpus_per_node = (gint32)g_ascii_strtoll(fields[GPUS], NULL, 10),
            .kind = kind_of(fields[KIND]),
            .points = parse_points(fields[POINTS]),
        };
        g_autofree char *rule = g_strdup_printf("measured, %s", table.source);
        table.rule = g_intern_string(rule);
        g_array_append_val(tables, table);
    }
    return tables;
}

const GArray *
zp_cost_tables_all(void)
{
    static GOnce once = G_ONCE_INIT;
    return g_once(&once, load, NULL);
}

/* "A100-80-SXM" and "A100-SXM-80" without the memory size: "a100sxm". */
static char *
family_of(const char *gpu)
{
    GString *family = g_string_new(NULL);
    g_auto(GStrv) parts = g_strsplit(gpu, "-", -1);
    for (char **part = parts; *part != NULL; part++) {
        if (part == parts || !g_ascii_isdigit((*part)[0]))
            g_string_append(family, *part);
    }
    return g_string_free(g_string_ascii_down(family), FALSE);
}

ZpCostTables *
zp_cost_tables_new(const char *gpu, const char *network)
{
    ZpCostTables *tables = g_new(ZpCostTables, 1);
    tables->tables = g_ptr_array_new();
    g_autofree char *family = family_of(gpu);
    const GArray *all = zp_cost_tables_all();
    for (guint t = 0; t < all->len; t++) {
        ZpCostTable *table = &g_array_index(all, ZpCostTable, t);
        g_autofree char *own = family_of(table->gpu);
        gboolean near = table->nodes == 1;
        gboolean named = network != NULL && *network != '\0' && strstr(table->network, network);
        if (strcmp(own, family) == 0 && (near || named))
            g_ptr_array_add(tables->tables, table);
    }
    return tables;
}

void
zp_cost_tables_free(ZpCostTables *tables)
{
    if (tables == NULL)
        return;
    g_ptr_array_unref(tables->tables);
    g_free(tables);
}

guint
zp_cost_tables_count(const ZpCostTables *tables)
{
    return tables->tables->len;
}

/* Of several tables the one with the most points: it covers the widest range. */
const ZpCostTable *
zp_cost_tables_find(const ZpCostTables *tables, ZpKind kind, gint32 nodes, gint32 gpus_per_node)
{
    const ZpCostTable *best = NULL;
    for (guint t = 0; t < tables->tables->len; t++) {
        const ZpCostTable *table = g_ptr_array_index(tables->tables, t);
        if (table->kind == kind && table->nodes == nodes && table->gpus_per_node == gpus_per_node &&
            (best == NULL || table->points->len > best->points->len))
            best = table;
    }
    return best;
}

double
zp_cost_table_seconds(const ZpCostTable *table, gint64 bytes)
{
    const ZpCostPoint *points = (const ZpCostPoint *)(gpointer)table->points->data;
    guint n = table->points->len;
    if (bytes <= points[0].bytes)
        return points[0].seconds;
    if (bytes >= points[n - 1].bytes)
        return points[n - 1].seconds * (double)bytes / (double)points[n - 1].bytes;
    guint high = 1;
    while (points[high].bytes < bytes)
        high++;
    const ZpCostPoint *a = &points[high - 1], *b = &points[high];
    double share = log((double)bytes / (double)a->bytes) / log((double)b->bytes / (double)a->bytes);
    return exp(log(a->seconds) * (1.0 - share) + log(b->seconds) * share);
}
