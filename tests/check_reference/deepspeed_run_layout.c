/* Flattening, partitions, sub-groups and averaged gradients, from the arithmetic the compilers use,
 * against a recorded run. */
#include <string.h>

#include "deepspeed_run.h"
#include "models/runtimes/deepspeed/modules/flat.h"

/* Trainable parameters of a group, and their sizes. */
typedef struct {
    GArray *ids;   /* gint32 */
    GArray *sizes; /* gint64: elements, or those of a partition */
} Members;

static Members
members_of(const DsRun *run, gint32 group, gboolean partitions)
{
    Members members = {g_array_new(FALSE, FALSE, sizeof(gint32)),
                       g_array_new(FALSE, FALSE, sizeof(gint64))};
    for (gint32 id = 0; id < (gint32)run->tree->parameters->len; id++) {
        const ZpDsParameter *parameter = zp_ds_tree_parameter(run->tree, id);
        gint64 n = partitions ? zp_ds_partition_elements(parameter->elements, run->job.world.ranks)
                              : parameter->elements;
        if (run->groups[id] != group || !parameter->trainable)
            continue;
        g_array_append_val(members.ids, id);
        g_array_append_val(members.sizes, n);
    }
    return members;
}

static void
clear(Members *members)
{
    g_array_unref(members->ids);
    g_array_unref(members->sizes);
}

static const char *
name_of(const DsRun *run, const Members *members, gint32 place)
{
    return zp_ds_tree_parameter(run->tree, g_array_index(members->ids, gint32, place))->name;
}

static void
flatten(const DsRun *run, const Members *members, ZpDsFlatGroup *group)
{
    zp_ds_flat_group_init(group, (const gint64 *)(gconstpointer)members->sizes->data,
                          (gint32)members->ids->len, run->job.world.ranks,
                          run->settings.round_robin_gradients);
}

static void
compare_flat(DsRun *run)
{
    JsonArray *orders = ds_array(run->expected, "flat_order");
    for (guint g = 0; orders != NULL && g < json_array_get_length(orders); g++) {
        Members members = members_of(run, (gint32)g, FALSE);
        g_auto(ZpDsFlatGroup) group = {0};
        flatten(run, &members, &group);
        g_autoptr(GPtrArray) names = g_ptr_array_new();
        for (gint32 p = 0; p < group.n; p++)
            g_ptr_array_add(names, (gpointer)name_of(run, &members, group.order[p]));
        ds_expect_list(run->check, "flat_order", names, json_array_get_array_element(orders, g));
        ds_expect_int(run->check, "partition_size", group.slice_elements,
                      json_array_get_int_element(ds_array(run->expected, "partition_size"), g));
        /* groups_padding of rank 0: what its slice lacks. */
        gint64 padding = MAX(group.slice_elements - group.elements, 0);
        ds_expect_int(run->check, "padding", padding,
                      json_array_get_int_element(ds_array(run->expected, "padding"), g));
        clear(&members);
    }
}

static void
compare_partition(DsRun *run)
{
    JsonArray *partition = ds_array(run->expected, "partition");
    for (guint i = 0; partition != NULL && i < json_array_get_length(partition); i++) {
        JsonArray *row = json_array_get_array_element(partition, i);
        const ZpDsParameter *parameter = zp_ds_tree_parameter(run->tree, (gint32)i);
        const char *name = json_array_get_string_element(row, 0);
        if (strcmp(name, parameter->name) != 0)
            ds_diverge(run->check, "partition: ours %s, theirs %s", parameter->name, name);
        ds_expect_int(run->check, name, parameter->elements, json_array_get_int_element(row, 1));
        ds_expect_int(run->check, name,
                      zp_ds_partition_elements(parameter->elements, run->job.world.ranks),
                      json_array_get_int_element(row, 2));
        ds_expect_int(run->check, name, parameter->persistent,
                      json_array_get_boolean_element(row, 3));
    }
}

static gint32
n_groups(const DsRun *run)
{
    return MAX(1, run->settings.n_parameter_groups);
}

/* Lists of names and of sizes by sub-group, one group of parameters after the other. */
static void
list_sub_groups(const DsRun *run, GPtrArray *names, GPtrArray *sizes)
{
    for (gint32 g = 0; g < n_groups(run); g++) {
        Members members = members_of(run, g, TRUE);
        g_autofree gint32 *sub_group = g_new(gint32, members.ids->len + 1);
        gint32 n =
            zp_ds_sub_groups((const gint64 *)(gconstpointer)members.sizes->data,
                             (gint32)members.ids->len, run->settings.sub_group_elements, sub_group);
        guint first = names->len;
        for (gint32 s = 0; s < n; s++) {
            g_ptr_array_add(names, g_ptr_array_new());
            g_ptr_array_add(sizes, g_array_new(FALSE, FALSE, sizeof(gint64)));
        }
        for (guint i = 0; i < members.ids->len; i++) {
            guint index = first + (guint)sub_group[i];
            g_ptr_array_add(names->pdata[index], (gpointer)name_of(run, &members, (gint32)i));
            g_array_append_val((GArray *)sizes->pdata[index],
                               g_array_index(members.sizes, gint64, i));
        }
        clear(&members);
    }
}

static GPtrArray *
new_lists(GDestroyNotify free_one)
{
    return g_ptr_array_new_with_free_func(free_one);
}

