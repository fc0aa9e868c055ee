#include <string.h>

#include "deepspeed_case.h"
#include "models/ledger/vendor_estimate.h"
#include "models/runtimes/deepspeed/emit/gathers.h"
#include "models/runtimes/deepspeed/modules/flat.h"

typedef struct {
    gint32 n;
    gint64 *elements;
    GPtrArray *names;
} Parameters;

static void
clear_parameters(Parameters *parameters)
{
    g_free(parameters->elements);
    g_ptr_array_unref(parameters->names);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Parameters, clear_parameters)

static void
read_parameters(Parameters *parameters, JsonObject *input)
{
    JsonArray *list = ds_array(input, "params");
    parameters->n = (gint32)json_array_get_length(list);
    parameters->elements = g_new(gint64, (gsize)MAX(parameters->n, 1));
    parameters->names = g_ptr_array_new();
    for (gint32 i = 0; i < parameters->n; i++) {
        JsonArray *pair = json_array_get_array_element(list, (guint)i);
        g_ptr_array_add(parameters->names, (gpointer)json_array_get_string_element(pair, 0));
        parameters->elements[i] = json_array_get_int_element(pair, 1);
    }
}

static void
expect_ints(DsCheck *check, const char *what, const gint64 *ours, gint32 n, JsonArray *theirs)
{
    ds_expect_int(check, what, n, json_array_get_length(theirs));
    for (gint32 i = 0; i < n && !ds_failed(check); i++)
        ds_expect_int(check, what, ours[i], json_array_get_int_element(theirs, (guint)i));
}

static void
check_flat_rank(DsCheck *check, const ZpDsFlatGroup *group, const Parameters *parameters,
                JsonObject *expected)
{
    gint32 rank = (gint32)ds_int(expected, "rank", 0);
    gint32 first, end;
    zp_ds_flat_group_touching(group, rank, &first, &end);
    gint64 begin = rank * group->slice_elements;
    gint64 offset = first < end ? MAX(begin - group->start[first], 0) : 0;
    ds_expect_int(check, "first offset", offset, ds_int(expected, "first_offset", -1));
    ds_expect_int(check, "parameters of a slice", end - first, ds_int(expected, "n_params", -1));
    ds_expect_int(check, "grads_in_partition", zp_ds_flat_group_touching_elements(group, rank),
                  ds_int(expected, "grads_in_partition_elements", -1));
    JsonArray *theirs = ds_array(expected, "params");
    if (theirs == NULL)
        return;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (gint32 i = first; i < end; i++)
        g_ptr_array_add(names, parameters->names->pdata[group->order[i]]);
    ds_expect_list(check, "parameters of a slice", names, theirs);
}

static void
check_flat(DsCheck *check, JsonObject *input, JsonObject *expected)
{
    g_auto(Parameters) parameters = {0};
    read_parameters(&parameters, input);
    g_auto(ZpDsFlatGroup) group = {0};
    zp_ds_flat_group_init(&group, parameters.elements, parameters.n,
                          (gint32)ds_int(input, "world_size", 1),
                          ds_flag(input, "round_robin_gradients"));
    ds_expect_int(check, "flat", group.flat_elements, ds_int(expected, "flat_elements", -1));
    ds_expect_int(check, "padding", group.flat_elements - group.elements,
                  ds_int(expected, "padding", -1));
    ds_expect_int(check, "slice", group.slice_elements, ds_int(expected, "partition_elements", -1));
    g_autoptr(GPtrArray) order = g_ptr_array_new();
    for (gint32 i = 0; i < group.n; i++)
        g_ptr_array_add(order, parameters.names->pdata[group.order[i]]);
    if (ds_array(expected, "order") != NULL)
        ds_expect_list(check, "order", order, ds_array(expected, "order"));
    JsonArray *ranks = ds_array(expected, "ranks");
    for (guint i = 0; i < json_array_get_length(ranks); i++)
        check_flat_rank(check, &group, &parameters, json_array_get_object_element(ranks, i));
}

