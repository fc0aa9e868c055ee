/* Errors by family, feature and phase, and those that are known. */
#include "check_e2e/e2e.h"

#include <math.h>
#include <stdio.h>

static double
signed_error(const E2eCase *item, E2eFigure figure)
{
    gint64 measured = item->measured.bytes[figure], simulated = item->simulated.bytes[figure];
    if (measured <= 0 || simulated == E2E_UNKNOWN)
        return NAN;
    return 100.0 * (double)(simulated - measured) / (double)measured;
}

double
e2e_error(const E2eCase *item, E2eFigure figure)
{
    return fabs(signed_error(item, figure));
}

static gint
compare_doubles(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

typedef gboolean (*Belongs)(const E2eCase *item, const char *name);

static gboolean
is_of_family(const E2eCase *item, const char *name)
{
    return g_str_equal(item->family, name);
}

static gboolean
has_feature(const E2eCase *item, const char *name)
{
    for (guint i = 0; i < item->features->len; i++)
        if (g_str_equal(item->features->pdata[i], name))
            return TRUE;
    return FALSE;
}

static gboolean
always(const E2eCase *item, const char *name)
{
    (void)item;
    (void)name;
    return TRUE;
}

/* Median, the ninth tenth and the worst of a figure over the cases that belong. */
static void
print_figure(const GPtrArray *cases, Belongs belongs, const char *name, E2eFigure figure)
{
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < cases->len; i++) {
        double error = e2e_error(cases->pdata[i], figure);
        if (belongs(cases->pdata[i], name) && !isnan(error))
            g_array_append_val(errors, error);
    }
    if (errors->len == 0) {
        printf("  %24s", "-");
        return;
    }
    g_array_sort(errors, compare_doubles);
    guint last = errors->len - 1;
    printf("  %7.3f %7.3f %8.3f", g_array_index(errors, double, last / 2),
           g_array_index(errors, double, (9 * last + 9) / 10), g_array_index(errors, double, last));
}

static void
print_group(const GPtrArray *cases, Belongs belongs, const char *name)
{
    guint count = 0;
    for (guint i = 0; i < cases->len; i++)
        count += belongs(cases->pdata[i], name) != FALSE;
    printf("%-20s %4u", name, count);
    for (int f = 0; f < E2E_FIGURES; f++)
        print_figure(cases, belongs, name, (E2eFigure)f);
    printf("\n");
}

static gint
compare_strings(gconstpointer a, gconstpointer b)
{
    return g_strcmp0(*(char *const *)a, *(char *const *)b);
}

static void
add_name(GPtrArray *names, char *name)
{
    for (guint i = 0; i < names->len; i++)
        if (g_str_equal(names->pdata[i], name))
            return;
    g_ptr_array_add(names, name);
}

static void
print_groups(const GPtrArray *cases)
{
    g_autoptr(GPtrArray) families = g_ptr_array_new();
    g_autoptr(GPtrArray) features = g_ptr_array_new();
    for (guint i = 0; i < cases->len; i++) {
        const E2eCase *item = cases->pdata[i];
        add_name(families, item->family);
        for (guint k = 0; k < item->features->len; k++)
            add_name(features, item->features->pdata[k]);
    }
    g_ptr_array_sort(families, compare_strings);
    g_ptr_array_sort(features, compare_strings);
    printf("%-20s %4s", "error in %", "n");
    for (int f = 0; f < E2E_FIGURES; f++)
        printf("  %-24s", e2e_figure_names[f]);
    printf("\n%25s", "");
    for (int f = 0; f < E2E_FIGURES; f++)
        printf("  %7s %7s %8s", "median", "p90", "worst");
    printf("\n");
    print_group(cases, always, "all");
    for (guint i = 0; i < families->len; i++)
        print_group(cases, is_of_family, families->pdata[i]);
    for (guint i = 0; i < features->len; i++)
        print_group(cases, has_feature, features->pdata[i]);
}

static double
worst_error(const E2eCase *item)
{
    double worst = 0.0;
    for (int f = 0; f < E2E_FIGURES; f++)
        worst = fmax(worst, e2e_error(item, (E2eFigure)f));
    return worst;
}

static void
print_case(const E2eCase *item)
{
    printf("  %-42s", item->id);
    for (int f = 0; f < E2E_FIGURES; f++)
        printf("  %s %+8.3f", e2e_figure_names[f], signed_error(item, (E2eFigure)f));
    printf("%s\n", item->parameters == item->simulated_parameters ? "" : "  other parameters");
}

static void
print_above(const GPtrArray *cases, double percent, double below)
{
    printf("figures above %g %%:\n", percent);
    for (guint i = 0; i < cases->len; i++) {
        double worst = worst_error(cases->pdata[i]);
        if (worst > percent && worst <= below)
            print_case(cases->pdata[i]);
    }
}

void
e2e_report(const GPtrArray *cases, double percent)
{
    enum { FAR = 4 }; /* times */
    print_groups(cases);
    print_above(cases, FAR * percent, INFINITY);
    print_above(cases, percent, FAR * percent);
    for (guint i = 0; i < cases->len; i++) {
        const E2eCase *item = cases->pdata[i];
        if (item->refused)
            printf("refused %s: %s\n", item->id, item->refused);
    }
}

static char *
key_of(const char *id, const char *figure)
{
    return g_strconcat(id, ";", figure, NULL);
}

/* "id;figure" to the percent of it. */
static GHashTable *
read_known(const char *path)
{
    GHashTable *known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autofree char *text = NULL;
    if (path == NULL || !g_file_get_contents(path, &text, NULL, NULL))
        return known;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        g_auto(GStrv) words = g_strsplit(*line, ";", 3);
        if (g_strv_length(words) != 3)
            continue;
        double percent = g_ascii_strtod(words[2], NULL);
        g_hash_table_insert(known, key_of(words[0], words[1]), g_memdup2(&percent, sizeof percent));
    }
    return known;
}

int
e2e_check_known(const GPtrArray *cases, const char *path, double percent)
{
    const double rounding = 0.001; /* of the figures in the file */
    g_autoptr(GHashTable) known = read_known(path);
    int worse = 0;
    for (guint i = 0; i < cases->len; i++) {
        const E2eCase *item = cases->pdata[i];
        worse += item->refused != NULL;
        for (int f = 0; f < E2E_FIGURES; f++) {
            g_autofree char *key = key_of(item->id, e2e_figure_names[f]);
            const double *allowed = g_hash_table_lookup(known, key);
            double limit = allowed ? *allowed + rounding : percent;
            if (!(e2e_error(item, (E2eFigure)f) > limit))
                continue;
            printf("FAIL %s %s: %+.3f %%, known %.3f\n", item->id, e2e_figure_names[f],
                   signed_error(item, (E2eFigure)f), limit);
            worse++;
        }
    }
    return worse;
}

gboolean
e2e_write_known(const GPtrArray *cases, const char *path, double percent, GError **error)
{
    g_autoptr(GString) text = g_string_new("# case;figure;error in percent, known and allowed\n");
    for (guint i = 0; i < cases->len; i++) {
        const E2eCase *item = cases->pdata[i];
        for (int f = 0; f < E2E_FIGURES; f++) {
            double of_figure = e2e_error(item, (E2eFigure)f);
            if (of_figure > percent)
                g_string_append_printf(text, "%s;%s;%.3f\n", item->id, e2e_figure_names[f],
                                       of_figure);
        }
    }
    return g_file_set_contents(path, text->str, -1, error);
}
