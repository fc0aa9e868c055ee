#include <string.h>

#include "deepspeed_case.h"
#include "models/runtimes/deepspeed/coordinator/walk.h"
#include "models/runtimes/deepspeed/emit/gathers.h"

/* Tree */

static void
add_module(ZpDsTree *tree, JsonObject *node, gint32 parent)
{
    gint32 index = zp_ds_tree_add_module(tree, g_intern_string(ds_text(node, "name", "")), parent);
    ZpDsModule *module = zp_ds_tree_module(tree, index);
    module->container = ds_flag(node, "container");
    module->no_post_backward = ds_flag(node, "no_post_backward");
    module->no_backward = ds_flag(node, "no_backward");
    JsonArray *parameters = ds_array(node, "params");
    for (guint i = 0; parameters != NULL && i < json_array_get_length(parameters); i++) {
        JsonArray *p = json_array_get_array_element(parameters, i);
        gboolean frozen = json_array_get_length(p) > 2 && json_array_get_boolean_element(p, 2);
        zp_ds_tree_add_parameter(tree, index, g_intern_string(json_array_get_string_element(p, 0)),
                                 json_array_get_int_element(p, 1), !frozen);
    }
    JsonArray *children = ds_array(node, "children");
    for (guint i = 0; children != NULL && i < json_array_get_length(children); i++)
        add_module(tree, json_array_get_object_element(children, i), index);
}

/* Call orders and leaf marks need the whole tree. */
static void
mark_module(ZpDsTree *tree, JsonObject *node, gboolean leaves)
{
    gint32 index = zp_ds_tree_find_module(tree, ds_text(node, "name", ""));
    JsonArray *calls = ds_array(node, "calls");
    if (calls != NULL && !leaves) {
        g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(gint32));
        for (guint i = 0; i < json_array_get_length(calls); i++) {
            gint32 child = zp_ds_tree_find_module(tree, json_array_get_string_element(calls, i));
            g_array_append_val(order, child);
        }
        zp_ds_tree_set_calls(tree, index, &g_array_index(order, gint32, 0), (gint32)order->len);
    }
    if (leaves && ds_flag(node, "leaf"))
        zp_ds_tree_set_leaf(tree, index);
    JsonArray *children = ds_array(node, "children");
    for (guint i = 0; children != NULL && i < json_array_get_length(children); i++)
        mark_module(tree, json_array_get_object_element(children, i), leaves);
}

static ZpDsTree *
build_tree(JsonObject *root)
{
    ZpDsTree *tree = zp_ds_tree_new();
    JsonObject *node = ds_object(root, "tree");
    add_module(tree, node, ZP_MODEL_NONE);
    mark_module(tree, node, FALSE);
    zp_ds_tree_finish(tree);
    mark_module(tree, node, TRUE);
    return tree;
}

/* Log */

static char *
join_names(const ZpDsTree *tree, const ZpDsEvent *event)
{
    GString *names = g_string_new(NULL);
    for (gint32 i = 0; i < event->n_ids; i++) {
        g_string_append(names, i > 0 ? "+" : "");
        g_string_append(names, zp_ds_tree_parameter(tree, event->ids[i])->name);
    }
    return g_string_free(names, FALSE);
}