static void
compare_sub_groups(DsRun *run)
{
    JsonArray *theirs = ds_array(run->expected, "sub_groups");
    if (theirs == NULL)
        return;
    g_autoptr(GPtrArray) names = new_lists((GDestroyNotify)g_ptr_array_unref);
    g_autoptr(GPtrArray) sizes = new_lists((GDestroyNotify)g_array_unref);
    list_sub_groups(run, names, sizes);
    ds_expect_int(run->check, "sub_groups", names->len, json_array_get_length(theirs));
    for (guint s = 0; s < names->len && !ds_failed(run->check); s++)
        ds_expect_list(run->check, "sub_groups", names->pdata[s],
                       json_array_get_array_element(theirs, s));
}

static void
compare_sizes(DsCheck *check, const char *what, const GArray *ours, JsonArray *theirs)
{
    ds_expect_int(check, what, ours->len, json_array_get_length(theirs));
    for (guint i = 0; i < ours->len && !ds_failed(check); i++)
        ds_expect_int(check, what, g_array_index(ours, gint64, i),
                      json_array_get_int_element(theirs, i));
}

/* What of each parameter lies in the rank's slice, then the padding of the last ones. */
static GPtrArray *
slices_of_rank(const DsRun *run)
{
    GPtrArray *lists = new_lists((GDestroyNotify)g_array_unref);
    gint32 rank = MAX(0, run->settings.rank);
    for (gint32 g = 0; g < n_groups(run); g++) {
        Members members = members_of(run, g, FALSE);
        g_auto(ZpDsFlatGroup) group = {0};
        flatten(run, &members, &group);
        GArray *sizes = g_array_new(FALSE, FALSE, sizeof(gint64));
        gint32 first, end;
        gint64 sum = 0;
        zp_ds_flat_group_touching(&group, rank, &first, &end);
        for (gint32 place = first; place < end; place++) {
            gint64 inside = zp_ds_flat_group_inside(&group, place, rank);
            g_array_append_val(sizes, inside);
            sum += inside;
        }
        gint64 padding = group.slice_elements - sum;
        if (padding > 0)
            g_array_append_val(sizes, padding);
        g_ptr_array_add(lists, sizes);
        clear(&members);
    }
    return lists;
}

void
ds_compare_averaged(DsRun *run, const char *where, gboolean boundary, JsonObject *expected)
{
    JsonArray *theirs = ds_array(expected, "averaged_gradients");
    if (theirs == NULL || json_array_get_length(theirs) == 0)
        return;
    g_autoptr(GPtrArray) names = new_lists((GDestroyNotify)g_ptr_array_unref);
    g_autoptr(GPtrArray) sizes = new_lists((GDestroyNotify)g_array_unref);
    g_autoptr(GPtrArray) slices = slices_of_rank(run);
    list_sub_groups(run, names, sizes);
    const GPtrArray *ours = run->job.zero.stage == 3 ? sizes : slices;
    g_autofree char *what = g_strconcat(where, " averaged_gradients", NULL);
    ds_expect_int(run->check, what, ours->len, json_array_get_length(theirs));
    /* The step lets go of them; stages 1 and 2 have none before the last micro-batch. */
    gboolean absent = g_str_has_suffix(where, "_end") || (run->job.zero.stage != 3 && !boundary);
    for (guint g = 0; g < ours->len && !ds_failed(run->check); g++) {
        JsonNode *list = json_array_get_element(theirs, g);
        ds_expect_int(run->check, what, absent, JSON_NODE_HOLDS_NULL(list));
        if (JSON_NODE_HOLDS_ARRAY(list))
            compare_sizes(run->check, what, ours->pdata[g], json_node_get_array(list));
    }
}

/* Each sub-group's part of the flat buffer. */
void
ds_compare_flats(DsRun *run, const char *where, JsonObject *expected)
{
    JsonArray *theirs = ds_array(expected, "lp_flat");
    if (theirs == NULL)
        return;
    g_autoptr(GPtrArray) names = new_lists((GDestroyNotify)g_ptr_array_unref);
    g_autoptr(GPtrArray) sizes = new_lists((GDestroyNotify)g_array_unref);
    list_sub_groups(run, names, sizes);
    g_autofree char *what = g_strconcat(where, " lp_flat", NULL);
    ds_expect_int(run->check, what, sizes->len, json_array_get_length(theirs));
    for (guint s = 0; s < sizes->len && !ds_failed(run->check); s++) {
        const GArray *group = sizes->pdata[s];
        JsonObject *flat = json_array_get_object_element(theirs, s);
        gint64 sum = 0;
        for (guint i = 0; i < group->len; i++)
            sum += g_array_index(group, gint64, i);
        ds_expect_int(run->check, what, sum, ds_int(flat, "elements", -1));
        ds_expect_int(run->check, what, zp_ds_bytes(run->formats.model, sum),
                      ds_int(flat, "bytes", -1));
        if (strcmp(ds_text(flat, "dtype", ""), zp_dtype_name((ZpDtype)run->formats.model)) != 0)
            ds_diverge(run->check, "%s: theirs in %s", what, ds_text(flat, "dtype", ""));
    }
}

void
ds_compare_layout(DsRun *run)
{
    compare_flat(run);
    compare_partition(run);
    compare_sub_groups(run);
}
