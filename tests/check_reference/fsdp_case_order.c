#include "fsdp_case_reader.h"

#include <string.h>

static void
list_parameter(FsdpCaseReader *reader, const char *name)
{
    gint32 index =
        GPOINTER_TO_INT(g_hash_table_lookup(reader->parameters, g_intern_string(name))) - 1;
    if (index >= 0)
        g_array_append_val(reader->plan->optimizer_order, index);
}

/* model.parameters() where the case does not list them: by module in the order of first use, which
 * is that of registration. */
static void
order_by_use(FsdpCaseReader *reader)
{
    ZpFsdpPlan *plan = reader->plan;
    g_autofree gboolean *listed = g_new0(gboolean, plan->parameters->len + 1);
    gint32 operation = -1;
    for (guint s = 0; s < plan->steps->len; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(plan, (gint32)s);
        if (step->kind != ZP_FSDP_CALL)
            continue;
        operation++;
        const ZpFsdpUnit *unit =
            step->unit == ZP_FSDP_NONE ? NULL : zp_fsdp_plan_unit(plan, step->unit);
        for (gint32 p = 0; unit && p < unit->n_parameters; p++) {
            gint32 index = unit->first_parameter + p;
            gboolean used = FALSE;
            for (gint32 i = 0; i < step->n_uses; i++)
                used |= zp_fsdp_plan_use(plan, step->first_use + i) == index;
            if (used && !listed[index])
                g_array_append_val(plan->optimizer_order, index);
            listed[index] |= used;
        }
    }
}

void
fsdp_case_order_parameters(FsdpCaseReader *reader)
{
    ZpFsdpPlan *plan = reader->plan;
    JsonArray *order = fsdp_json_list(reader->fsdp_case->root, "parameter_order");
    for (guint i = 0; i < fsdp_json_length(order); i++)
        list_parameter(reader, json_array_get_string_element(order, i));
    if (fsdp_json_length(order) == 0)
        order_by_use(reader);
    for (gint32 u = 0; u < (gint32)plan->units->len; u++) {
        if (zp_fsdp_plan_unit(plan, u)->root)
            g_array_prepend_val(plan->state_order, u);
        else
            g_array_append_val(plan->state_order, u);
    }
}

static gint32
unit_named(FsdpCaseReader *reader, const char *name)
{
    for (guint u = 0; u < reader->plan->units->len; u++) {
        JsonArray *modules =
            fsdp_json_list(json_array_get_object_element(reader->units, u), "modules");
        if (strcmp(zp_fsdp_plan_unit(reader->plan, (gint32)u)->name, name) == 0)
            return (gint32)u;
        for (guint m = 0; m < fsdp_json_length(modules); m++) {
            if (strcmp(json_array_get_string_element(modules, m), name) == 0)
                return (gint32)u;
        }
    }
    return ZP_FSDP_NONE;
}

void
fsdp_case_read_prefetch(FsdpCaseReader *reader, JsonObject *policy, const char *key,
                        gboolean forward)
{
    if (!json_object_has_member(policy, key))
        return;
    JsonObject *lists = json_object_get_object_member(policy, key);
    for (guint u = 0; u < reader->plan->units->len; u++) {
        ZpFsdpUnit *unit = &g_array_index(reader->plan->units, ZpFsdpUnit, u);
        JsonArray *targets = fsdp_json_list(lists, unit->name);
        gint32 first = (gint32)reader->plan->prefetch->len;
        for (guint i = 0; i < fsdp_json_length(targets); i++) {
            gint32 target = unit_named(reader, json_array_get_string_element(targets, i));
            if (target != ZP_FSDP_NONE)
                g_array_append_val(reader->plan->prefetch, target);
        }
        gint32 n = (gint32)reader->plan->prefetch->len - first;
        if (forward)
            unit->first_forward_prefetch = first, unit->n_forward_prefetch = n;
        else
            unit->first_backward_prefetch = first, unit->n_backward_prefetch = n;
    }
}