void
ds_log_event(GPtrArray *log, const ZpDsTree *tree, const ZpDsEvent *event)
{
    g_autofree char *names = join_names(tree, event);
    const char *module =
        event->module != ZP_MODEL_NONE ? zp_ds_tree_module(tree, event->module)->name : "";
    char *line = NULL;
    switch (event->kind) {
    case ZP_DS_FORWARD_PRE:
        line = g_strdup_printf(">F:%s", module);
        break;
    case ZP_DS_FORWARD_POST:
        line = g_strdup_printf("<F:%s", module);
        break;
    case ZP_DS_BACKWARD_PRE:
        line = g_strdup_printf(">B:%s", module);
        break;
    case ZP_DS_BACKWARD_POST:
        line = g_strdup_printf("<B:%s", module);
        break;
    case ZP_DS_GATHER:
        line = g_strdup_printf("AG(%s;%" G_GINT64_FORMAT ";%" G_GINT64_FORMAT ")", names,
                               event->elements, event->flat_elements);
        break;
    case ZP_DS_WAIT:
        line = g_strdup_printf("W(%s)", names);
        break;
    case ZP_DS_RELEASE:
        line = g_strdup_printf("R(%s)", names);
        break;
    case ZP_DS_FLAT_FREED:
        line = g_strdup_printf("FF(%s;%" G_GINT64_FORMAT ")", names, event->flat_elements);
        break;
    case ZP_DS_PERSIST:
        line = g_strdup_printf("P(%s)", names);
        break;
    case ZP_DS_CHECK:
        line = g_strdup_printf("CHK(%" G_GINT64_FORMAT ")", event->elements);
        break;
    case ZP_DS_LEFTOVERS:
        line = g_strdup("LEFT");
        break;
    case ZP_DS_STEP:
        line = g_strdup("STEP");
        break;
    case ZP_DS_INVALID:
        line = g_strdup("INVALID");
        break;
    case ZP_DS_FORWARD_RUN:
    case ZP_DS_BACKWARD_RUN:
    case ZP_DS_COMPUTE_WAIT:
    case ZP_DS_POP:
    case ZP_DS_POPPED:
    case ZP_DS_SWAP_IN:
    case ZP_DS_READ_AHEAD:
    case ZP_DS_SECONDARY:
    case ZP_DS_DROP_SECONDARY:
        return;
    }
    g_ptr_array_add(log, line);
}

/* One case being replayed */

typedef struct {
    DsCheck *check;
    const ZpDsTree *tree;
    ZpDsGathers *gathers;
    ZpDsCoordinator *coordinator;
    ZpDsWalk *walk;
    GPtrArray *log;
    gint64 n_gathers, n_gathered, elements, flat_elements, n_releases, n_persisted;
    gint32 scanned; /* tape instructions whose memory is counted */
    gint64 live_bytes, peak_bytes;
} Replay;

static void
listen(const ZpDsEvent *event, gpointer data)
{
    Replay *replay = data;
    ds_log_event(replay->log, replay->tree, event);
    zp_ds_gathers_handle(replay->gathers, event);
    if (event->kind == ZP_DS_GATHER) {
        replay->n_gathers++;
        replay->n_gathered += event->n_ids;
        replay->elements += event->elements;
        replay->flat_elements += event->flat_elements;
    }
    replay->n_releases += event->kind == ZP_DS_RELEASE;
    replay->n_persisted += event->kind == ZP_DS_PERSIST;
}

/* Plays the memory of the tape's new instructions in host order. */
static void
play_memory(Replay *replay)
{
    const ZpTape *tape = replay->gathers->ds->tape;
    replay->peak_bytes = replay->live_bytes;
    for (; replay->scanned < tape->n_instrs; replay->scanned++) {
        const ZpTapeInstr *instr = &tape->instrs[replay->scanned];
        if (instr->op != ZP_TAPE_ALLOC && instr->op != ZP_TAPE_FREE)
            continue;
        gint64 bytes = tape->buffers[instr->a].bytes;
        replay->live_bytes += instr->op == ZP_TAPE_ALLOC ? bytes : -bytes;
        replay->peak_bytes = MAX(replay->peak_bytes, replay->live_bytes);
    }
}

static void
begin(Replay *replay)
{
    g_ptr_array_set_size(replay->log, 0);
    replay->n_gathers = replay->n_gathered = replay->elements = replay->flat_elements = 0;
    replay->n_releases = replay->n_persisted = 0;
}