/* All names of a sub-group; of large models [first, last, count]. */
static void
check_members(DsCheck *check, const Parameters *parameters, const gint32 *member, gint32 g,
              JsonArray *theirs)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (gint32 i = 0; i < parameters->n; i++)
        if (member[i] == g)
            g_ptr_array_add(names, parameters->names->pdata[i]);
    guint n = json_array_get_length(theirs);
    if (n != 3 || json_node_get_value_type(json_array_get_element(theirs, 2)) != G_TYPE_INT64) {
        ds_expect_list(check, "sub-group members", names, theirs);
        return;
    }
    ds_expect_int(check, "sub-group size", names->len, json_array_get_int_element(theirs, 2));
    if (names->len == 0 || strcmp(names->pdata[0], json_array_get_string_element(theirs, 0)) != 0 ||
        strcmp(names->pdata[names->len - 1], json_array_get_string_element(theirs, 1)) != 0)
        ds_diverge(check, "sub-group %d: ours does not run from %s to %s", g,
                   json_array_get_string_element(theirs, 0),
                   json_array_get_string_element(theirs, 1));
}

static void
check_sub_groups(DsCheck *check, JsonObject *input, JsonObject *expected)
{
    g_auto(Parameters) parameters = {0};
    read_parameters(&parameters, input);
    gint32 n = parameters.n, ranks = (gint32)ds_int(input, "world_size", 1);
    g_autofree gint64 *partitions = g_new(gint64, (gsize)MAX(n, 1));
    gint64 total = 0;
    for (gint32 i = 0; i < n; i++)
        total += partitions[i] = zp_ds_partition_elements(parameters.elements[i], ranks);
    g_autofree gint32 *member = g_new(gint32, (gsize)MAX(n, 1));
    gint32 groups =
        zp_ds_sub_groups(partitions, n, ds_int(input, "sub_group_size", 1000000000), member);
    expect_ints(check, "partition", partitions, n, ds_array(expected, "partition_elements"));
    ds_expect_int(check, "P3", total, ds_int(expected, "P3", -1));
    g_autofree gint64 *sums = g_new0(gint64, (gsize)MAX(groups, 1));
    for (gint32 i = 0; i < n; i++)
        sums[member[i]] += partitions[i];
    expect_ints(check, "sub-group", sums, groups, ds_array(expected, "sub_group_elements"));
    JsonArray *theirs = ds_array(expected, "sub_groups");
    for (gint32 g = 0; theirs != NULL && g < groups && !ds_failed(check); g++)
        check_members(check, &parameters, member, g,
                      json_array_get_array_element(theirs, (guint)g));
}

/* "opt=1,param=0,zero_init=1" and "cpu_offload=1,buffer=1.5" */
static void
read_options(const char *options, ZpVendorQuestion *question)
{
    g_auto(GStrv) parts = g_strsplit(options, ",", -1);
    for (char **part = parts; *part != NULL; part++) {
        const char *value = strchr(*part, '=') + 1;
        gboolean on = value[0] == '1';
        if (g_str_has_prefix(*part, "opt=") || g_str_has_prefix(*part, "cpu_offload="))
            question->offload_optimizer = on;
        else if (g_str_has_prefix(*part, "param="))
            question->offload_param = on;
        else if (g_str_has_prefix(*part, "zero_init="))
            question->zero_init = on;
        else if (g_str_has_prefix(*part, "buffer="))
            question->buffer_factor = g_ascii_strtod(value, NULL);
    }
}

static void
check_estimates(DsCheck *check, JsonObject *input, JsonObject *expected, int stage)
{
    JsonObject *rows = ds_object(expected, stage == 2 ? "zero2" : "zero3");
    g_autoptr(GList) keys = json_object_get_members(rows);
    for (GList *key = keys; key != NULL; key = key->next) {
        ZpVendorQuestion question = {
            .total_elements = ds_int(input, "total_params", 0),
            .largest_layer_elements = ds_int(input, "largest_layer_params", 0),
            .gpus_per_node = (gint32)ds_int(input, "gpus_per_node", 1),
            .nodes = (gint32)ds_int(input, "nodes", 1),
            .buffer_factor = 1.5,
        };
        read_options(key->data, &question);
        ZpVendorEstimate ours =
            stage == 2 ? zp_vendor_estimate_zero2(&question) : zp_vendor_estimate_zero3(&question);
        JsonObject *theirs = ds_object(rows, key->data);
        g_autofree char *what = g_strdup_printf("ZeRO-%d %s", stage, (const char *)key->data);
        ds_expect_int(check, what, ours.host_bytes, ds_int(theirs, "cpu", -1));
        ds_expect_int(check, what, ours.device_bytes, ds_int(theirs, "gpu", -1));
        if (json_object_has_member(theirs, "largest_layer"))
            ds_expect_int(check, what, ours.largest_layer_bytes,
                          ds_int(theirs, "largest_layer", -1));
    }
}

