#include "fsdp_case_reader.h"

#include <string.h>

#include "fsdp_json.h"
#include "fsdp_policy.h"

static void
add_shared_names(FsdpCaseReader *reader, JsonObject *unit)
{
    if (!json_object_has_member(unit, "shared_parameters"))
        return;
    JsonObject *shared = json_object_get_object_member(unit, "shared_parameters");
    g_autoptr(GList) names = json_object_get_members(shared);
    for (GList *name = names; name; name = name->next) {
        gpointer index = g_hash_table_lookup(reader->parameters, g_intern_string(name->data));
        JsonArray *others = json_object_get_array_member(shared, name->data);
        for (guint i = 0; i < fsdp_json_length(others); i++)
            g_hash_table_insert(reader->parameters,
                                (gpointer)g_intern_string(json_array_get_string_element(others, i)),
                                index);
    }
}

static void
read_parameter(FsdpCaseReader *reader, JsonObject *object, gint32 unit)
{
    JsonArray *shape = fsdp_json_list(object, "shape");
    ZpFsdpParameter parameter = {
        .name = fsdp_json_interned(object, "name"),
        .rows = fsdp_json_length(shape) ? json_array_get_int_element(shape, 0) : 1,
        .row_elements = 1,
        .trainable = fsdp_json_flag(object, "requires_grad", TRUE),
        .inner = fsdp_json_number(object, "shard_dim", 0) > 0,
        .unit = unit,
        .parameter = ZP_FSDP_NONE,
    };
    for (guint i = 1; i < fsdp_json_length(shape); i++)
        parameter.row_elements *= json_array_get_int_element(shape, i);
    g_array_append_val(reader->plan->parameters, parameter);
    g_hash_table_insert(reader->parameters, (gpointer)parameter.name,
                        GINT_TO_POINTER((gint)reader->plan->parameters->len));
    gint32 none = G_MAXINT32;
    g_array_append_val(reader->rank_in_unit, none);
}

static gint32
reshard_of(JsonObject *unit, gint32 shard)
{
    JsonNode *node = json_object_get_member(unit, "reshard_after_forward");
    if (node == NULL || json_node_is_null(node))
        return 1;
    if (json_node_get_value_type(node) == G_TYPE_BOOLEAN)
        return json_node_get_boolean(node);
    gint32 n = (gint32)json_node_get_int(node);
    return n == shard ? 1 : n;
}

static void
read_units(FsdpCaseReader *reader)
{
    ZpFsdpPlan *plan = reader->plan;
    for (guint u = 0; u < fsdp_json_length(reader->units); u++) {
        JsonObject *object = json_array_get_object_element(reader->units, u);
        JsonArray *parameters = fsdp_json_list(object, "parameters");
        ZpFsdpUnit unit = {
            .name = fsdp_json_interned(object, "name"),
            .first_parameter = (gint32)plan->parameters->len,
            .n_parameters = (gint32)fsdp_json_length(parameters),
            .root = fsdp_json_flag(object, "root", FALSE),
            .input_requires_grad = fsdp_json_flag(object, "input_requires_grad", FALSE),
            .reshard_after_forward = reshard_of(object, plan->shard),
            .unshard_in_backward = fsdp_json_flag(object, "unshard_in_backward", TRUE),
        };
        g_array_append_val(plan->units, unit);
        for (guint p = 0; p < fsdp_json_length(parameters); p++)
            read_parameter(reader, json_array_get_object_element(parameters, p), (gint32)u);
        add_shared_names(reader, object);
        JsonArray *order = fsdp_json_list(object, "grad_order");
        for (guint i = 0; i < fsdp_json_length(order); i++) {
            const char *name = g_intern_string(json_array_get_string_element(order, i));
            gint index = GPOINTER_TO_INT(g_hash_table_lookup(reader->parameters, name)) - 1;
            if (index >= 0)
                g_array_index(reader->rank_in_unit, gint32, (guint)index) = (gint32)i;
        }
    }
}