static void
compare_micro_batch(Replay *replay, const char *where, JsonObject *expected, gboolean checks)
{
    if (expected == NULL)
        return;
    DsCheck *check = replay->check;
    g_autofree char *events = g_strdup_printf("%s events", where);
    if (!checks) /* the trace comparisons of the first iterations are not steady */
        for (guint i = replay->log->len; i-- > 0;)
            if (g_str_has_prefix(replay->log->pdata[i], "CHK("))
                g_ptr_array_remove_index(replay->log, i);
    ds_expect_list(check, events, replay->log, ds_array(expected, "events"));
    const int bytes = zp_dtype_bits(ZP_DTYPE_BF16) / 8;
    const struct {
        const char *key;
        gint64 ours;
    } counts[] = {
        {"n_allgathers", replay->n_gathers},
        {"n_params_gathered", replay->n_gathered},
        {"elements_gathered", replay->elements},
        {"flat_elements_gathered", replay->flat_elements},
        {"n_releases", replay->n_releases},
        {"n_persistent_regathers", replay->n_persisted},
        {"peak_elements", replay->peak_bytes / bytes},
        {"resident_elements_end", replay->live_bytes / bytes},
        {"max_n_available", zp_ds_coordinator_take_max_available(replay->coordinator)},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(counts); i++) {
        g_autofree char *what = g_strdup_printf("%s %s", where, counts[i].key);
        ds_expect_int(check, what, counts[i].ours, ds_int(expected, counts[i].key, -1));
    }
}

static void
micro_batch(Replay *replay, gboolean backward, gboolean step, gboolean persist)
{
    begin(replay);
    zp_ds_walk_forward(replay->walk);
    if (backward)
        zp_ds_walk_backward(replay->walk);
    zp_ds_coordinator_leftovers(replay->coordinator);
    if (step)
        zp_ds_coordinator_step(replay->coordinator);
    if (step && persist)
        zp_ds_coordinator_persist(replay->coordinator);
    play_memory(replay);
    const char *error = zp_ds_coordinator_error(replay->coordinator);
    if (error != NULL)
        ds_diverge(replay->check, "%s", error);
}

static void
replay_script(Replay *replay, JsonArray *script, JsonArray *sequence)
{
    for (guint i = 0; i < json_array_get_length(script); i++) {
        const char *kind = json_array_get_string_element(script, i);
        gboolean train = strcmp(kind, "train") == 0;
        gboolean overflow = strcmp(kind, "overflow") == 0;
        micro_batch(replay, train || overflow, train || overflow, train);
        g_autofree char *where = g_strdup_printf("iteration %u (%s)", i, kind);
        compare_micro_batch(replay, where, json_array_get_object_element(sequence, i), TRUE);
    }
}

static void
replay_steps(Replay *replay, gint64 accumulation, JsonObject *expected)
{
    gint64 steady_from = ds_int(expected, "steady_from_step", 1);
    for (gint64 step = 0; step < MAX(4, steady_from + 1); step++) {
        JsonArray *theirs = NULL;
        if (step == 0)
            theirs = ds_array(expected, "iteration_0");
        else if (step >= steady_from)
            theirs = ds_array(expected, "steady");
        else if (step == 1)
            theirs = ds_array(expected, "iteration_1");
        for (gint64 m = 0; m < accumulation; m++) {
            gboolean last = m == accumulation - 1;
            micro_batch(replay, TRUE, last, last);
            g_autofree char *where = g_strdup_printf("step %d micro-batch %d", (int)step, (int)m);
            if (theirs != NULL)
                compare_micro_batch(replay, where, json_array_get_object_element(theirs, (guint)m),
                                    step == 0);
            else
                zp_ds_coordinator_take_max_available(replay->coordinator);
        }
    }
}

