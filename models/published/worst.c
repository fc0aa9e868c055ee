/* Groups of published runs, worst first, for the page that says how far to trust the program. */
#include <math.h>
#include <string.h>

#include "models/published/figures_internal.h"
#include "models/published/validate.h"

typedef struct {
    const ZpValidateRow *example;
    const char *what; /* "step time", or a figure of memory */
    GArray *errors;   /* double, signed */
    ZpValidateFigures figures;
} Group;

static void
free_group(gpointer data)
{
    Group *group = data;
    g_array_unref(group->errors);
    g_free(group);
}

/* Rows of one source on one GPU, by what they state. */
static Group *
group_of(GPtrArray *groups, const ZpValidateRow *row, const char *what)
{
    for (guint g = 0; g < groups->len; g++) {
        Group *group = g_ptr_array_index(groups, g);
        if (strcmp(group->what, what) == 0 && strcmp(group->example->gpu, row->gpu) == 0 &&
            strcmp(group->example->family, row->family) == 0)
            return group;
    }
    Group *fresh = g_new0(Group, 1);
    *fresh = (Group){row, what, g_array_new(FALSE, FALSE, sizeof(double)), {0}};
    g_ptr_array_add(groups, fresh);
    return fresh;
}

static void
add_row(GPtrArray *groups, const ZpValidateRow *row)
{
    if (row->simulated_ms > 0.0)
        g_array_append_val(group_of(groups, row, "step time")->errors, row->error);
    for (guint m = 0; m < row->memory->len; m++) {
        const ZpValidateMemory *memory = &g_array_index(row->memory, ZpValidateMemory, m);
        if (memory->figure == ZP_VALIDATE_FITS || memory->simulated_mib <= 0.0)
            continue;
        g_autofree char *what =
            g_strdup_printf("%s memory", zp_validate_figure_name(memory->figure));
        double error = zp_validate_memory_error(memory);
        g_array_append_val(group_of(groups, row, g_intern_string(what))->errors, error);
    }
}

static gint
worst_first(gconstpointer pa, gconstpointer pb)
{
    const Group *a = *(const Group *const *)pa, *b = *(const Group *const *)pb;
    if (a->figures.mean != b->figures.mean)
        return a->figures.mean > b->figures.mean ? -1 : 1;
    return strcmp(a->example->id, b->example->id);
}

char *
zp_validate_worst(const ZpValidation *validation)
{
    g_autoptr(GPtrArray) groups = g_ptr_array_new_with_free_func(free_group);
    for (guint r = 0; r < validation->rows->len; r++)
        add_row(groups, g_ptr_array_index(validation->rows, r));
    for (guint g = 0; g < groups->len; g++) {
        Group *group = g_ptr_array_index(groups, g);
        group->figures = zp_validate_figures_of(group->errors);
    }
    g_ptr_array_sort(groups, worst_first);
    GString *out = g_string_new("| runs | figure | rows | mean error | bias |\n"
                                "|---|---|---|---|---|\n");
    for (guint g = 0; g < groups->len; g++) {
        const Group *group = g_ptr_array_index(groups, g);
        if (group->figures.n >= 2)
            g_string_append_printf(
                out, "| %s and the like, %s, %s (%s) | %s | %d | %.0f %% | %+.0f %% |\n",
                group->example->model, group->example->strategy, group->example->gpu,
                *group->example->family != '\0' ? group->example->family : "-", group->what,
                group->figures.n, 100.0 * group->figures.mean, 100.0 * group->figures.bias);
    }
    return g_string_free(out, FALSE);
}
