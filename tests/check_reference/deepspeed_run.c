#include <string.h>

#include "deepspeed_models.h"
#include "deepspeed_run.h"

#include "models/runtimes/deepspeed/compile.h"

/* Settings */

static ZpDtype
dtype_of(JsonObject *config, const char *key)
{
    ZpDtype dtype = ZP_DTYPE_NONE;
    const char *text = ds_text(config, key, NULL);
    if (text != NULL)
        zp_dtype_parse(text, &dtype);
    return dtype;
}

static void
read_flag(JsonObject *object, const char *key, gboolean *flag)
{
    if (object != NULL && json_object_has_member(object, key))
        *flag = json_object_get_boolean_member(object, key);
}

static void
read_offload(JsonObject *object, ZpDsOffload *offload)
{
    if (object == NULL)
        return;
    const char *device = ds_text(object, "device", "none");
    offload->device = strcmp(device, "cpu") == 0    ? ZP_DS_CPU
                      : strcmp(device, "nvme") == 0 ? ZP_DS_NVME
                                                    : ZP_DS_NOWHERE;
    read_flag(object, "pin_memory", &offload->pin_memory);
    if (json_object_has_member(object, "ratio"))
        offload->ratio = json_object_get_double_member(object, "ratio");
}

static void
read_zero(DsRun *run, JsonObject *zero)
{
    ZpDeepspeed *s = &run->settings;
    run->job.zero.stage = (int)ds_int(zero, "stage", 0);
    read_flag(zero, "contiguous_gradients", &s->contiguous_gradients);
    read_flag(zero, "reduce_scatter", &s->reduce_scatter);
    read_flag(zero, "use_multi_rank_bucket_allreduce", &s->multi_rank_bucket);
    read_flag(zero, "round_robin_gradients", &s->round_robin_gradients);
    read_flag(zero, "stage3_use_all_reduce_for_fetch_params", &s->all_reduce_for_fetch);
    read_flag(zero, "stage3_allgather_sequential", &s->allgather_sequential);
    if (json_object_has_member(zero, "overlap_comm"))
        s->overlap_comm = json_object_get_boolean_member(zero, "overlap_comm");
    const struct {
        const char *key;
        gint64 *value;
    } numbers[] = {
        {"reduce_bucket_size", &s->reduce_bucket_elements},
        {"allgather_bucket_size", &s->allgather_bucket_elements},
        {"sub_group_size", &s->sub_group_elements},
        {"stage3_prefetch_bucket_size", &s->prefetch_bucket_elements},
        {"stage3_max_live_parameters", &s->max_live_elements},
        {"stage3_max_reuse_distance", &s->max_reuse_distance_elements},
        {"stage3_param_persistence_threshold", &s->param_persistence_elements},
        {"stage3_model_persistence_threshold", &s->model_persistence_elements},
        {"stage3_module_granularity_threshold", &s->module_granularity},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        *numbers[i].value = ds_int(zero, numbers[i].key, *numbers[i].value);
    s->hpz_partition_ranks = (gint32)ds_int(zero, "zero_hpz_partition_size", 1);
    read_offload(ds_object(zero, "offload_optimizer"), &s->offload_optimizer);
    read_offload(ds_object(zero, "offload_param"), &s->offload_param);
}

static void
read_config(DsRun *run)
{
    JsonObject *config = ds_object(run->root, "ds_config");
    ZpDeepspeed *s = &run->settings;
    zp_deepspeed_init(s);
    ds_fill_job(&run->job, (gint32)ds_int(run->root, "world_size", 1), 0);
    run->optimizer =
        (ZpOptimizer){.name = "adamw", .momentum = TRUE, .variance = TRUE, .traffic_bits = 256};
    run->job.optimizer = &run->optimizer;
    read_zero(run, ds_object(config, "zero_optimization"));
    run->job.training.accumulation = ds_int(config, "gradient_accumulation_steps", 1);
    run->job.simulation.steps = (gint32)ds_int(run->root, "steps_run", 4);
    run->steps = run->job.simulation.steps;
    JsonObject *bf16 = ds_object(config, "bf16"), *fp16 = ds_object(config, "fp16");
    run->job.precision.parameter = ds_flag(bf16, "enabled")   ? ZP_DTYPE_BF16
                                   : ds_flag(fp16, "enabled") ? ZP_DTYPE_FP16
                                                              : ZP_DTYPE_FP32;
    read_flag(bf16, "check_grad_overflow", &s->check_grad_overflow);
    read_flag(bf16, "immediate_grad_update", &s->immediate_grad_update);
    s->gradient_accumulation = dtype_of(ds_object(config, "data_types"), "grad_accum_dtype");
    s->communication = dtype_of(config, "communication_data_type");
    if (json_object_has_member(config, "gradient_clipping"))
        s->gradient_clipping = json_object_get_double_member(config, "gradient_clipping");
    const char *adam = ds_text(run->root, "optimizer", "torch_adamw");
    s->adam = strcmp(adam, "fused_adam") == 0 ? ZP_DS_FUSED_ADAM
              : strcmp(adam, "cpu_adam") == 0 ? ZP_DS_CPU_ADAM
                                              : ZP_DS_TORCH_ADAM;
    s->cold = TRUE;
    s->pinned_power_of_two = FALSE; /* the recording had no pinned allocator */
    s->rank = 0;
    s->parameter_groups = run->groups;
    s->n_parameter_groups = (gint32)json_array_get_length(ds_array(run->root, "optimizer_groups"));
}

static gboolean
compile(DsRun *run)
{
    g_autoptr(GError) error = NULL;
    zp_tape_clear(run->tape);
    ZpDsTree *tree = ds_build_run_tree(run->root, run->groups);
    run->tap.tree = tree;
    run->tap.tape = run->tape;
    run->tap.all_reduce = run->settings.all_reduce_for_fetch;
    g_ptr_array_set_size(run->tap.log, 0);
    g_array_set_size(run->tap.marks, 0);
    g_array_set_size(run->tap.changes, 0);
    g_array_set_size(run->tap.step_begin, 0);
    run->tap.stepped = TRUE;
    run->tap.fast = run->settings.module_granularity > 0;
    run->tap.module = ZP_MODEL_NONE;
    g_array_set_size(run->tap.placeholder, 0);
    zp_tape_clear(run->tape);
    ZpDs formats = {0};
    if (!zp_ds_init(&formats, &run->job, &run->settings, run->tape, &error)) {
        ds_diverge(run->check, "%s", error->message);
        zp_ds_tree_free(tree);
        return FALSE;
    }
    run->formats = formats;
    zp_tape_clear(run->tape);
    if (!zp_ds_compile_tree(&run->job, &run->settings, tree, run->tape, ds_tap_event, &run->tap,
                            &error)) {
        ds_diverge(run->check, "%s", error->message);
        return FALSE;
    }
    ds_tap_finish(&run->tap);
    run->tap.tree = NULL;
    g_clear_pointer(&run->tree, zp_ds_tree_free);
    run->tree = ds_build_run_tree(run->root, run->groups);
    zp_ds_tree_mark_persistent(run->tree, run->settings.param_persistence_elements,
                               run->settings.model_persistence_elements);
    if (!zp_tape_check(run->tape, TRUE, ZP_CLASSES_PERSISTENT, &error)) {
        ds_diverge(run->check, "tape: %s", error->message);
        return FALSE;
    }
    return TRUE;
}

void
ds_check_run(DsCheck *check, JsonObject *root)
{
    DsRun *run = g_new0(DsRun, 1);
    run->check = check;
    run->root = root;
    run->expected = ds_object(root, "expected");
    run->tape = zp_tape_new(zp_vocabulary_get());
    run->tap.log = g_ptr_array_new_with_free_func(g_free);
    run->tap.marks = g_array_new(FALSE, FALSE, sizeof(DsMark));
    run->tap.changes = g_array_new(FALSE, FALSE, sizeof(DsChange));
    run->tap.step_begin = g_array_new(FALSE, FALSE, sizeof(gint32));
    run->tap.placeholder = g_array_new(FALSE, TRUE, sizeof(guint8));
    run->tap.persisted = g_string_new(NULL);
    read_config(run);
    /* A fault of the recording, not what DeepSpeed does. */
    check->skipped = ds_flag(root, "cpu_artifact") || ds_flag(run->expected, "cpu_artifact");
    if (!check->skipped && compile(run)) {
        ds_compare_layout(run);
        ds_compare_events(run);
        ds_compare_collectives(run);
        ds_compare_steadiness(run);
        ds_compare_backward_state(run);
        ds_compare_snapshots(run, ds_array(run->expected, "snapshots_rank0"));
        JsonArray *others = ds_array(run->expected, "snapshots_other_ranks");
        for (guint i = 0; others != NULL && i < json_array_get_length(others); i++) {
            run->settings.rank = (gint32)i + 1;
            if (compile(run))
                ds_compare_snapshots(run, json_array_get_array_element(others, i));
        }
    }
    zp_tape_free(run->tape);
    zp_ds_tree_free(run->tree);
    g_ptr_array_unref(run->tap.log);
    g_array_unref(run->tap.marks);
    g_array_unref(run->tap.changes);
    g_array_unref(run->tap.step_begin);
    g_array_unref(run->tap.placeholder);
    g_string_free(run->tap.persisted, TRUE);
    g_free(run);
}
