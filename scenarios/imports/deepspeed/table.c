#include "scenarios/imports/deepspeed/table_internal.h"

#define FIRST 0
#include "scenarios/imports/deepspeed/table_words_internal.h"

/* One row, one paragraph. */
/* clang-format off */
const ZpDsEntry zp_ds_table_core[ZP_DS_OPTIMIZER] = {
    /* batch and training */
    ROW(TRAIN_BATCH_SIZE, "train_batch_size", .kind = ZP_DS_COUNT, .unit = "samples",
        .automatic = "per-device batch size x accumulation x world size", .least = 1, NO_LIMIT,
        NULLABLE, MEMORY_TIME,
        .help = "samples of one optimizer step over all ranks: micro batch x accumulation x "
            "data-parallel ranks")
    ROW(MICRO_BATCH_SIZE, "train_micro_batch_size_per_gpu", .kind = ZP_DS_COUNT, .unit = "samples",
        .automatic = "per_device_train_batch_size", .least = 1, NO_LIMIT, NULLABLE, MEMORY_TIME,
        .help = "samples of one forward and backward on one rank")
    ROW(ACCUMULATION_STEPS, "gradient_accumulation_steps", .kind = ZP_DS_COUNT, .unit = "steps",
        .automatic = "gradient_accumulation_steps", .least = 1, NO_LIMIT, NULLABLE, MEMORY_TIME,
        .help = "micro batches of one optimizer step; stages 2 and 3 reduce gradients in each of "
            "them")
    ROW(MANAGED_ACCUMULATION, "managed_gradient_accumulation", BOOLEAN_TRUE,
        .help = "whether the engine counts micro batches, or the caller decides where a step ends")
    ROW(GRADIENT_CLIPPING, "gradient_clipping", .kind = ZP_DS_REAL, .fallback = "1.0",
        .automatic = "max_grad_norm", .least = 0, .most = G_MAXDOUBLE, TIME,
        .help = "largest gradient norm; the norm is computed and reduced either way")
    ROW(PRESCALE_GRADIENTS, "prescale_gradients", BOOLEAN_FALSE, .remark = "arithmetic only",
        .help = "divide gradients before the reduction, not after")
    ROW(PREDIVIDE_FACTOR, "gradient_predivide_factor", .kind = ZP_DS_REAL, .fallback = "1.0",
        .remark = "arithmetic only", .help = "part of the division done before the reduction")
    ROW(ALLREDUCE_OP, "gradient_allreduce_op", .kind = ZP_DS_CHOICE, .fallback = "mean",
        .choices = "mean|avg|sum", .remark = "arithmetic only",
        .help = "mean or sum over ranks; sum is refused at stage 3")
    ROW(COMMUNICATION_DATA_TYPE, "communication_data_type", .kind = ZP_DS_CHOICE,
        .choices = "fp16|bf16|fp32", NULLABLE, MEMORY_TIME,
        .help = "number format in which gradients are reduced; unset: the format of the model")
    ROW(SEQ_PARALLEL_DATA_TYPE, "seq_parallel_comm_data_type", .kind = ZP_DS_CHOICE,
        .fallback = "fp32", .choices = "fp16|bf16|fp32",
        .remark = "this sequence parallelism is not modelled", NULLABLE,
        .help = "the same for runs with sequence parallelism")
    ROW(SEQUENCE_PARALLEL_SIZE, "sequence_parallel_size", .kind = ZP_DS_COUNT, .unit = "ranks",
        .remark = "not taken over: its all-to-alls of heads are not modelled, parallel.context of a "
            "scenario cuts the sequence and gathers keys and values", .least = 1, NO_LIMIT,
        .help = "ranks that share one sequence; divides the data-parallel world")
    ROW(DISABLE_ALLGATHER, "disable_allgather", BOOLEAN_FALSE,
        .remark = "read and stored, never used by the ZeRO optimizers",
        .help = "replace the all-gather after the step by broadcasts")
    ROW(ALLGATHER_SIZE, "allgather_size", ELEMENTS, .fallback = "500000000",
        .remark = "write zero_optimization.allgather_bucket_size", .state = ZP_DS_DEPRECATED,
        STAGE_1,
        .help = "all-gather bucket of the oldest format, where zero_optimization is true or false")
    ROW(ALLOW_UNTESTED, "zero_allow_untested_optimizer", BOOLEAN_FALSE, .remark = "a permission",
        .help = "let ZeRO wrap an optimizer that DeepSpeed has not tested")
    ROW(FORCE_CPU_OPTIMIZER, "zero_force_ds_cpu_optimizer", BOOLEAN_TRUE, .remark = "a permission",
        .help = "insist on DeepSpeedCPUAdam where the optimizer is offloaded")
    /* precision */
    ROW(FP16, "fp16", .kind = ZP_DS_BLOCK_STRICT,
        .help = "parameters, gradients and activations in fp16")
    ROW(FP16_ENABLED, "fp16.enabled", BOOLEAN_FALSE, .automatic = "the fp16 flag", MEMORY_TIME,
        .help = "train in fp16 with fp32 master weights")
    ROW(FP16_AUTO_CAST, "fp16.auto_cast", BOOLEAN_FALSE,
        .help = "cast the inputs of the model to fp16")
    ROW(FP16_LOSS_SCALE, "fp16.loss_scale", .kind = ZP_DS_REAL, .fallback = "0", .least = 0,
        .most = G_MAXDOUBLE, .remark = "the overflow check of fp16 is modelled whatever the scale",
        .help = "fixed loss scale; 0: dynamic, which adds an overflow check to the step")
    ROW(FP16_INITIAL_SCALE_POWER, "fp16.initial_scale_power", .kind = ZP_DS_COUNT, .fallback = "16",
        .help = "first dynamic loss scale, as a power of two")
    ROW(FP16_LOSS_SCALE_WINDOW, "fp16.loss_scale_window", .kind = ZP_DS_COUNT, .unit = "steps",
        .fallback = "1000", .help = "steps without overflow before the scale doubles")
    ROW(FP16_HYSTERESIS, "fp16.hysteresis", .kind = ZP_DS_COUNT, .fallback = "2",
        .help = "overflows that are forgiven before the scale halves")
    ROW(FP16_CONSECUTIVE_HYSTERESIS, "fp16.consecutive_hysteresis", BOOLEAN_FALSE,
        .help = "forgive again after a step without overflow")
    ROW(FP16_MIN_LOSS_SCALE, "fp16.min_loss_scale", .kind = ZP_DS_REAL, .fallback = "1",
        .help = "floor of the dynamic loss scale")
    ROW(FP16_MASTER, "fp16.fp16_master_weights_and_grads", BOOLEAN_FALSE, MEMORY, PARTITIONED,
        INTENT,
        .help = "master weights and their gradients in 2 bytes instead of 4; needs CPU offload of "
            "the optimizer")
    ROW(BF16, "bf16", .kind = ZP_DS_BLOCK_STRICT,
        .help = "parameters, gradients and activations in bf16")
    ROW(BF16_ENABLED, "bf16.enabled", BOOLEAN_FALSE, .automatic = "the bf16 flag", MEMORY_TIME,
        .help = "train in bf16 with fp32 master weights")
    ROW(BF16_IMMEDIATE, "bf16.immediate_grad_update", BOOLEAN_FALSE, MEMORY, STAGE_1,
        .help = "BF16 optimizer: add each gradient to fp32 in its hook, not after backward")
    ROW(BF16_CHECK_OVERFLOW, "bf16.check_grad_overflow", BOOLEAN_TRUE, MEMORY_TIME, STAGES_1_2,
        .help = "look for infinities before the step (stages 1 and 2)")
    ROW(BF16_MASTER, "bf16.bf16_master_weights_and_grads", BOOLEAN_FALSE, MEMORY, PARTITIONED,
        INTENT,
        .help = "master weights and their gradients in 2 bytes; needs CPU offload unless "
            "bf16_optimizer_states is on")
    ROW(BF16_STATES, "bf16.bf16_optimizer_states", BOOLEAN_FALSE, MEMORY, PARTITIONED, INTENT,
        .help = "Adam moments in 2 bytes; needs bf16_master_weights_and_grads")
    ROW(BFLOAT16, "bfloat16", .kind = ZP_DS_BLOCK_STRICT, .remark = "write bf16",
        .state = ZP_DS_DEPRECATED, .help = "old spelling of bf16")
    ROW(AMP, "amp", .kind = ZP_DS_BLOCK_FREE, .remark = "use fp16, bf16 or torch_autocast",
        .state = ZP_DS_REMOVED,
        .help = "mixed precision by NVIDIA Apex; excludes fp16, bf16 and ZeRO")
    ROW(AMP_ENABLED, "amp.enabled", BOOLEAN_FALSE,
        .automatic = "the fp16 flag with the apex backend",
        .help = "mixed precision by NVIDIA Apex")
    ROW(AMP_OPT_LEVEL, "amp.opt_level", .kind = ZP_DS_TEXT, .automatic = "fp16_opt_level",
        .help = "opt level of Apex")
    ROW(DATA_TYPES, "data_types", .kind = ZP_DS_BLOCK_LOOSE,
        .help = "number formats apart from the model")
    ROW(GRAD_ACCUM_DTYPE, "data_types.grad_accum_dtype", .kind = ZP_DS_CHOICE,
        .choices = "fp32|fp16|bf16", NULLABLE, MEMORY,
        .help = "format in which gradients are accumulated; unset: that of the model. bf16 with "
            "fp32 at stage 1 selects the BF16 optimizer")
    ROW(PARAM_DTYPE, "data_types.param_dtype", .kind = ZP_DS_CHOICE, .choices = "fp32|fp16|bf16",
        .remark = "the enabled block decides", NULLABLE,
        .help = "format of parameters built by zero.Init")
    ROW(BUFFER_DTYPE, "data_types.buffer_dtype", .kind = ZP_DS_CHOICE, .choices = "fp32|fp16|bf16",
        .remark = "buffers are not modelled", NULLABLE,
        .help = "format of the buffers of the model; unset: as loaded")
    ROW(AUTOCAST, "torch_autocast", .kind = ZP_DS_BLOCK_LOOSE,
        .help = "parameters stay fp32, products run in a lower format")
    ROW(AUTOCAST_ENABLED, "torch_autocast.enabled", BOOLEAN_FALSE, .remark = "not modelled",
        .help = "switch torch.autocast on")
    ROW(AUTOCAST_DTYPE, "torch_autocast.dtype", .kind = ZP_DS_TEXT, .remark = "not modelled",
        .help = "format of the products, and of the gathers of linear and convolution layers")
    ROW(AUTOCAST_MODULES, "torch_autocast.lower_precision_safe_modules", .kind = ZP_DS_LIST,
        .remark = "not modelled",
        .help = "module classes whose parameters are gathered in the lower format")
    /* zero_optimization */
    ROW(ZERO, "zero_optimization", .kind = ZP_DS_BLOCK_STRICT,
        .help = "partitioning of optimizer states, gradients and parameters; no block: stage 0")
    ROW(STAGE, "zero_optimization.stage", .kind = ZP_DS_COUNT, .fallback = "0", .least = 0,
        .most = 3, MEMORY_TIME,
        .help = "0: nothing is partitioned; 1: optimizer states; 2: gradients too; 3: parameters "
            "too")
    ROW(CONTIGUOUS_GRADIENTS, "zero_optimization.contiguous_gradients", BOOLEAN_TRUE, MEMORY_TIME,
        PARTITIONED, .help = "copy gradients into the reduce bucket as they come")
    ROW(REDUCE_SCATTER, "zero_optimization.reduce_scatter", BOOLEAN_TRUE, MEMORY_TIME, PARTITIONED,
        .help = "reduce to the owner of each slice; false: all-reduce the whole bucket")
    ROW(REDUCE_BUCKET_SIZE, "zero_optimization.reduce_bucket_size", ELEMENTS,
        .fallback = "500000000", .automatic = "hidden size squared", .least = 1, MEMORY_TIME,
        PARTITIONED, .help = "gradients reduced together, and the length of the bucket buffer")
    ROW(MULTI_RANK_BUCKET, "zero_optimization.use_multi_rank_bucket_allreduce", BOOLEAN_TRUE, TIME,
        STAGES_1_2, .help = "one all-reduce for a bucket; false: one reduce for each owner")
    ROW(ALLGATHER_PARTITIONS, "zero_optimization.allgather_partitions", BOOLEAN_TRUE,
        .remark = "read by no code of DeepSpeed",
        .help = "gather updated parameters by all-gather, not by broadcasts")
    ROW(ALLGATHER_BUCKET_SIZE, "zero_optimization.allgather_bucket_size", ELEMENTS,
        .fallback = "500000000",
        .remark = "one all-gather per group wherever torch has all_gather_into_tensor", .least = 1,
        STAGES_1_2, .help = "parameters gathered together after the step; must be even")
    ROW(OVERLAP_COMM, "zero_optimization.overlap_comm", BOOLEAN, NULLABLE, MEMORY_TIME, PARTITIONED,
        .help = "reduce (stage 3: also gather) beside the computation; stages 1 and 2 pay a "
            "second bucket. Unset: true at stage 3, false below")
    ROW(LOAD_FROM_FP32, "zero_optimization.load_from_fp32_weights", BOOLEAN_TRUE,
        .remark = "concerns loading",
        .help = "take master weights from the fp32 copy of a checkpoint")
    ROW(ELASTIC_CHECKPOINT, "zero_optimization.elastic_checkpoint", BOOLEAN_FALSE,
        .remark = "concerns saving",
        .help = "checkpoint that another number of ranks can load; stage 3 cannot save it")
    ROW(SUB_GROUP_SIZE, "zero_optimization.sub_group_size", ELEMENTS, .fallback = "1000000000",
        .least = 1, MEMORY_TIME, STAGE_3,
        .help = "elements of the own partition stepped together: bounds the temporaries of the "
            "optimizer")
    ROW(ROUND_ROBIN, "zero_optimization.round_robin_gradients", BOOLEAN_FALSE, TIME, STAGES_1_2,
        .help = "deal parameters out to ranks in turn, so that their reductions spread")
    ROW(IGNORE_UNUSED, "zero_optimization.ignore_unused_parameters", BOOLEAN_TRUE,
        .remark = "a check", STAGES_1_2, .help = "do not stop where a parameter got no gradient")
    ROW(LEGACY_STAGE1, "zero_optimization.legacy_stage1", BOOLEAN_FALSE,
        .remark = "remove it: it exists no more and true stops the run", .state = ZP_DS_DEPRECATED,
        .help = "the first implementation of stage 1")
    ROW(PREFETCH_BUCKET_SIZE, "zero_optimization.stage3_prefetch_bucket_size", .kind = ZP_DS_COUNT,
        .alias = "prefetch_bucket_size", .unit = "elements", .fallback = "50000000",
        .automatic = "0.9 x hidden size squared, as a whole number", NO_LIMIT, MEMORY_TIME, STAGE_3,
        .help = "parameters gathered ahead at each module; 0: none")
    ROW(PARAM_PERSISTENCE, "zero_optimization.stage3_param_persistence_threshold",
        .kind = ZP_DS_COUNT, .alias = "param_persistence_threshold", .unit = "elements",
        .fallback = "100000", .automatic = "10 x hidden size", NO_LIMIT, MEMORY_TIME, STAGE_3,
        .help = "parameters up to this size stay on every rank")
    ROW(MODEL_PERSISTENCE, "zero_optimization.stage3_model_persistence_threshold",
        .kind = ZP_DS_COUNT, .alias = "model_persistence_threshold", .unit = "elements",
        .fallback = "9223372036854775807", NO_LIMIT, MEMORY_TIME, STAGE_3,
        .help = "most elements that stay on every rank, over the whole model")
    ROW(MAX_LIVE, "zero_optimization.stage3_max_live_parameters", .kind = ZP_DS_COUNT,
        .alias = "max_live_parameters", .unit = "elements", .fallback = "1000000000", NO_LIMIT,
        MEMORY_TIME, STAGE_3,
        .help = "no prefetch beyond this many gathered elements; frees nothing by itself")
    ROW(MAX_REUSE, "zero_optimization.stage3_max_reuse_distance", .kind = ZP_DS_COUNT,
        .alias = "max_reuse_distance", .unit = "elements", .fallback = "1000000000", NO_LIMIT,
        MEMORY_TIME, STAGE_3,
        .help = "a parameter used again within this many elements stays gathered")
    ROW(GATHER_16BIT, "zero_optimization.stage3_gather_16bit_weights_on_model_save",
        .kind = ZP_DS_BOOLEAN, .alias = "gather_16bit_weights_on_model_save", .fallback = "false",
        STAGE_3, .remark = "saving is not part of the modelled step",
        .help = "gather the 16-bit weights when the model is saved: one full copy in the host "
            "memory of rank 0")
    ROW(GATHER_FP16, "zero_optimization.stage3_gather_fp16_weights_on_model_save", BOOLEAN_FALSE,
        .remark = "write stage3_gather_16bit_weights_on_model_save", .state = ZP_DS_DEPRECATED,
        STAGE_3, .help = "old name of stage3_gather_16bit_weights_on_model_save")
    ROW(MODULE_GRANULARITY, "zero_optimization.stage3_module_granularity_threshold",
        .kind = ZP_DS_COUNT, .alias = "module_granularity_threshold", .unit = "elements",
        .fallback = "0", NO_LIMIT, MEMORY_TIME, STAGE_3,
        .help = "modules finer than this are fetched as one unit; 0: off")
    ROW(ALL_REDUCE_FETCH, "zero_optimization.stage3_use_all_reduce_for_fetch_params",
        .kind = ZP_DS_BOOLEAN, .alias = "use_all_reduce_for_fetch_params", .fallback = "false",
        MEMORY_TIME, STAGE_3, .help = "gather by all-reduce: twice the bytes, no copy out")
    ROW(ALLGATHER_SEQUENTIAL, "zero_optimization.stage3_allgather_sequential",
        .kind = ZP_DS_BOOLEAN, .alias = "allgather_sequential", .fallback = "false", MEMORY_TIME,
        STAGE_3, .help = "gather one parameter at a time, without a flat buffer")
    ROW(PARTITION_STREAM, "zero_optimization.stage3_partition_stream_chunk_size",
        .kind = ZP_DS_COUNT, .alias = "partition_stream_chunk_size", .unit = "elements",
        .fallback = "0", .remark = "concerns building the model", NO_LIMIT, STAGE_3,
        .help = "partition larger parameters in chunks of this size; 0: off")
    ROW(HPZ, "zero_optimization.zero_hpz_partition_size", .kind = ZP_DS_COUNT, .unit = "ranks",
        .fallback = "1", NO_LIMIT, MEMORY_TIME, STAGE_3, INTENT,
        .help = "ranks of the secondary partition (ZeRO++ hpZ): backward gathers stay inside it; "
            "1: off")
    ROW(QUANTIZED_WEIGHTS, "zero_optimization.zero_quantized_weights", BOOLEAN_FALSE, MEMORY_TIME,
        STAGE_3, INTENT, .help = "gather weights in int8 (ZeRO++ qwZ)")
    ROW(QUANTIZED_FROZEN, "zero_optimization.zero_quantized_nontrainable_weights", BOOLEAN_FALSE,
        MEMORY_TIME, STAGE_3, INTENT, .help = "store frozen weights in int8")
    ROW(QUANTIZED_GRADIENTS, "zero_optimization.zero_quantized_gradients", BOOLEAN_FALSE,
        MEMORY_TIME, STAGE_3, INTENT,
        .help = "reduce gradients by all-to-all in 4 bits (ZeRO++ qgZ)")
    ROW(LOCO, "zero_optimization.zeropp_loco_param", .kind = ZP_DS_ANY,
        .remark = "remove it; zero_quantized_gradients works without", NULLABLE,
        .state = ZP_DS_REMOVED, STAGE_3, .help = "error feedback for quantized gradients (LoCo)")
    ROW(MICS_SHARD_SIZE, "zero_optimization.mics_shard_size", .kind = ZP_DS_COUNT, .unit = "ranks",
        .fallback = "-1",
        .remark = "the nearest living option is zero_hpz_partition_size (hpZ), which keeps a "
            "second copy of the weights inside the group", .least = -1, NO_LIMIT,
        .state = ZP_DS_REMOVED, MEMORY_TIME, STAGE_3, INTENT,
        .help = "ranks that share one copy of all states (MiCS); gradients are all-reduced across "
            "the groups")
    ROW(MICS_HIERARCHICAL, "zero_optimization.mics_hierarchical_params_gather", BOOLEAN_FALSE,
        .remark = "the nearest living option is zero_hpz_partition_size (hpZ)",
        .state = ZP_DS_REMOVED, STAGE_3, .help = "MiCS: gather between nodes first, then inside")
    ROW(MEMORY_EFFICIENT_LINEAR, "zero_optimization.memory_efficient_linear", BOOLEAN_TRUE, TIME,
        STAGE_3, .remark = "the survival is not modelled, the order of gradients is",
        .help = "linear layers read the live weight in backward; false: the gathered weight "
            "survives from forward to backward")
    ROW(PIPELINE_LOADING, "zero_optimization.pipeline_loading_checkpoint", BOOLEAN_FALSE,
        .remark = "concerns loading", STAGE_3, .help = "load a checkpoint in pipeline mode")
    ROW(OVERRIDE_APPLY, "zero_optimization.override_module_apply", BOOLEAN_TRUE,
        .remark = "concerns building the model", STAGE_3,
        .help = "gather parameters inside Module.apply")
    ROW(TRACE_WARNINGS, "zero_optimization.log_trace_cache_warnings", BOOLEAN_FALSE,
        .remark = "prints", .help = "say when the trace of modules became invalid")
    ROW(SANITY_CHECKS, "zero_optimization.enable_sanity_checks", BOOLEAN_FALSE,
        .remark = "small broadcasts, not modelled", .help = "compare ranks now and then")
    ROW(MUON_IN_MEMORY, "zero_optimization.save_muon_momentum_buffer_in_memory", BOOLEAN_FALSE,
        .remark = "Muon is not modelled", .help = "keep the momentum of Muon off NVMe")
    /* inside zero_optimization: leaf modules and offload */
    ROW(LEAF_MODULE, "zero_optimization.leaf_module", .kind = ZP_DS_BLOCK_STRICT,
        .help = "modules that are fetched and released as one unit, with all below them")
    ROW(LEAF_CLASSES, "zero_optimization.leaf_module.classes", .kind = ZP_DS_LIST, MEMORY_TIME,
        STAGE_3,
        .help = "by class name; unset: the sparse blocks of Mixtral, Qwen2-MoE and Qwen3-MoE. All "
            "experts of a layer are then gathered together")
    ROW(LEAF_NAMES, "zero_optimization.leaf_module.names", .kind = ZP_DS_LIST, MEMORY_TIME, STAGE_3,
        .help = "by module name")
    ROW(LEAF_SUFFIXES, "zero_optimization.leaf_module.name_suffixes", .kind = ZP_DS_LIST, STAGE_3,
        .remark = "not modelled: name the modules in full", .help = "by the end of the module name")
    ROW(ZENFLOW, "zero_optimization.zenflow", .kind = ZP_DS_ANY,
        .remark = "ZenFlow is not modelled", NULLABLE,
        .help = "update the most important columns on the GPU, the rest on the CPU later")
    ROW(CPU_OFFLOAD, "zero_optimization.cpu_offload", BOOLEAN,
        .remark = "write offload_optimizer with device cpu", NULLABLE, .state = ZP_DS_DEPRECATED,
        MEMORY_TIME, PARTITIONED, INTENT, .help = "old switch for the optimizer on the CPU")
    ROW(CPU_OFFLOAD_PARAM, "zero_optimization.cpu_offload_param", BOOLEAN,
        .remark = "write offload_param with device cpu", NULLABLE, .state = ZP_DS_DEPRECATED,
        MEMORY_TIME, STAGE_3, INTENT, .help = "old switch for parameters on the CPU")
    ROW(CPU_OFFLOAD_PIN, "zero_optimization.cpu_offload_use_pin_memory", BOOLEAN,
        .remark = "ignored: write pin_memory inside offload_optimizer or offload_param", NULLABLE,
        .state = ZP_DS_DEPRECATED, .help = "old switch for pinned host memory")
    ROW(GRAD_HOOKS, "zero_optimization.grad_hooks", .kind = ZP_DS_ANY, .remark = "remove it",
        .state = ZP_DS_UNDEFINED, .help = "described in the documentation, defined nowhere")
    ROW(OFFLOAD_PARAM, "zero_optimization.offload_param", .kind = ZP_DS_BLOCK_STRICT, NULLABLE,
        STAGE_3, INTENT, .help = "where the 16-bit parameter partitions live; stage 3 only")
    ROW(OFFLOAD_PARAM_DEVICE, "zero_optimization.offload_param.device", .kind = ZP_DS_CHOICE,
        .fallback = "none", .choices = "none|cpu|nvme", MEMORY_TIME, STAGE_3,
        .help = "none (the GPU), cpu, or nvme")
    ROW(OFFLOAD_PARAM_PATH, "zero_optimization.offload_param.nvme_path", .kind = ZP_DS_TEXT,
        .remark = "names a place", NULLABLE, STAGE_3, .help = "folder on the NVMe device")
    ROW(OFFLOAD_PARAM_BUFFERS, "zero_optimization.offload_param.buffer_count", .kind = ZP_DS_COUNT,
        .unit = "buffers", .fallback = "5", NO_LIMIT, MEMORY, STAGE_3,
        .help = "pinned host buffers between NVMe and GPU")
    ROW(OFFLOAD_PARAM_BUFFER_SIZE, "zero_optimization.offload_param.buffer_size", ELEMENTS,
        .fallback = "100000000", MEMORY, STAGE_3,
        .help = "length of one such buffer; the largest partition must fit")
    ROW(OFFLOAD_PARAM_MAX_IN_CPU, "zero_optimization.offload_param.max_in_cpu", ELEMENTS,
        .fallback = "1000000000", MEMORY_TIME, STAGE_3,
        .help = "elements of the own partition kept in host memory beside NVMe")
    ROW(OFFLOAD_PARAM_PIN, "zero_optimization.offload_param.pin_memory", BOOLEAN_TRUE, STAGE_3,
        .remark = "parameters in host memory are pinned whatever it says",
        .help = "pinned host memory")
    ROW(OFFLOAD_OPTIMIZER, "zero_optimization.offload_optimizer", .kind = ZP_DS_BLOCK_STRICT,
        NULLABLE, PARTITIONED, INTENT,
        .help = "where master weights and moments live, and the step is computed")
    ROW(OFFLOAD_OPTIMIZER_DEVICE, "zero_optimization.offload_optimizer.device",
        .kind = ZP_DS_CHOICE, .fallback = "none", .choices = "none|cpu|nvme", MEMORY_TIME,
        PARTITIONED,
        .help = "none (the GPU), cpu, or nvme (stage 3; stages 1 and 2 take it for cpu)")
    ROW(OFFLOAD_OPTIMIZER_PATH, "zero_optimization.offload_optimizer.nvme_path", .kind = ZP_DS_TEXT,
        .remark = "names a place", NULLABLE, STAGE_3, .help = "folder on the NVMe device")
    ROW(OFFLOAD_OPTIMIZER_BUFFERS, "zero_optimization.offload_optimizer.buffer_count",
        .kind = ZP_DS_COUNT, .unit = "buffers", .fallback = "4", NO_LIMIT, MEMORY, STAGE_3,
        .help = "pinned host buffers between NVMe and CPU, each as long as the largest sub-group")
    ROW(OFFLOAD_OPTIMIZER_PIN, "zero_optimization.offload_optimizer.pin_memory", BOOLEAN_TRUE,
        MEMORY_TIME, PARTITIONED, .help = "pinned host memory")
    ROW(OFFLOAD_OPTIMIZER_READ, "zero_optimization.offload_optimizer.pipeline_read", BOOLEAN_FALSE,
        STAGE_3, .remark = "not modelled",
        .help = "read the next sub-group from NVMe beside the step")
    ROW(OFFLOAD_OPTIMIZER_WRITE, "zero_optimization.offload_optimizer.pipeline_write",
        BOOLEAN_FALSE, STAGE_3, .remark = "not modelled",
        .help = "write the previous sub-group to NVMe beside the step")
    ROW(OFFLOAD_OPTIMIZER_FAST_INIT, "zero_optimization.offload_optimizer.fast_init", BOOLEAN_FALSE,
        .remark = "concerns the start", .help = "faster first write to NVMe")
    ROW(OFFLOAD_OPTIMIZER_RATIO, "zero_optimization.offload_optimizer.ratio", .kind = ZP_DS_REAL,
        .fallback = "1.0", .least = 0, .most = 1, MEMORY_TIME, STAGE_3,
        .help = "share of the sub-groups stepped on the CPU")
    ROW(OFFLOAD_OPTIMIZER_SUPER, "zero_optimization.offload_optimizer.super_offload", BOOLEAN_FALSE,
        STAGE_3, .remark = "not modelled",
        .help = "step on the CPU beside backward, for chips with a fast link to the host")
    ROW(OFFLOAD_OPTIMIZER_CONVERT, "zero_optimization.offload_optimizer.convert_grad_on_cpu",
        BOOLEAN_TRUE, PARTITIONED, .remark = "not modelled",
        .help = "widen gradients on the CPU, not on the GPU")
    ROW(OFFLOAD_OPTIMIZER_CORES, "zero_optimization.offload_optimizer.cpuadam_cores_perc",
        .kind = ZP_DS_REAL, .fallback = "0.8", .least = 0, .most = 1, STAGE_3,
        .remark = "not modelled", .help = "share of the CPU cores that super_offload steps with")
};