static gboolean
is_inside(const char *module, const char *ancestor)
{
    gsize n = strlen(ancestor);
    return n == 0 || (strncmp(module, ancestor, n) == 0 && (module[n] == '\0' || module[n] == '.'));
}

static gboolean
is_in_any(const char *module, JsonArray *ancestors)
{
    for (guint i = 0; i < fsdp_json_length(ancestors); i++) {
        if (is_inside(module, json_array_get_string_element(ancestors, i)))
            return TRUE;
    }
    return FALSE;
}

/* Is a module inside a unit?  FSDP1's units are named after their one module. */
static gboolean
is_in_unit(const char *module, JsonObject *unit)
{
    if (json_object_has_member(unit, "modules"))
        return is_in_any(module, fsdp_json_list(unit, "modules"));
    return fsdp_json_flag(unit, "root", FALSE) ||
           is_inside(module, fsdp_json_interned(unit, "name"));
}

static const char *
module_of(JsonObject *unit)
{
    JsonArray *modules = fsdp_json_list(unit, "modules");
    if (fsdp_json_length(modules) > 0)
        return json_array_get_string_element(modules, 0);
    return fsdp_json_flag(unit, "root", FALSE) ? "" : fsdp_json_interned(unit, "name");
}

static JsonArray *
checkpointed(FsdpCaseReader *reader, const char *key)
{
    JsonObject *root = reader->fsdp_case->root;
    if (!json_object_has_member(root, "activation_checkpointing"))
        return NULL;
    return fsdp_json_list(json_object_get_object_member(root, "activation_checkpointing"), key);
}

/* The file lists the computations of all micro-batches and, with checkpointing, those done again
 * in backward: a checkpointed module that comes back starts the recomputation. */
static void
read_operations(FsdpCaseReader *reader, gint64 micro_batches)
{
    JsonArray *inside = checkpointed(reader, "inside_units");
    JsonArray *outside = checkpointed(reader, "outside_units");
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    guint n = fsdp_json_length(reader->order) / (guint)micro_batches;
    for (guint i = 0; i < n; i++) {
        JsonObject *object = json_array_get_object_element(reader->order, i);
        FsdpCaseOperation operation = {.module = fsdp_json_interned(object, "module"),
                                       .params = fsdp_json_list(object, "params")};
        gboolean again = !g_hash_table_add(seen, (gpointer)operation.module);
        if (again && (is_in_any(operation.module, inside) || is_in_any(operation.module, outside)))
            return;
        g_array_append_val(reader->operations, operation);
    }
}

static void
find_spans(FsdpCaseReader *reader)
{
    for (guint u = 0; u < reader->plan->units->len; u++) {
        JsonObject *object = json_array_get_object_element(reader->units, u);
        gint32 first = -1, last = -1;
        for (guint i = 0; i < reader->operations->len; i++) {
            const FsdpCaseOperation *operation =
                &g_array_index(reader->operations, FsdpCaseOperation, i);
            if (!is_in_unit(operation->module, object))
                continue;
            last = (gint32)i;
            if (first < 0)
                first = (gint32)i;
        }
        if (!fsdp_json_flag(object, "executed_in_forward", TRUE))
            first = last = -1;
        if (first >= 0 && g_array_index(reader->plan->units, ZpFsdpUnit, u).root) {
            first = 0;
            last = (gint32)reader->operations->len - 1;
        }
        g_array_append_val(reader->first, first);
        g_array_append_val(reader->last, last);
    }
}

static void
push_step(FsdpCaseReader *reader, ZpFsdpStepKind kind, gint32 unit)
{
    ZpFsdpStep step = {.kind = (guint8)kind, .unit = unit, .region = ZP_FSDP_NONE};
    g_array_append_val(reader->plan->steps, step);
}

/* Does unit `a` enclose unit `b` (both over the same operations at one end)?  The file lists units
 * in the order in which they are entered. */
