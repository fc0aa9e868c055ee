#include "models/families/catalog.h"

#include "models/families/build.h"
#include "models/words/names.h"
#include "models/words/nearest.h"
#include "models/words/resources.h"

#include <string.h>

enum { COLUMN_NAME, COLUMN_FAMILY, COLUMN_DIMENSIONS, COLUMN_ELEMENTS, COLUMN_SOURCE, N_COLUMNS };

typedef struct {
    GPtrArray *rows; /* GStrv of N_COLUMNS */
    GArray *entries; /* ZpCatalogEntry, NULL-terminated */
} Catalog;

/* "L=32 h=4096 ..." into symbols. */
static void
set_dimensions(const char *dimensions, ZpSymbols *symbols)
{
    g_auto(GStrv) pairs = g_strsplit(dimensions, " ", -1);
    for (gsize i = 0; pairs[i]; i++) {
        char *value = strchr(pairs[i], '=');
        g_assert(value != NULL);
        *value = '\0';
        zp_symbols_set(symbols, pairs[i], g_ascii_strtoll(value + 1, NULL, 10));
    }
}

static ZpCatalogEntry
describe(char **row)
{
    g_autoptr(ZpSymbols) symbols = zp_symbols_new();
    set_dimensions(row[COLUMN_DIMENSIONS], symbols);
    return (ZpCatalogEntry){
        .name = row[COLUMN_NAME],
        .summary = g_strdup_printf("%" G_GINT64_FORMAT " layers, hidden %" G_GINT64_FORMAT
                                   ", %.3g parameters",
                                   zp_symbols_get(symbols, "L"), zp_symbols_get(symbols, "h"),
                                   g_ascii_strtod(row[COLUMN_ELEMENTS], NULL)),
        .source = row[COLUMN_SOURCE],
    };
}

static gpointer
load(gpointer unused G_GNUC_UNUSED)
{
    Catalog *catalog = g_new0(Catalog, 1);
    catalog->rows = g_ptr_array_new();
    catalog->entries = g_array_new(TRUE, TRUE, sizeof(ZpCatalogEntry));
    g_auto(GStrv) lines = g_strsplit(zp_resources_text("catalog/models.csv"), "\n", -1);
    for (gsize i = 0; lines[i]; i++) {
        if (lines[i][0] == '\0' || lines[i][0] == '#')
            continue;
        char **row = g_strsplit(lines[i], ";", N_COLUMNS);
        g_assert(g_strv_length(row) == N_COLUMNS);
        ZpCatalogEntry entry = describe(row);
        g_ptr_array_add(catalog->rows, row);
        g_array_append_val(catalog->entries, entry);
    }
    return catalog;
}

/* Read once and kept for ever: entries are handed out without ownership. */
static const Catalog *
get_catalog(void)
{
    static GOnce once = G_ONCE_INIT;
    return g_once(&once, load, NULL);
}

const ZpCatalogEntry *
zp_catalog_entries(gsize *n)
{
    const Catalog *catalog = get_catalog();
    if (n)
        *n = catalog->entries->len;
    return &g_array_index(catalog->entries, ZpCatalogEntry, 0);
}

static void
append_nearest(GString *message, const Catalog *catalog, const char *name)
{
    enum { N_NEAREST = 3 };
    const char *shown[N_NEAREST] = {0};
    for (int place = 0; place < N_NEAREST; place++) {
        int best = G_MAXINT;
        for (guint i = 0; i < catalog->rows->len; i++) {
            const char *candidate = ((char **)g_ptr_array_index(catalog->rows, i))[COLUMN_NAME];
            gboolean taken = FALSE;
            for (int s = 0; s < place; s++)
                taken = taken || shown[s] == candidate;
            int d = zp_nearest_distance(name, candidate);
            if (!taken && d < best) {
                best = d;
                shown[place] = candidate;
            }
        }
        g_string_append_printf(message, "%s%s", place ? ", " : "", shown[place]);
    }
}

ZpModel *
zp_catalog_build(const char *name, const ZpArchitectureOptions *options, GError **error)
{
    const Catalog *catalog = get_catalog();
    for (guint i = 0; i < catalog->rows->len; i++) {
        char **row = g_ptr_array_index(catalog->rows, i);
        if (g_ascii_strcasecmp(row[COLUMN_NAME], name) != 0)
            continue;
        g_autoptr(ZpFamily) family = zp_family_load(row[COLUMN_FAMILY]);
        g_autoptr(ZpSymbols) symbols = zp_symbols_new();
        g_assert(family != NULL);
        set_dimensions(row[COLUMN_DIMENSIONS], symbols);
        return zp_architecture_build_family(family, symbols, NULL, options, row[COLUMN_NAME], NULL,
                                            error);
    }
    /* Only a bounded part of a long name is compared and shown. */
    g_autofree char *shown = g_strndup(name, 60);
    g_autoptr(GString) message = g_string_new(NULL);
    g_string_printf(message, "no model '%s' in the catalogue; nearest: ", shown);
    append_nearest(message, catalog, shown);
    g_set_error_literal(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_UNSUPPORTED,
                        message->str);
    return NULL;
}
