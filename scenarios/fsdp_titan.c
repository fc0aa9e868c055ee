/* torchtitan's TOML (config/job_config.py; distributed/fsdp.py). */
#include "scenarios/fsdp_reader.h"

#include <string.h>

#define MT (ZP_DS_EFFECT_MEMORY | ZP_DS_EFFECT_TIME)
#define P "parallelism."
#define A "activation_checkpoint."

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

/* Degrees that divide the world beside data parallelism. */
static gint64
read_degree(const ZpFsdpReader *reader, const char *path)
{
    gint64 degree = 1;
    zp_fsdp_reader_count(reader, &(ZpFsdpField){path, MT, "ranks", NULL, NULL}, 1, &degree);
    if (degree > 1)
        zp_fsdp_reader_say(reader, ZP_IMPORT_WARNING, path, "write 1",
                           "only data parallelism is modelled: this degree is left out");
    return degree;
}

static void
read_degrees(const ZpFsdpReader *reader, gint64 *pipeline)
{
    ZpFsdpConfig *config = reader->config;
    config->replicate_degree = 1;
    config->shard_degree = -1;
    zp_fsdp_reader_count(reader,
                         &(ZpFsdpField){P "data_parallel_replicate_degree", MT, "ranks", "1", NULL},
                         1, &config->replicate_degree);
    zp_fsdp_reader_count(reader,
                         &(ZpFsdpField){P "data_parallel_shard_degree", MT, "ranks", "-1",
                                        "-1: all ranks that the other degrees leave"},
                         -1, &config->shard_degree);
    if (config->shard_degree == 0)
        zp_fsdp_reader_say(reader, ZP_IMPORT_ERROR, P "data_parallel_shard_degree",
                           "write -1 (all that are left) or at least 1", "0 is out of range");
    read_degree(reader, P "tensor_parallel_degree");
    read_degree(reader, P "context_parallel_degree");
    read_degree(reader, P "expert_parallel_degree");
    *pipeline = read_degree(reader, P "pipeline_parallel_degree");
}

static void
read_parallelism(const ZpFsdpReader *reader)
{
    static const char *const policies[] = {"default", "always", "never", NULL};
    ZpFsdpConfig *config = reader->config;
    gint64 pipeline;
    int policy = 0;
    read_degrees(reader, &pipeline);
    zp_fsdp_reader_choice(reader,
                          &(ZpFsdpField){P "fsdp_reshard_after_forward", MT, NULL, "default",
                                         "default: true without pipeline parallelism"},
                          policies, 0, &policy);
    config->reshard_after_forward = policy == 1 || (policy == 0 && pipeline == 1);
    gboolean hybrid = config->replicate_degree > 1;
    if (config->shard_degree == 1)
        config->strategy = ZP_FSDP_NO_SHARD;
    else if (config->reshard_after_forward)
        config->strategy = hybrid ? ZP_FSDP_HYBRID_SHARD : ZP_FSDP_FULL_SHARD;
    else
        config->strategy = hybrid ? ZP_FSDP_HYBRID_SHARD_ZERO2 : ZP_FSDP_SHARD_GRAD_OP;
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
    const char *text = "torchtitan refuses unknown keys";
    zp_fsdp_reader_rest(reader, "parallelism", ZP_IMPORT_WARNING, TRUE, parallel_keys, text);
    zp_fsdp_reader_rest(reader, "training", ZP_IMPORT_WARNING, TRUE, training_keys, text);
    zp_fsdp_reader_rest(reader, "activation_checkpoint", ZP_IMPORT_WARNING, TRUE, checkpoint_keys,
                        text);
    static const char *const sections[] = {"parallelism", "training", "activation_checkpoint",
                                           NULL};
    zp_fsdp_reader_rest(reader, "", ZP_IMPORT_WARNING, TRUE, sections, text);
}
