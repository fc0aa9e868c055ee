/* torchtitan's TOML (config/job_config.py; distributed/fsdp.py). */
#include "scenarios/imports/fsdp/reader_internal.h"

#include <string.h>

#define MT (ZP_DS_EFFECT_MEMORY | ZP_DS_EFFECT_TIME)
#define P "parallelism."
#define A "activation_checkpoint."
#define C "compile."
#define MAX_DEGREE (1 << 16) /* products of a few of them stay far from overflow */

static const char *const parallel_keys[] = {
    "data_parallel_replicate_degree",
    "data_parallel_shard_degree",
    "fsdp_reshard_after_forward",
    "tensor_parallel_degree",
    "context_parallel_degree",
    "pipeline_parallel_degree",
    "expert_parallel_degree",
    "expert_tensor_parallel_degree",
    "enable_async_tensor_parallel",
    "disable_loss_parallel",
    "enable_compiled_autograd",
    "context_parallel_rotate_method",
    "pipeline_parallel_split_points",
    "pipeline_parallel_layers_per_stage",
    "pipeline_parallel_schedule",
    "pipeline_parallel_schedule_csv",
    "pipeline_parallel_microbatch_size",
    "module_fqns_per_model_part",
    "pipeline_parallel_first_stage_less_layers",
    "pipeline_parallel_last_stage_less_layers",
    NULL,
};

static const char *const training_keys[] = {
    "local_batch_size",
    "batch_size",
    "global_batch_size",
    "seq_len",
    "mixed_precision_param",
    "mixed_precision_reduce",
    "enable_cpu_offload",
    "dtype",
    "max_norm",
    "steps",
    "dataset",
    "dataset_path",
    "compile",
    "gc_freq",
    "gc_debug",
    "seed",
    "deterministic",
    NULL,
};

static const char *const compile_keys[] = {"enable", "components", "backend", NULL};

static const char *const checkpoint_keys[] = {
    "mode",
    "selective_ac_option",
    "per_op_sac_force_recompute_mm_shapes_by_fqns",
    "early_stop",
    "memory_budget",
    "visualize_memory_budget_pareto",
    "preserve_rng_state",
    "determinism_check",
    "debug",
    NULL,
};

/* Where a key stands: at its path, or where the first versions had it. */
static const char *
place_of(const ZpFsdpReader *reader, const char *path, const char *old)
{
    if (zp_tree_path(reader->root, path) || !zp_tree_path(reader->root, old))
        return path;
    g_autofree char *mend = g_strdup_printf("write %s", path);
    zp_fsdp_reader_say(reader, ZP_IMPORT_DEPRECATED, old, mend, "old place of %s", path);
    return old;
}

/* Degrees that divide the world beside data parallelism; 0: not said. */
static gint32
read_degree(const ZpFsdpReader *reader, const char *path, const char *remark)
{
    gint64 degree = 0;
    zp_fsdp_reader_count(reader, &(ZpFsdpField){path, MT, "ranks", NULL, remark}, 1, &degree);
    if (degree <= MAX_DEGREE)
        return (gint32)degree;
    zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, path, NULL, "no world has that many ranks");
    return 0;
}

static void
read_data_degrees(const ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    const char *replicate = place_of(reader, P "data_parallel_replicate_degree",
                                     "training.data_parallel_replicate_degree");
    const char *shard =
        place_of(reader, P "data_parallel_shard_degree", "training.data_parallel_shard_degree");
    config->replicate_degree = 1;
    config->shard_degree = -1;
    zp_fsdp_reader_count(reader, &(ZpFsdpField){replicate, MT, "ranks", "1", NULL}, 1,
                         &config->replicate_degree);
    zp_fsdp_reader_count(
        reader,
        &(ZpFsdpField){shard, MT, "ranks", "-1", "-1: all ranks that the other degrees leave"}, -1,
        &config->shard_degree);
    if (config->shard_degree == 0)
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, shard,
                           "write -1 (all that are left) or at least 1", "0 is out of range");
}

