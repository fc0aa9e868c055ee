/* check_activations [-v] DIR...: activation memory against measured cases (check_activations/).
 *
 * Prints, for every group (variant, dtype, policy), how many figures are equal and the first that
 * differs; then how many cases the forms in batch and tokens hold for.  Exit code 0 when every
 * figure that the measurements call exact is equal and all forms hold, 1 when one differs, 2 on
 * wrong usage or an unreadable file. */
#include "check_activations/forms.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    guint cases, equal[CASE_COLUMNS], compared[CASE_COLUMNS], all;
    FormsTally forms;
} Tally;

/* The measuring program calls the sum with gradients and copies approximate under autocast: it
 * differed between meta and fake tensors. */
static gboolean
is_exact(const ActivationCase *item, int column)
{
    return column != CASE_BACKWARD_WITH_GRADIENTS || strcmp(item->regime, "amp") != 0;
}

static void
print_difference(const ActivationCase *item, int column, gint64 computed,
                 const ZpActivationBytes *bytes)
{
    printf("  %s of %s: measured %" G_GINT64_FORMAT ", computed %" G_GINT64_FORMAT
           " (%+" G_GINT64_FORMAT "); measured at %s | %s, computed at %s | %s\n",
           case_columns[column], item->shape, item->measured[column], computed,
           computed - item->measured[column], item->forward_at, item->backward_at,
           bytes->forward_peak_at, bytes->backward_peak_at);
}

/* Adds one case; returns whether a figure that should be exact differs. */
static gboolean
tally_case(Tally *tally, const ActivationCase *item, gboolean *shown, gboolean verbose)
{
    gint64 computed[CASE_COLUMNS];
    ZpActivationBytes bytes;
    gboolean differs = FALSE;
    activation_case_compute(item, computed, &bytes);
    tally->cases++;
    for (int c = 0; c < CASE_COLUMNS; c++) {
        if (item->measured[c] < 0)
            continue;
        tally->compared[c]++;
        if (computed[c] == item->measured[c]) {
            tally->equal[c]++;
            continue;
        }
        differs = differs || is_exact(item, c);
        if (!shown[c] || verbose)
            print_difference(item, c, computed[c], &bytes);
        shown[c] = TRUE;
    }
    tally->all += !differs;
    if (!activation_case_check_forms(item, &tally->forms)) {
        printf("  forms of %s differ\n", item->shape);
        differs = TRUE;
    }
    return differs;
}

static void
add(Tally *total, const Tally *part)
{
    total->cases += part->cases;
    total->all += part->all;
    total->forms.exact += part->forms.exact;
    total->forms.rounded += part->forms.rounded;
    total->forms.by_shape += part->forms.by_shape;
    total->forms.wrong += part->forms.wrong;
    total->forms.joined += part->forms.joined;
    for (int c = 0; c < CASE_COLUMNS; c++) {
        total->equal[c] += part->equal[c];
        total->compared[c] += part->compared[c];
    }
}

static void
print_tally(const char *name, const Tally *tally)
{
    printf("%s: %u of %u cases exact", name, tally->all, tally->cases);
    for (int c = 0; c < CASE_COLUMNS; c++)
        if (tally->equal[c] != tally->compared[c])
            printf("; %s %u/%u", case_columns[c], tally->equal[c], tally->compared[c]);
    printf("\n");
}

static void
print_forms(const FormsTally *forms)
{
    printf("forms in batch and tokens: %u exact, %u rounded up by less than a byte a token, %u "
           "exact but for tensors taken for gradients by their shape, %u wrong; %u joined\n",
           forms->exact, forms->rounded, forms->by_shape, forms->wrong, forms->joined);
}

static char *
group_of(const ActivationCase *item)
{
    return g_strdup_printf("%s/%s/%s", item->variant, item->regime, item->policy);
}

static gboolean
check(GPtrArray *cases, Tally *total, gboolean verbose)
{
    gboolean differs = FALSE;
    for (guint i = 0; i < cases->len;) {
        g_autofree char *group = group_of(cases->pdata[i]);
        gboolean shown[CASE_COLUMNS] = {FALSE};
        Tally tally = {0};
        for (gboolean same = TRUE; same && i < cases->len;) {
            g_autofree char *own = group_of(cases->pdata[i]);
            same = g_str_equal(own, group);
            if (same)
                differs = tally_case(&tally, cases->pdata[i++], shown, verbose) || differs;
        }
        print_tally(group, &tally);
        add(total, &tally);
    }
    return differs;
}

int
main(int argc, char **argv)
{
    gboolean verbose = argc > 1 && strcmp(argv[1], "-v") == 0, differs = FALSE;
    Tally total = {0};
    if (argc < 2 + verbose) {
        fprintf(stderr, "usage: check_activations [-v] DIR...\n");
        return 2;
    }
    for (int i = 1 + verbose; i < argc; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) cases = activation_cases_load(argv[i], &error);
        if (!cases || cases->len == 0) {
            fprintf(stderr, "check_activations: %s: %s\n", argv[i],
                    error ? error->message : "no cases");
            return 2;
        }
        differs = check(cases, &total, verbose) || differs;
    }
    print_tally("total", &total);
    print_forms(&total.forms);
    for (int c = 0; c < CASE_COLUMNS; c++)
        printf("  %-38s %u of %u equal\n", case_columns[c], total.equal[c], total.compared[c]);
    return differs;
}
