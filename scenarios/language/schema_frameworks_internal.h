/* Rows of the key table for sections that only one framework reads; included by schema_table.c
 * inside the table.  Defaults are the frameworks' (models/job/deepspeed.h, models/job/fsdp.h). */
#pragma once

#define TO_DEEPSPEED(field_)                                                         \
    .place = ZP_SCHEMA_IN_DEEPSPEED, .offset = G_STRUCT_OFFSET(ZpDeepspeed, field_), \
    .size = sizeof(((ZpDeepspeed *)0)->field_)
#define TO_FSDP(field_)                                                    \
    .place = ZP_SCHEMA_IN_FSDP, .offset = G_STRUCT_OFFSET(ZpFsdp, field_), \
    .size = sizeof(((ZpFsdp *)0)->field_)

#define ROWS_DEEPSPEED                                                                             \
    ROW(DS_CONTIGUOUS, "deepspeed", "contiguous_gradients", BOOL, BY("true"),                      \
        TO_DEEPSPEED(contiguous_gradients),                                                        \
        MEANS("Gradients are copied into bucket buffers (contiguous_gradients)", "true")),         \
        ROW(DS_REDUCE_SCATTER, "deepspeed", "reduce_scatter", BOOL, BY("true"),                    \
            TO_DEEPSPEED(reduce_scatter),                                                          \
            MEANS("Reduce to owners rather than to all (reduce_scatter)", "true")),                \
        ROW(DS_MULTI_RANK, "deepspeed", "multi_rank_bucket", BOOL, BY("true"),                     \
            TO_DEEPSPEED(multi_rank_bucket),                                                       \
            MEANS("Stages 1 and 2: one all-reduce a bucket instead of a reduce per owner "         \
                  "(use_multi_rank_bucket_allreduce)",                                             \
                  "true")),                                                                        \
        ROW(DS_ROUND_ROBIN, "deepspeed", "round_robin_gradients", BOOL, BY("false"),               \
            TO_DEEPSPEED(round_robin_gradients),                                                   \
            MEANS("Stages 1 and 2: parameters are dealt out to ranks in turn", "false")),          \
        ROW(DS_OVERLAP, "deepspeed", "overlap_comm", BOOL,                                         \
            AUTO("true at stage 3, false otherwise"), TO_DEEPSPEED(overlap_comm),                  \
            MEANS("Communication on streams of its own; a second bucket buffer at stages 1 and 2", \
                  "true")),                                                                        \
        ROW(DS_REDUCE_BUCKET, "deepspeed", "reduce_bucket", COUNT("elements", 1, MAX_ELEMENTS),    \
            BY("5e8 elements"), TO_DEEPSPEED(reduce_bucket_elements),                              \
            MEANS("Gradient bucket (reduce_bucket_size)", "2e8 elements")),                        \
        ROW(DS_ALLGATHER_BUCKET, "deepspeed", "allgather_bucket",                                  \
            COUNT("elements", 2, MAX_ELEMENTS), BY("5e8 elements"),                                \
            TO_DEEPSPEED(allgather_bucket_elements),                                               \
            MEANS("allgather_bucket_size: must be even, has no effect with a current PyTorch",     \
                  "5e8 elements")),                                                                \
        ROW(DS_SUB_GROUP, "deepspeed", "sub_group", COUNT("elements", 1, MAX_ELEMENTS),            \
            BY("1e9 elements"), TO_DEEPSPEED(sub_group_elements),                                  \
            MEANS("Stage 3: optimizer steps this many local elements at a time (sub_group_size)",  \
                  "1e8 elements")),                                                                \
        ROW(DS_PREFETCH_BUCKET, "deepspeed", "prefetch_bucket",                                    \
            COUNT("elements", 0, MAX_ELEMENTS), BY("5e7 elements"),                                \
            TO_DEEPSPEED(prefetch_bucket_elements),                                                \
            MEANS("Stage 3: gathered ahead at each hook (stage3_prefetch_bucket_size); 0: no "     \
                  "prefetch",                                                                      \
                  "5e7 elements")),                                                                \
        ROW(DS_MAX_LIVE, "deepspeed", "max_live_parameters", COUNT("elements", 0, MAX_ELEMENTS),   \
            BY("1e9 elements"), TO_DEEPSPEED(max_live_elements),                                   \
            MEANS("Stage 3: caps prefetching, forces no release (stage3_max_live_parameters)",     \
                  "3e8 elements")),                                                                \
        ROW(DS_MAX_REUSE, "deepspeed", "max_reuse_distance", COUNT("elements", 0, MAX_ELEMENTS),   \
            BY("1e9 elements"), TO_DEEPSPEED(max_reuse_distance_elements),                         \
            MEANS("Stage 3: a parameter used again within this distance stays gathered "           \
                  "(stage3_max_reuse_distance)",                                                   \
                  "1e9 elements")),                                                                \
        ROW(DS_PARAM_PERSISTENCE, "deepspeed", "param_persistence",                                \
            COUNT("elements", 0, MAX_ELEMENTS), BY("1e5 elements"),                                \
            TO_DEEPSPEED(param_persistence_elements),                                              \
            MEANS("Stage 3: parameters up to this size stay whole "                                \
                  "(stage3_param_persistence_threshold)",                                          \
                  "1e5 elements")),                                                                \
        ROW(DS_MODEL_PERSISTENCE, "deepspeed", "model_persistence",                                \
            COUNT("elements", 0, MAX_ELEMENTS), WORD("unlimited", G_MAXINT64), BY("unlimited"),    \
            TO_DEEPSPEED(model_persistence_elements),                                              \
            MEANS("Stage 3: at most this many elements stay whole "                                \
                  "(stage3_model_persistence_threshold)",                                          \
                  "1e7 elements")),                                                                \
        ROW(DS_GRANULARITY, "deepspeed", "module_granularity", COUNT(NULL, 0, MAX_ELEMENTS),       \
            BY("0"), TO_DEEPSPEED(module_granularity),                                             \
            MEANS("Stage 3: modules of fewer elements per descendant are fetched whole "           \
                  "(stage3_module_granularity_threshold); 0: off",                                 \
                  "0")),                                                                           \
        ROW(DS_ALL_REDUCE_FETCH, "deepspeed", "all_reduce_for_fetch", BOOL, BY("false"),           \
            TO_DEEPSPEED(all_reduce_for_fetch),                                                    \
            MEANS("Stage 3: gathers are all-reduces (stage3_use_all_reduce_for_fetch_params)",     \
                  "false")),                                                                       \
        ROW(DS_SEQUENTIAL, "deepspeed", "allgather_sequential", BOOL, BY("false"),                 \
            TO_DEEPSPEED(allgather_sequential),                                                    \
            MEANS("Stage 3: one gather a parameter (stage3_allgather_sequential)", "false")),      \
        ROW(DS_EFFICIENT_LINEAR, "deepspeed", "memory_efficient_linear", BOOL, BY("true"),         \
            TO_DEEPSPEED(memory_efficient_linear),                                                 \
            MEANS("Stage 3: linear layers do not keep gathered weights for backward", "true")),    \
        ROW(DS_LEAF_CLASSES, "deepspeed", "leaf_classes", TEXT, BY("none"),                        \
            MEANS("Stage 3: module classes fetched whole, separated by commas "                    \
                  "(leaf_module.classes)",                                                         \
                  "MixtralSparseMoeBlock")),                                                       \
        ROW(DS_HPZ, "deepspeed", "hpz_partition", COUNT("ranks", 1, 1 << 20), BY("1"),             \
            TO_DEEPSPEED(hpz_partition_ranks),                                                     \
            MEANS("ZeRO++: ranks that share a secondary copy (zero_hpz_partition_size); 1: off",   \
                  "8")),                                                                           \
        ROW(DS_QUANTIZED_WEIGHTS, "deepspeed", "quantized_weights", BOOL, BY("false"),             \
            TO_DEEPSPEED(quantized_weights),                                                       \
            MEANS("ZeRO++: gathers move int8 (zero_quantized_weights)", "false")),                 \
        ROW(DS_QUANTIZED_FROZEN, "deepspeed", "quantized_nontrainable", BOOL, BY("false"),         \
            TO_DEEPSPEED(quantized_nontrainable),                                                  \
            MEANS("Frozen parameters are stored as int8 (zero_quantized_nontrainable_weights)",    \
                  "false")),                                                                       \
        ROW(DS_QUANTIZED_GRADIENTS, "deepspeed", "quantized_gradients", BOOL, BY("false"),         \
            TO_DEEPSPEED(quantized_gradients),                                                     \
            MEANS("ZeRO++: gradients move as int4 (zero_quantized_gradients)", "false")),          \
        ROW(DS_MICS, "deepspeed", "mics_shard", COUNT("ranks", 1, 1 << 20), WORD("off", 0),        \
            BY("off"), TO_DEEPSPEED(mics_shard_ranks),                                             \
            MEANS("MiCS: ranks that share one copy (mics_shard_size)", "8")),                      \
        ROW(DS_MICS_HIERARCHICAL, "deepspeed", "mics_hierarchical", BOOL, BY("false"),             \
            TO_DEEPSPEED(mics_hierarchical),                                                       \
            MEANS("MiCS: gathers in two levels (mics_hierarchical_params_gather)", "false")),      \
        ROW(DS_OFFLOAD_PARAM, "deepspeed", "offload_param", ENUM(ds_devices), BY("none"),          \
            TO_DEEPSPEED(offload_param.device),                                                    \
            MEANS("Where stage 3 keeps parameter partitions (offload_param.device)", "cpu")),      \
        ROW(DS_OFFLOAD_PARAM_PIN, "deepspeed", "offload_param_pin", BOOL, BY("true"),              \
            TO_DEEPSPEED(offload_param.pin_memory),                                                \
            MEANS("Pinned host memory for them (offload_param.pin_memory)", "true")),              \
        ROW(DS_OFFLOAD_PARAM_BUFFERS, "deepspeed", "offload_param_buffers",                        \
            COUNT("buffers", 1, 100000), BY("5"), TO_DEEPSPEED(offload_param.buffer_count),        \
            MEANS("NVMe: host buffers (offload_param.buffer_count)", "5")),                        \
        ROW(DS_OFFLOAD_PARAM_BUFFER, "deepspeed", "offload_param_buffer",                          \
            COUNT("elements", 1, MAX_ELEMENTS), BY("1e8 elements"),                                \
            TO_DEEPSPEED(offload_param.buffer_elements),                                           \
            MEANS("NVMe: size of a host buffer (offload_param.buffer_size)", "1e8 elements")),     \
        ROW(DS_OFFLOAD_PARAM_CPU, "deepspeed", "offload_param_max_in_cpu",                         \
            COUNT("elements", 0, MAX_ELEMENTS), BY("1e9 elements"),                                \
            TO_DEEPSPEED(offload_param.max_in_cpu_elements),                                       \
            MEANS("NVMe: local elements kept in host memory (offload_param.max_in_cpu)",           \
                  "1e9 elements")),                                                                \
        ROW(DS_OFFLOAD_OPTIMIZER, "deepspeed", "offload_optimizer", ENUM(ds_devices), BY("none"),  \
            TO_DEEPSPEED(offload_optimizer.device),                                                \
            MEANS("Where master weights and moments live (offload_optimizer.device)", "cpu")),     \
        ROW(DS_OFFLOAD_OPTIMIZER_PIN, "deepspeed", "offload_optimizer_pin", BOOL, BY("true"),      \
            TO_DEEPSPEED(offload_optimizer.pin_memory),                                            \
            MEANS("Pinned host memory for them (offload_optimizer.pin_memory)", "true")),          \
        ROW(DS_OFFLOAD_OPTIMIZER_BUFFERS, "deepspeed", "offload_optimizer_buffers",                \
            COUNT("buffers", 1, 100000), BY("4"), TO_DEEPSPEED(offload_optimizer.buffer_count),    \
            MEANS("NVMe: host buffers (offload_optimizer.buffer_count)", "4")),                    \
        ROW(DS_OFFLOAD_OPTIMIZER_RATIO, "deepspeed", "offload_optimizer_ratio", RATIO(0, 1),       \
            BY("1"), TO_DEEPSPEED(offload_optimizer.ratio),                                        \
            MEANS("Stage 3: share of sub-groups on the host (offload_optimizer.ratio)", "0.5")),   \
        ROW(DS_PINNED_POWER, "deepspeed", "pinned_power_of_two", BOOL, BY("true"),                 \
            TO_DEEPSPEED(pinned_power_of_two),                                                     \
            MEANS("Pinned blocks are rounded up to powers of two, as PyTorch's allocator does",    \
                  "true")),                                                                        \
        ROW(DS_ACCUMULATION, "deepspeed", "gradient_accumulation", DTYPE(FLOATS | BIT(NONE)),      \
            BY("none"), TO_DEEPSPEED(gradient_accumulation),                                       \
            MEANS("Format in which gradients accumulate (data_types.grad_accum_dtype); none: the " \
                  "model's",                                                                       \
                  "fp32")),                                                                        \
        ROW(DS_COMMUNICATION, "deepspeed", "communication", DTYPE(FLOATS | BIT(NONE)), BY("none"), \
            TO_DEEPSPEED(communication),                                                           \
            MEANS("Format of gradients on the wire (communication_data_type); none: the model's",  \
                  "fp32")),                                                                        \
        ROW(DS_CLIPPING, "deepspeed", "gradient_clipping", RATIO(0, 1e9), BY("1"),                 \
            TO_DEEPSPEED(gradient_clipping),                                                       \
            MEANS("Norm that gradients are clipped to (gradient_clipping); 0: off", "1")),         \
        ROW(DS_OVERFLOW, "deepspeed", "check_grad_overflow", BOOL, BY("true"),                     \
            TO_DEEPSPEED(check_grad_overflow),                                                     \
            MEANS("bf16 at stages 1 and 2 looks for overflow (bf16.check_grad_overflow)",          \
                  "true")),                                                                        \
        ROW(DS_IMMEDIATE, "deepspeed", "immediate_grad_update", BOOL, BY("false"),                 \
            TO_DEEPSPEED(immediate_grad_update),                                                   \
            MEANS("BF16_Optimizer adds gradients in their hooks (bf16.immediate_grad_update)",     \
                  "false")),                                                                       \
        ROW(DS_ADAM, "deepspeed", "adam", ENUM(ds_adams), BY("default"), TO_DEEPSPEED(adam),       \
            MEANS("Which implementation of Adam runs", "fused")),                                  \
        ROW(DS_ZERO_INIT, "deepspeed", "zero_init", BOOL, BY("false"), TO_DEEPSPEED(zero_init),    \
            MEANS("The model is built under zero.Init: partitioned as it is made", "true")),       \
        ROW(DS_COLD, "deepspeed", "cold", BOOL, BY("false"), TO_DEEPSPEED(cold),                   \
            MEANS("Start with the first step after initialization (trace recorded, moments born) " \
                  "instead of steady steps",                                                       \
                  "false")),                                                                       \
        ROW(DS_CPU_ADAM_RATE, "deepspeed", "cpu_adam_rate", RATIO(1, 1e15), BY("1e9"),             \
            TO_DEEPSPEED(cpu_adam_elements_per_s),                                                 \
            MEANS("Elements a second that CPU Adam updates, one rank's share of the cores",        \
                  "5e8")),                                                                         \
        ROW(DS_NVME_READ, "deepspeed", "nvme_read", RATE(BANDWIDTH), BY("3.2 GB/s"),               \
            TO_DEEPSPEED(nvme_read_bytes_per_s),                                                   \
            MEANS("NVMe read bandwidth, one rank's share", "3.2 GB/s")),                           \
        ROW(DS_NVME_WRITE, "deepspeed", "nvme_write", RATE(BANDWIDTH), BY("1.5 GB/s"),             \
            TO_DEEPSPEED(nvme_write_bytes_per_s),                                                  \
            MEANS("NVMe write bandwidth, one rank's share", "1.5 GB/s"))

