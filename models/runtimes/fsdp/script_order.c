#include "models/runtimes/fsdp/script_order_internal.h"

/* Index of the first event with which each parameter of the part has a gradient, by its number in
 * the block; ZP_FSDP_NONE: none. */
static gint32 *
find_births(const ZpModelScript *script)
{
    gint32 *births = g_new(gint32, script->parameters->len + 1);
    for (guint k = 0; k < script->parameters->len; k++)
        births[k] = ZP_FSDP_NONE;
    for (guint i = 0; i < script->events->len; i++) {
        const ZpModelScriptEvent *event = zp_model_script_event(script, i);
        if (event->kind == ZP_MODEL_GRADIENT && births[event->parameter] == ZP_FSDP_NONE)
            births[event->parameter] = (gint32)i;
    }
    return births;
}

typedef struct {
    gint32 use, module, birth;
    guint place;
} Use;

/* Modules in the order of their first gradient, latest first; parameters of one stay together as
 * they are registered. */
static gint
compare_uses(gconstpointer a, gconstpointer b)
{
    const Use *x = a, *y = b;
    if (x->birth != y->birth)
        return x->birth > y->birth ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* The n-th parameter of a size in the block's part is the n-th of that size in the layer. */
static void
match(const ZpModelScript *script, int part, const ZpFsdpPlan *plan, GArray *uses)
{
    g_autofree gint32 *births = find_births(script);
    g_autofree gboolean *taken = g_new0(gboolean, uses->len + 1);
    for (guint k = 0; k < script->parameters->len; k++) {
        const ZpModelScriptParameter *parameter =
            &g_array_index(script->parameters, ZpModelScriptParameter, k);
        if (parameter->part != part || births[k] == ZP_FSDP_NONE)
            continue;
        for (guint u = 0; u < uses->len; u++) {
            Use *use = &g_array_index(uses, Use, u);
            if (taken[u] || zp_fsdp_parameter_elements(zp_fsdp_plan_parameter(plan, use->use)) !=
                                parameter->elements)
                continue;
            use->birth = births[k];
            taken[u] = TRUE;
            break;
        }
    }
}

/* A bias and its matrix: two matrices of a module (experts) have products of their own. */
static gboolean
belong_together(const ZpFsdpPlan *plan, const Use *a, const Use *b)
{
    return a->module == b->module && a->module != ZP_MODEL_NONE &&
           (zp_fsdp_plan_parameter(plan, a->use)->row_elements == 1 ||
            zp_fsdp_plan_parameter(plan, b->use)->row_elements == 1);
}

/* Their gradients are made together, with the first. */
static void
join_modules(const ZpFsdpPlan *plan, GArray *uses, gint32 end)
{
    for (guint u = 0; u < uses->len; u++) {
        Use *use = &g_array_index(uses, Use, u);
        if (use->birth == ZP_FSDP_NONE)
            use->birth = end; /* not known: with the layer's end, which is the last of all */
        for (guint v = 0; v < u; v++) {
            Use *other = &g_array_index(uses, Use, v);
            if (!belong_together(plan, use, other))
                continue;
            use->birth = other->birth = MIN(use->birth, other->birth);
        }
    }
}

GArray *
zp_fsdp_script_order(const ZpModelScript *script, int part, const ZpFsdpPlan *plan, GArray *uses,
                     GArray *modules)
{
    g_autoptr(GArray) sorted = g_array_new(FALSE, FALSE, sizeof(Use));
    GArray *births = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (guint u = 0; u < uses->len; u++) {
        Use use = {g_array_index(uses, gint32, u), g_array_index(modules, gint32, u), ZP_FSDP_NONE,
                   u};
        g_array_append_val(sorted, use);
    }
    match(script, part, plan, sorted);
    join_modules(plan, sorted, (gint32)script->events->len);
    g_array_sort(sorted, compare_uses);
    for (guint u = 0; u < sorted->len; u++) {
        const Use *use = &g_array_index(sorted, Use, u);
        g_array_index(uses, gint32, u) = use->use;
        g_array_index(modules, gint32, u) = use->module;
        g_array_append_val(births, use->birth);
    }
    return births;
}