static gboolean
encloses(const FsdpCaseReader *reader, gint32 a, gint32 b)
{
    gint32 span_a =
        g_array_index(reader->last, gint32, a) - g_array_index(reader->first, gint32, a);
    gint32 span_b =
        g_array_index(reader->last, gint32, b) - g_array_index(reader->first, gint32, b);
    return span_a != span_b ? span_a > span_b : a < b;
}

/* Units entered (or left) at an operation, outermost first. */
static void
units_at(const FsdpCaseReader *reader, GArray *where, gint32 operation, GArray *found)
{
    g_array_set_size(found, 0);
    for (gint32 u = 0; u < (gint32)where->len; u++) {
        if (g_array_index(where, gint32, (guint)u) != operation)
            continue;
        guint at = 0;
        while (at < found->len && encloses(reader, g_array_index(found, gint32, at), u))
            at++;
        g_array_insert_val(found, at, u);
    }
}

static void
push_call(FsdpCaseReader *reader, const FsdpCaseOperation *operation)
{
    ZpFsdpPlan *plan = reader->plan;
    ZpFsdpStep step = {
        .kind = ZP_FSDP_CALL,
        .unit = ZP_FSDP_NONE,
        .first_use = (gint32)plan->uses->len,
        .region = ZP_FSDP_NONE,
    };
    for (guint i = 0; i < fsdp_json_length(operation->params); i++) {
        const char *leaf = json_array_get_string_element(operation->params, i);
        g_autofree char *name =
            *operation->module ? g_strdup_printf("%s.%s", operation->module, leaf) : g_strdup(leaf);
        gint index =
            GPOINTER_TO_INT(g_hash_table_lookup(reader->parameters, g_intern_string(name))) - 1;
        if (index < 0)
            continue;
        guint at = (guint)step.first_use;
        while (at < plan->uses->len &&
               g_array_index(reader->rank_in_unit, gint32,
                             (guint)zp_fsdp_plan_use(plan, (gint32)at)) <=
                   g_array_index(reader->rank_in_unit, gint32, (guint)index))
            at++;
        g_array_insert_val(plan->uses, at, index);
        step.n_uses++;
        step.unit = zp_fsdp_plan_parameter(plan, index)->unit;
    }
    g_array_append_val(plan->steps, step);
}

static void
write_steps(FsdpCaseReader *reader)
{
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (gint32 i = 0; i < (gint32)reader->operations->len; i++) {
        units_at(reader, reader->first, i, found);
        for (guint k = 0; k < found->len; k++)
            push_step(reader, ZP_FSDP_ENTER, g_array_index(found, gint32, k));
        push_call(reader, &g_array_index(reader->operations, FsdpCaseOperation, (guint)i));
        units_at(reader, reader->last, i, found);
        for (guint k = found->len; k > 0; k--)
            push_step(reader, ZP_FSDP_LEAVE, g_array_index(found, gint32, k - 1));
    }
}

/* A checkpointed module covers its calls and the units inside it; its own unit as well when the
 * checkpoint wraps the unit. */
static void
add_region(FsdpCaseReader *reader, const char *module, gboolean with_unit)
{
    ZpFsdpPlan *plan = reader->plan;
    ZpFsdpRegion region = {.first_step = -1};
    gint32 operation = -1;
    for (guint s = 0; s < plan->steps->len; s++) {
        const ZpFsdpStep *step = zp_fsdp_plan_step(plan, (gint32)s);
        gboolean covered;
        if (step->kind == ZP_FSDP_CALL) {
            operation++;
            covered = is_inside(
                g_array_index(reader->operations, FsdpCaseOperation, (guint)operation).module,
                module);
        } else {
            JsonObject *unit = json_array_get_object_element(reader->units, (guint)step->unit);
            const char *own = module_of(unit);
            covered = is_inside(own, module) && (with_unit || strcmp(own, module) != 0);
        }
        if (!covered)
            continue;
        if (region.first_step < 0)
            region.first_step = (gint32)s;
        region.last_step = (gint32)s;
    }
    if (region.first_step < 0)
        return;
    for (gint32 s = region.first_step; s <= region.last_step; s++)
        g_array_index(plan->steps, ZpFsdpStep, (guint)s).region = (gint32)plan->regions->len;
    g_array_append_val(plan->regions, region);
}