#define ROWS_FSDP                                                                                  \
    ROW(FS_OPTIMIZER, "fsdp", "optimizer_mode", ENUM(fs_optimizers), BY("foreach"),                \
        TO_FSDP(optimizer),                                                                        \
        MEANS("Implementation of the optimizer: what temporaries its step has", "fused")),         \
        ROW(FS_SET_TO_NONE, "fsdp", "set_to_none", BOOL, BY("true"), TO_FSDP(set_to_none),         \
            MEANS("zero_grad frees the gradients", "true")),                                       \
        ROW(FS_FIRST_STEP, "fsdp", "first_step", BOOL, BY("false"), TO_FSDP(first_step),           \
            MEANS("The first simulated step is a run's first: optimizer states appear in it",      \
                  "false")),                                                                       \
        ROW(FS_REDUCE_UNSET, "fsdp", "reduce_in_compute", BOOL, BY("false"),                       \
            TO_FSDP(reduce_dtype_unset),                                                           \
            MEANS("fsdp2: MixedPrecisionPolicy(reduce_dtype=None): reduce in the compute format "  \
                  "whatever precision.reduce says",                                                \
                  "false")),                                                                       \
        ROW(FS_RESHARD, "fsdp", "reshard_after_forward", COUNT("ranks", 0, 1 << 20),               \
            WORD("by-stage", -1), BY("by-stage"), TO_FSDP(reshard_after_forward),                  \
            MEANS("fsdp2: by-stage (yes at stage 3, no at 2), 0: no, 1: yes, n: keep a shard of "  \
                  "1/n",                                                                           \
                  "by-stage")),                                                                    \
        ROW(FS_ROOT_RESHARD, "fsdp", "root_reshard_after_forward", ENUM(fs_choices),               \
            BY("default"), TO_FSDP(root_reshard_after_forward),                                    \
            MEANS("fsdp2: reshard_after_forward of the root unit; PyTorch's default is no",        \
                  "default")),                                                                     \
        ROW(FS_FORWARD_PREFETCH, "fsdp", "forward_prefetch", COUNT("units", 0, 100000), BY("0"),   \
            TO_FSDP(forward_prefetch),                                                             \
            MEANS("fsdp2: units listed by set_modules_to_forward_prefetch; 0: implicit", "1")),    \
        ROW(FS_BACKWARD_PREFETCH, "fsdp", "backward_prefetch", COUNT("units", 0, 100000), BY("0"), \
            TO_FSDP(backward_prefetch),                                                            \
            MEANS("fsdp2: units listed by set_modules_to_backward_prefetch; 0: implicit, one",     \
                  "1")),                                                                           \
        ROW(FS_EMBEDDING_UNSHARD, "fsdp", "embedding_unshard_in_backward", BOOL, BY("true"),       \
            TO_FSDP(embedding_unshard_in_backward),                                                \
            MEANS("fsdp2: the embedding is gathered again in backward", "true")),                  \
        ROW(FS_RS_BUFFERS, "fsdp", "reduce_scatter_buffers", COUNT("buffers", 1, 100000), BY("1"), \
            TO_FSDP(reduce_scatter_max_input_buffers),                                             \
            MEANS("fsdp2: reduce-scatter inputs kept at once "                                     \
                  "(set_reduce_scatter_max_input_buffers)",                                        \
                  "2")),                                                                           \
        ROW(FS_SEPARATE_SCATTER, "fsdp", "separate_reduce_scatter", BOOL, BY("false"),             \
            TO_FSDP(separate_reduce_scatter),                                                      \
            MEANS("fsdp2: reduce-scatters have a communicator of their own and run beside "        \
                  "gathers (set_separate_reduce_scatter_group)",                                   \
                  "false")),                                                                       \
        ROW(FS_SYNC, "fsdp", "sync_every_micro_batch", BOOL, BY("true"),                           \
            TO_FSDP(sync_every_micro_batch),                                                       \
            MEANS("Gradients are reduced every micro-batch; false: no_sync, only after the last",  \
                  "true")),                                                                        \
        ROW(FS_ALL_REDUCE, "fsdp", "all_reduce_every_micro_batch", BOOL, BY("true"),               \
            TO_FSDP(all_reduce_every_micro_batch),                                                 \
            MEANS("fsdp2 with replicas: all-reduce every micro-batch", "true")),                   \
        ROW(FS_RESHARD_BACKWARD, "fsdp", "reshard_after_backward", BOOL, BY("true"),               \
            TO_FSDP(reshard_after_backward),                                                       \
            MEANS("fsdp2: units are freed after backward of every micro-batch", "true")),          \
        ROW(FS_CPU_OFFLOAD, "fsdp", "cpu_offload", BOOL, BY("false"), TO_FSDP(cpu_offload),        \
            MEANS("fsdp2, fsdp1: parameters, gradients and states in host memory "                 \
                  "(CPUOffloadPolicy, CPUOffload)",                                                \
                  "false")),                                                                       \
        ROW(FS_PIN, "fsdp", "pin_memory", BOOL, BY("true"), TO_FSDP(pin_memory),                   \
            MEANS("fsdp2: pinned host memory for them", "true")),                                  \
        ROW(FS_CPU_ADAM_RATE, "fsdp", "cpu_adam_rate", RATIO(1, 1e15), BY("4e9"),                  \
            TO_FSDP(cpu_adam_elements_per_s),                                                      \
            MEANS("With cpu_offload: elements a second that the cores of a node update "           \
                  "with a fused Adam; without fused it takes 5.8 times as long",                   \
                  "4e9")),                                                                         \
        ROW(FS_CHECKPOINT_OUTSIDE, "fsdp", "checkpoint_outside", BOOL, BY("false"),                \
            TO_FSDP(checkpoint_outside),                                                           \
            MEANS("Checkpointing wraps the units instead of standing inside them", "false")),      \
        ROW(FS_SHARD_GRAD_OP, "fsdp", "shard_gradients_only", ENUM(fs_choices), BY("default"),     \
            TO_FSDP(shard_gradients_only),                                                         \
            MEANS("fsdp1: SHARD_GRAD_OP; default: by stage", "default")),                          \
        ROW(FS_PREFETCH, "fsdp", "prefetch", ENUM(fs_prefetches), BY("pre"), TO_FSDP(prefetch),    \
            MEANS("fsdp1: backward_prefetch", "pre")),                                             \
        ROW(FS_NEXT_FORWARD, "fsdp", "next_forward_prefetch", BOOL, BY("false"),                   \
            TO_FSDP(next_forward_prefetch), MEANS("fsdp1: forward_prefetch", "false")),            \
        ROW(FS_LIMIT, "fsdp", "limit_all_gathers", BOOL, BY("true"), TO_FSDP(limit_all_gathers),   \
            MEANS("fsdp1: the host waits before a third unit is gathered", "true")),               \
        ROW(FS_ORIG, "fsdp", "use_orig_params", BOOL, BY("false"), TO_FSDP(use_orig_params),       \
            MEANS("fsdp1: parameters keep their identity, aligned to 16 bytes", "false")),         \
        ROW(FS_BUCKET, "fsdp", "bucket_cap", BYTES(0), WORD("default", 0), BY("default"),          \
            TO_FSDP(bucket_cap_bytes),                                                             \
            MEANS("ddp: bucket_cap_mb; default: 25 MiB with a first bucket of 1 MiB", "25 MiB")),  \
        ROW(FS_VIEW, "fsdp", "gradient_as_bucket_view", BOOL, BY("false"),                         \
            TO_FSDP(gradient_as_bucket_view),                                                      \
            MEANS("ddp: gradients are views of the buckets", "false")),                            \
        ROW(FS_UNUSED, "fsdp", "find_unused_parameters", BOOL, BY("false"),                        \
            TO_FSDP(find_unused_parameters),                                                       \
            MEANS("ddp: buckets stay in the order of the parameters", "false")),                   \
        ROW(FS_STATIC_GRAPH, "fsdp", "static_graph", BOOL, BY("false"), TO_FSDP(static_graph),     \
            MEANS("ddp: the run's first backward reduces at its end", "false")),                   \
        ROW(FS_ZERO_GRAD, "fsdp", "zero_grad_after_forward", BOOL, BY("false"),                    \
            TO_FSDP(zero_grad_after_forward),                                                      \
            MEANS("fsdp1: gradients live until the next forward is done (Lightning)", "false")),   \
        ROW(FS_WRAP_TRAINABLE, "fsdp", "wrap_trainable", BOOL, BY("false"),                        \
            TO_FSDP(wrap_trainable),                                                               \
            MEANS("fsdp1, fsdp2: every module with a trainable weight is a unit of its own "       \
                  "(peft's fsdp_auto_wrap_policy)",                                                \
                  "false")),                                                                       \
        ROW(FS_SHARD_EVEN, "fsdp", "shard_even", BOOL, BY("false"), TO_FSDP(shard_even),           \
            MEANS("fsdp2: what the ranks do not divide by rows is cut along another dimension "    \
                  "that they do (shard_placement_fn)",                                             \
                  "false"))