static gint32
read_pipeline(const ZpFsdpReader *reader)
{
    const char *path =
        place_of(reader, P "pipeline_parallel_degree", "experimental.pipeline_parallel_degree");
    gint32 pipeline = read_degree(reader, path, NULL);
    if (reader->context->pipeline)
        reader->config->parallel.pipeline = pipeline;
    else if (pipeline > 1)
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, path,
                           "write zero.runtime = ideal and zero.stage = 0 or 1 in the scenario",
                           "left out, its ranks count as data parallel: the runtime fsdp2 has no "
                           "pipeline here, the runtime ideal has at stages 0 and 1");
    return pipeline;
}

/* torchtitan asserts that the product of the degrees is its world (distributed/parallel_dims.py);
 * expert parallel ranks are among the others. */
static void
read_degrees(const ZpFsdpReader *reader, gint32 *pipeline)
{
    ZpFsdpConfig *config = reader->config;
    ZpParallel *parallel = &config->parallel;
    read_data_degrees(reader);
    parallel->tensor = read_degree(
        reader, place_of(reader, P "tensor_parallel_degree", "training.tensor_parallel_degree"),
        "with sequence parallelism, as torchtitan's plans have it");
    parallel->sequence = parallel->tensor > 1;
    parallel->context = read_degree(
        reader,
        place_of(reader, P "context_parallel_degree", "experimental.context_parallel_degree"),
        "parameters are sharded over its ranks too");
    *pipeline = read_pipeline(reader);
    if (read_degree(reader, P "expert_parallel_degree", NULL) > 1)
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, P "expert_parallel_degree", "write 1",
                           "expert parallelism is not modelled: this degree is left out");
    gint64 model = (gint64)MAX(1, parallel->tensor) * MAX(1, parallel->context) * MAX(1, *pipeline);
    if (config->shard_degree > 0 &&
        (__builtin_mul_overflow(config->replicate_degree, config->shard_degree, &config->degrees) ||
         __builtin_mul_overflow(config->degrees, model, &config->degrees)))
        config->degrees = G_MAXINT64;
}

/* What torchtitan can do with its degrees and the simulation cannot. */
static void
read_switches(const ZpFsdpReader *reader)
{
    gboolean whole_logits = FALSE;
    zp_fsdp_reader_boolean(reader, &(ZpFsdpField){P "disable_loss_parallel", 0, NULL, NULL, NULL},
                           &whole_logits);
    if (whole_logits && reader->config->parallel.tensor > 1)
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, P "disable_loss_parallel", NULL,
                           "not modelled: tensor parallel ranks keep a part of the logits each, "
                           "the file gathers them");
    static const char *const waits[] = {"enable_async_tensor_parallel",
                                        "context_parallel_rotate_method", NULL};
    zp_fsdp_reader_skip(reader, "parallelism", waits,
                        "not modelled: communication of the model is blocking, keys and values are "
                        "gathered");
}

static void
read_parallelism(const ZpFsdpReader *reader)
{
    static const char *const policies[] = {"default", "always", "never", NULL};
    ZpFsdpConfig *config = reader->config;
    gint32 pipeline = 0;
    int policy = 0;
    read_degrees(reader, &pipeline);
    read_switches(reader);
    zp_fsdp_reader_choice(reader,
                          &(ZpFsdpField){P "fsdp_reshard_after_forward", MT, NULL, "default",
                                         "default: true without pipeline parallelism"},
                          policies, 0, &policy);
    config->reshard_after_forward = policy == 1 || (policy == 0 && pipeline <= 1);
    gboolean hybrid = config->replicate_degree > 1;
    if (config->shard_degree == 1 && config->parallel.context <= 1)
        config->strategy = ZP_FSDP_NO_SHARD;
    else if (config->reshard_after_forward)
        config->strategy = hybrid ? ZP_FSDP_HYBRID_SHARD : ZP_FSDP_FULL_SHARD;
    else
        config->strategy = hybrid ? ZP_FSDP_HYBRID_SHARD_ZERO2 : ZP_FSDP_SHARD_GRAD_OP;
}