static void
add_regions(FsdpCaseReader *reader)
{
    JsonArray *inside = checkpointed(reader, "inside_units");
    JsonArray *outside = checkpointed(reader, "outside_units");
    for (guint i = 0; i < fsdp_json_length(inside); i++)
        add_region(reader, json_array_get_string_element(inside, i), FALSE);
    for (guint i = 0; i < fsdp_json_length(outside); i++)
        add_region(reader, json_array_get_string_element(outside, i), TRUE);
}

static void
read_plan(FsdpCaseReader *reader)
{
    JsonObject *root = reader->fsdp_case->root;
    JsonObject *policy = json_object_get_object_member(root, "policy");
    ZpFsdpPlan *plan = reader->plan;
    plan->shard = (gint32)fsdp_json_number(root, "shard_degree", 1);
    plan->replicate = (gint32)fsdp_json_number(root, "replicate_degree", 1);
    plan->rank = (gint32)fsdp_json_number(root, "rank", 0);
    fsdp_policy_read(plan, policy, json_object_get_object_member(root, "optimizer"));
    read_units(reader);
    read_operations(reader, fsdp_json_number(policy, "grad_accum", 1));
    find_spans(reader);
    write_steps(reader);
    add_regions(reader);
    fsdp_case_order_parameters(reader);
    fsdp_case_read_prefetch(reader, policy, "forward_prefetch_lists", TRUE);
    fsdp_case_read_prefetch(reader, policy, "backward_prefetch_lists", FALSE);
    zp_fsdp_plan_finish(plan);
}

FsdpCase *
fsdp_case_read(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    return g_file_get_contents(path, &text, NULL, error) ? fsdp_case_parse(text, error) : NULL;
}

FsdpCase *
fsdp_case_parse(const char *text, GError **error)
{
    g_autoptr(FsdpCase) fsdp_case = g_new0(FsdpCase, 1);
    fsdp_case->parser = json_parser_new();
    if (!json_parser_load_from_data(fsdp_case->parser, text, -1, error))
        return NULL;
    fsdp_case->root = json_node_get_object(json_parser_get_root(fsdp_case->parser));
    fsdp_case->id = fsdp_json_interned(fsdp_case->root, "id");
    fsdp_case->runtime = fsdp_json_interned(fsdp_case->root, "runtime");
    fsdp_case->plan = zp_fsdp_plan_new();
    FsdpCaseReader reader = {
        .fsdp_case = fsdp_case,
        .plan = fsdp_case->plan,
        .units = fsdp_json_list(fsdp_case->root, "units"),
        .order = fsdp_json_list(fsdp_case->root, "compute_order"),
        .parameters = g_hash_table_new(NULL, NULL),
        .operations = g_array_new(FALSE, FALSE, sizeof(FsdpCaseOperation)),
        .first = g_array_new(FALSE, FALSE, sizeof(gint32)),
        .last = g_array_new(FALSE, FALSE, sizeof(gint32)),
        .rank_in_unit = g_array_new(FALSE, FALSE, sizeof(gint32)),
    };
    read_plan(&reader);
    g_hash_table_unref(reader.parameters);
    g_array_unref(reader.operations);
    g_array_unref(reader.first);
    g_array_unref(reader.last);
    g_array_unref(reader.rank_in_unit);
    return g_steal_pointer(&fsdp_case);
}

void
fsdp_case_free(FsdpCase *fsdp_case)
{
    if (fsdp_case == NULL)
        return;
    g_clear_object(&fsdp_case->parser);
    zp_fsdp_plan_free(fsdp_case->plan);
    g_free(fsdp_case);
}