static void
compare_derived(DsCheck *check, const ZpDsTree *tree, JsonObject *derived, gboolean fast,
                gint32 ranks)
{
    g_autoptr(GPtrArray) leaves = g_ptr_array_new();
    g_autoptr(GPtrArray) persistent = g_ptr_array_new();
    gint64 total = 0, partition = 0;
    for (guint i = 0; i < tree->modules->len; i++)
        if (zp_ds_tree_module(tree, (gint32)i)->leaf)
            g_ptr_array_add(leaves, (gpointer)zp_ds_tree_module(tree, (gint32)i)->name);
    for (guint i = 0; i < tree->parameters->len; i++) {
        const ZpDsParameter *parameter = zp_ds_tree_parameter(tree, (gint32)i);
        if (parameter->persistent)
            g_ptr_array_add(persistent, (gpointer)parameter->name);
        total += parameter->elements;
        partition += zp_ds_partition_elements(parameter->elements, ranks);
    }
    ds_expect_list(check, "leaf modules", leaves, ds_array(derived, "leaf_modules"));
    ds_expect_list(check, "persistent parameters", persistent, ds_array(derived, "persistent"));
    ds_expect_int(check, "fast sharding", fast, ds_flag(derived, "fast_sharding"));
    ds_expect_int(check, "parameters", tree->parameters->len, ds_int(derived, "n_params", -1));
    ds_expect_int(check, "elements", total, ds_int(derived, "total_elements", -1));
    ds_expect_int(check, "partition", partition, ds_int(derived, "partition_elements", -1));
}

void
ds_check_coordinator(DsCheck *check, JsonObject *root)
{
    g_autoptr(ZpDsTree) tree = build_tree(root);
    JsonObject *config = ds_object(root, "config");
    gint32 ranks = (gint32)ds_int(config, "world_size", 1);
    gint64 granularity = ds_int(config, "module_granularity_threshold", 0);
    if (granularity > 0)
        zp_ds_tree_mark_leaves(tree, granularity);
    zp_ds_tree_mark_persistent(tree, ds_int(config, "param_persistence_threshold", 100000),
                               ds_int(config, "model_persistence_threshold", G_MAXINT64));
    JsonArray *checkpointed = ds_array(config, "checkpointed");
    for (guint i = 0; checkpointed != NULL && i < json_array_get_length(checkpointed); i++) {
        const char *name = json_array_get_string_element(checkpointed, i);
        zp_ds_tree_module(tree, zp_ds_tree_find_module(tree, name))->checkpointed = TRUE;
    }
    compare_derived(check, tree, ds_object(root, "derived"), granularity > 0, ranks);
    ZpDeepspeed settings;
    zp_deepspeed_init(&settings);
    ZpJob job;
    ds_fill_job(&job, ranks, 3);
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    ZpDs ds = {0};
    g_autoptr(GError) error = NULL;
    if (!zp_ds_init(&ds, &job, &settings, tape, &error)) {
        ds_diverge(check, "%s", error->message);
        return;
    }
    ZpDsCoordinatorConfig policy = {
        .prefetch_bucket_elements = ds_int(config, "prefetch_bucket_size", 50000000),
        .max_live_elements = ds_int(config, "max_live_parameters", 1000000000),
        .max_reuse_distance_elements = ds_int(config, "max_reuse_distance", 1000000000),
        .ranks = ranks,
        .secondary_ranks = 1,
    };
    g_autoptr(ZpDsCoordinator) coordinator = zp_ds_coordinator_new(tree, &policy);
    g_auto(ZpDsGathers) gathers = {0};
    zp_ds_gathers_init(&gathers, &ds, tree);
    g_auto(ZpDsWalk) walk = {0};
    zp_ds_walk_init(&walk, tree, coordinator);
    g_autoptr(GPtrArray) log = g_ptr_array_new_with_free_func(g_free);
    Replay replay = {.check = check,
                     .tree = tree,
                     .gathers = &gathers,
                     .coordinator = coordinator,
                     .walk = &walk,
                     .log = log};
    zp_ds_coordinator_listen(coordinator, listen, &replay);
    JsonObject *expected = ds_object(root, "expected");
    JsonArray *script = ds_array(root, "script");
    if (script != NULL)
        replay_script(&replay, script, ds_array(expected, "sequence"));
    else
        replay_steps(&replay, ds_int(config, "gradient_accumulation_steps", 1), expected);
}