static ZpCompile
compile_of(const ZpFsdpReader *reader, const ZpFsdpField *field, char **components)
{
    gboolean model = FALSE, loss = FALSE;
    for (char **name = components; name != NULL && *name != NULL; name++) {
        if (strcmp(*name, "model") == 0)
            model = TRUE;
        else if (strcmp(*name, "loss") == 0)
            loss = TRUE;
        else
            zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, field->path, "legal: model, loss",
                               "%s is no component that torchtitan compiles", *name);
    }
    if (loss && !model)
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, field->path, "add model",
                           "a compiled loss without compiled blocks is not modelled: read as none");
    return !model ? ZP_COMPILE_NONE : loss ? ZP_COMPILE_BLOCKS_AND_LOSS : ZP_COMPILE_BLOCKS;
}

/* [compile]; before there was one, training.compile compiled blocks and loss
 * (components/loss.py). */
static void
read_compile(const ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    gboolean enabled = FALSE, old = FALSE;
    ZpFsdpField components = {C "components", MT, NULL, NULL, NULL};
    zp_fsdp_reader_boolean(reader, &(ZpFsdpField){C "enable", MT, NULL, "false", NULL}, &enabled);
    if (zp_fsdp_reader_boolean(
            reader, &(ZpFsdpField){"training.compile", MT, NULL, NULL, "blocks and loss"}, &old))
        zp_fsdp_reader_say(reader, ZP_IMPORT_DEPRECATED, "training.compile", "write compile.enable",
                           "old name of compile.enable");
    if (!enabled)
        components.remark = "no effect without enable";
    g_auto(GStrv) names = NULL;
    const ZpTree *list = zp_tree_path(reader->root, components.path);
    gboolean said = zp_fsdp_reader_names(reader, &components, &names);
    gboolean empty = list != NULL && list->kind == ZP_TREE_ARRAY && list->members->len == 0;
    if (enabled && (said || empty))
        config->compile = compile_of(reader, &components, names);
    else if (enabled || old)
        config->compile = ZP_COMPILE_BLOCKS_AND_LOSS;
    static const char *const others[] = {"backend", NULL};
    zp_fsdp_reader_skip(reader, "compile", others, "inductor is what is modelled");
}

static void
read_checkpoint(const ZpFsdpReader *reader)
{
    static const char *const modes[] = {"none", "selective", "full", "memory_budget", NULL};
    ZpFsdpConfig *config = reader->config;
    int mode = 1;
    zp_fsdp_reader_choice(reader, &(ZpFsdpField){A "mode", MT, NULL, "selective", NULL}, modes, 0,
                          &mode);
    if (mode == 3)
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, A "mode", "write selective or full",
                           "a memory budget is not modelled: read as selective by operator");
    config->checkpoint = mode == 0   ? ZP_FSDP_CHECKPOINT_NONE
                         : mode == 2 ? ZP_FSDP_CHECKPOINT_FULL
                                     : ZP_FSDP_CHECKPOINT_OP;
    const char *unused = mode == 1 ? NULL : "no effect with this mode";
    const ZpTree *option = zp_fsdp_reader_take(
        reader, &(ZpFsdpField){A "selective_ac_option", mode == 1 ? MT : 0, NULL, NULL, unused},
        NULL);
    if (!option || mode != 1)
        return;
    ZpTree number = {.kind = option->kind, .integer = option->integer};
    if (option->kind == ZP_TREE_STRING)
        zp_tree_parse_number(&number, option->text);
    if (number.kind == ZP_TREE_INTEGER && number.integer > 0) {
        config->checkpoint = ZP_FSDP_CHECKPOINT_LAYERS;
        config->checkpoint_every = number.integer;
    } else if (option->kind != ZP_TREE_STRING || strcmp(option->text, "op") != 0) {
        g_autofree char *shown = zp_tree_show(option);
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, A "selective_ac_option",
                           "write \"op\", or a number n for every n-th block",
                           "%s is neither op nor a number of blocks", shown);
    }
}