static void
check_hpz(DsCheck *check, JsonArray *rows)
{
    for (guint i = 0; i < json_array_get_length(rows); i++) {
        JsonObject *row = json_array_get_object_element(rows, i);
        gint64 n = ds_int(row, "n", 0);
        gint32 ranks = (gint32)ds_int(row, "world", 1), group = (gint32)ds_int(row, "hpz", 1);
        gint64 primary = zp_ds_partition_elements(n, ranks);
        ds_expect_int(check, "aligned", primary * ranks, ds_int(row, "aligned", -1));
        ds_expect_int(check, "primary", primary, ds_int(row, "primary", -1));
        ds_expect_int(check, "secondary", zp_ds_secondary_elements(n, ranks, group),
                      ds_int(row, "secondary", -1));
    }
}

static void
check_quantizer(DsCheck *check, JsonArray *rows)
{
    for (guint i = 0; i < json_array_get_length(rows); i++) {
        JsonObject *row = json_array_get_object_element(rows, i);
        gint64 elements = ds_int(row, "elements", 0);
        gint64 groups = zp_ds_quantizer_groups(elements);
        if (json_object_has_member(row, "error")) {
            ds_expect_int(check, "groups of an illegal payload", groups, -1);
            continue;
        }
        ds_expect_int(check, "groups", groups, ds_int(row, "groups", -1));
        ds_expect_int(check, "int8 bytes", elements, ds_int(row, "int8_bytes", -1));
        ds_expect_int(check, "scale bytes", 4 * groups, ds_int(row, "scale_bytes", -1));
    }
}

static void
check_persistence(DsCheck *check, JsonObject *input, JsonObject *expected)
{
    g_auto(Parameters) parameters = {0};
    read_parameters(&parameters, input);
    g_autoptr(ZpDsTree) tree = zp_ds_tree_new();
    zp_ds_tree_add_module(tree, g_intern_static_string("root"), ZP_MODEL_NONE);
    for (gint32 i = 0; i < parameters.n; i++)
        zp_ds_tree_add_parameter(tree, 0, g_intern_string(parameters.names->pdata[i]),
                                 parameters.elements[i], TRUE);
    zp_ds_tree_finish(tree);
    zp_ds_tree_mark_persistent(tree, ds_int(input, "param_persistence_threshold", 100000),
                               ds_int(input, "model_persistence_threshold", G_MAXINT64));
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    gint64 elements = 0;
    for (gint32 i = 0; i < (gint32)tree->parameters->len; i++)
        if (zp_ds_tree_parameter(tree, i)->persistent) {
            g_ptr_array_add(names, (gpointer)zp_ds_tree_parameter(tree, i)->name);
            elements += zp_ds_tree_parameter(tree, i)->elements;
        }
    ds_expect_list(check, "persistent", names, ds_array(expected, "persistent"));
    ds_expect_int(check, "persistent elements", elements, ds_int(expected, "elements", -1));
}

void
ds_check_arithmetic(DsCheck *check, const char *kind, JsonObject *root)
{
    JsonObject *input = ds_object(root, "input");
    JsonObject *expected = ds_object(root, "expected");
    JsonArray *rows = ds_array(root, "expected");
    if (strcmp(kind, "flat12") == 0)
        check_flat(check, input, expected);
    else if (strcmp(kind, "subgroups3") == 0)
        check_sub_groups(check, input, expected);
    else if (strcmp(kind, "estimator") == 0) {
        check_estimates(check, input, expected, 2);
        check_estimates(check, input, expected, 3);
    } else if (strcmp(kind, "hpz") == 0)
        check_hpz(check, rows);
    else if (strcmp(kind, "qwz") == 0)
        check_quantizer(check, rows);
    else if (strcmp(kind, "persist") == 0)
        check_persistence(check, input, expected);
    else
        ds_diverge(check, "unknown arithmetic '%s'", kind);
}