static void
read_training(const ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    gint64 global = 0;
    config->stored = ZP_DTYPE_FP32;
    config->gathered = ZP_DTYPE_BF16;
    config->reduced = ZP_DTYPE_FP32;
    if (zp_fsdp_reader_count(reader,
                             &(ZpFsdpField){"training.batch_size", MT, "samples", NULL, NULL}, 1,
                             &config->micro_batch))
        zp_fsdp_reader_say(reader, ZP_IMPORT_DEPRECATED, "training.batch_size",
                           "write local_batch_size", "old name of local_batch_size");
    zp_fsdp_reader_count(reader,
                         &(ZpFsdpField){"training.local_batch_size", MT, "samples", NULL, NULL}, 1,
                         &config->micro_batch);
    zp_fsdp_reader_count(reader, &(ZpFsdpField){"training.seq_len", MT, "tokens", NULL, NULL}, 1,
                         &config->sequence);
    zp_fsdp_reader_count(reader,
                         &(ZpFsdpField){"training.global_batch_size", MT, "samples", NULL,
                                        "accumulation = global / (local x data-parallel ranks); "
                                        "-1: no accumulation"},
                         -1, &global);
    if (global == -1 || !zp_tree_path(reader->root, "training.global_batch_size"))
        config->accumulation = 1;
    else if (global > 0)
        config->global_batch = global;
    else
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, "training.global_batch_size",
                           "write -1 (no accumulation) or at least 1", "0 is out of range");
    zp_fsdp_reader_format(reader,
                          &(ZpFsdpField){"training.dtype", ZP_DS_EFFECT_MEMORY, NULL, "float32",
                                         "format of the sharded parameters"},
                          &config->stored);
    zp_fsdp_reader_format(reader,
                          &(ZpFsdpField){"training.mixed_precision_param", MT, NULL, "bfloat16",
                                         "sharded parameters are cast to it for gathering"},
                          &config->gathered);
    zp_fsdp_reader_format(reader,
                          &(ZpFsdpField){"training.mixed_precision_reduce", MT, NULL, "float32",
                                         "gradients are reduced in it"},
                          &config->reduced);
    if (config->reduced != ZP_DTYPE_FP32)
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, "training.mixed_precision_reduce",
                           "write float32", "torchtitan reduces in float32 only");
    zp_fsdp_reader_boolean(reader,
                           &(ZpFsdpField){"training.enable_cpu_offload", MT, NULL, "false", NULL},
                           &config->offload_parameters);
}

void
zp_fsdp_titan_read(ZpFsdpReader *reader)
{
    ZpFsdpConfig *config = reader->config;
    config->version = 2;
    config->uses_fsdp = TRUE;
    config->wrap = ZP_FSDP_WRAP_TITAN;
    config->backward_prefetch = ZP_FSDP_PREFETCH_PRE;
    read_training(reader);
    read_parallelism(reader);
    read_checkpoint(reader);
    read_compile(reader);
    const char *text = "torchtitan refuses unknown keys";
    zp_fsdp_reader_rest(reader, "parallelism", ZP_IMPORT_WARNING, TRUE, parallel_keys, text);
    zp_fsdp_reader_rest(reader, "training", ZP_IMPORT_WARNING, TRUE, training_keys, text);
    zp_fsdp_reader_rest(reader, "activation_checkpoint", ZP_IMPORT_WARNING, TRUE, checkpoint_keys,
                        text);
    zp_fsdp_reader_rest(reader, "compile", ZP_IMPORT_WARNING, TRUE, compile_keys, text);
    static const char *const sections[] = {"parallelism", "training", "activation_checkpoint",
                                           "compile", NULL};
    zp_fsdp_reader_rest(reader, "", ZP_IMPORT_WARNING, TRUE, sections, text);
}
