#include "scenarios/imports/deepspeed/table_internal.h"

#define FIRST ZP_DS_OPTIMIZER
#include "scenarios/imports/deepspeed/table_words_internal.h"

/* One row, one paragraph. */
/* clang-format off */
const ZpDsEntry zp_ds_table_other[ZP_N_DS_KEYS - ZP_DS_OPTIMIZER] = {
    /* optimizer and schedule */
    ROW(OPTIMIZER, "optimizer", .kind = ZP_DS_BLOCK_LOOSE,
        .help = "the optimizer; no block: the one that the script passes")
    ROW(OPTIMIZER_TYPE, "optimizer.type", .kind = ZP_DS_TEXT,
        .remark = "the scenario names the optimizer",
        .help = "AdamW, Adam, Lamb, Adagrad, Lion, Muon or a torch optimizer: decides the states "
            "per parameter")
    ROW(OPTIMIZER_PARAMS, "optimizer.params", .kind = ZP_DS_BLOCK_FREE,
        .help = "arguments of the optimizer")
    ROW(OPTIMIZER_LR, "optimizer.params.lr", .kind = ZP_DS_REAL, .automatic = "learning_rate",
        .remark = "arithmetic only", .help = "learning rate")
    ROW(OPTIMIZER_BETAS, "optimizer.params.betas", .kind = ZP_DS_ANY,
        .automatic = "adam_beta1 and adam_beta2", .remark = "arithmetic only",
        .help = "decay rates of the moments")
    ROW(OPTIMIZER_EPS, "optimizer.params.eps", .kind = ZP_DS_REAL, .automatic = "adam_epsilon",
        .remark = "arithmetic only", .help = "guard of the division")
    ROW(OPTIMIZER_WEIGHT_DECAY, "optimizer.params.weight_decay", .kind = ZP_DS_REAL,
        .automatic = "weight_decay", .remark = "arithmetic only", .help = "weight decay")
    ROW(OPTIMIZER_MAX_GRAD_NORM, "optimizer.params.max_grad_norm", .kind = ZP_DS_REAL,
        .remark = "write gradient_clipping at the top level", .state = ZP_DS_DEPRECATED,
        .help = "not an argument of the optimizer")
    ROW(OPTIMIZER_LEGACY_FUSION, "optimizer.legacy_fusion", BOOLEAN_FALSE, .remark = "not modelled",
        .help = "older fused step of the fp16 wrapper")
    ROW(SCHEDULER, "scheduler", .kind = ZP_DS_BLOCK_LOOSE, .help = "learning rate schedule")
    ROW(SCHEDULER_TYPE, "scheduler.type", .kind = ZP_DS_TEXT, .remark = "arithmetic only",
        .help = "its class")
    ROW(SCHEDULER_PARAMS, "scheduler.params", .kind = ZP_DS_BLOCK_FREE, .help = "its arguments")
    ROW(SCHEDULER_MIN_LR, "scheduler.params.warmup_min_lr", .kind = ZP_DS_REAL, .automatic = "0",
        .remark = "arithmetic only", .help = "learning rate at the start")
    ROW(SCHEDULER_MAX_LR, "scheduler.params.warmup_max_lr", .kind = ZP_DS_REAL,
        .automatic = "learning_rate", .remark = "arithmetic only",
        .help = "learning rate after the warm-up")
    ROW(SCHEDULER_WARMUP, "scheduler.params.warmup_num_steps", .kind = ZP_DS_COUNT, .unit = "steps",
        .automatic = "warmup_steps", .remark = "arithmetic only", .help = "steps of the warm-up")
    ROW(SCHEDULER_TOTAL, "scheduler.params.total_num_steps", .kind = ZP_DS_COUNT, .unit = "steps",
        .automatic = "the number of training steps", .remark = "arithmetic only",
        .help = "steps of the training")
    /* disk and activations */
    ROW(AIO, "aio", .kind = ZP_DS_BLOCK_LOOSE, .help = "asynchronous file access for NVMe offload")
    ROW(AIO_BLOCK_SIZE, "aio.block_size", .kind = ZP_DS_COUNT, .unit = "bytes",
        .fallback = "1048576", .least = 1, NO_LIMIT,
        .remark = "the speed of NVMe is a setting of the hardware",
        .help = "bytes of one request; smaller partitions stay in host memory")
    ROW(AIO_QUEUE_DEPTH, "aio.queue_depth", .kind = ZP_DS_COUNT, .unit = "requests",
        .fallback = "8", .least = 1, NO_LIMIT,
        .remark = "the speed of NVMe is a setting of the hardware", .help = "requests in flight")
    ROW(AIO_PARALLELISM, "aio.intra_op_parallelism", .kind = ZP_DS_COUNT, .unit = "threads",
        .fallback = "1", .least = 1, NO_LIMIT, .remark = "only its alignment of buffers is shown",
        .help = "threads for one transfer; also sets the alignment of the buffers")
    ROW(AIO_SINGLE_SUBMIT, "aio.single_submit", BOOLEAN_FALSE, .remark = "not modelled",
        .help = "submit requests one by one")
    ROW(AIO_OVERLAP_EVENTS, "aio.overlap_events", BOOLEAN_TRUE, .remark = "not modelled",
        .help = "submit and wait at the same time")
    ROW(AIO_GDS, "aio.use_gds", BOOLEAN_FALSE, .remark = "not modelled",
        .help = "read from NVMe straight into the GPU")
    ROW(AIO_THREAD_COUNT, "aio.thread_count", .kind = ZP_DS_COUNT, .unit = "threads",
        .remark = "the code reads aio.intra_op_parallelism", .state = ZP_DS_UNREAD,
        .help = "described in the documentation")
    ROW(ACTIVATION, "activation_checkpointing", .kind = ZP_DS_BLOCK_LOOSE,
        .help = "settings of the functions in deepspeed.checkpointing")
    ROW(ACTIVATION_PARTITION, "activation_checkpointing.partition_activations", BOOLEAN_FALSE,
        .remark = "only deepspeed.checkpointing reads it; the checkpointing of the model itself "
            "is set in the training script",
        .help = "split kept activations over model-parallel ranks")
    ROW(ACTIVATION_CPU, "activation_checkpointing.cpu_checkpointing", BOOLEAN_FALSE,
        .remark = "only deepspeed.checkpointing reads it; the checkpointing of the model itself "
            "is set in the training script", .help = "move kept activations to host memory")
    ROW(ACTIVATION_CONTIGUOUS, "activation_checkpointing.contiguous_memory_optimization",
        BOOLEAN_FALSE,
        .remark = "only deepspeed.checkpointing reads it; the checkpointing of the model itself "
            "is set in the training script", .help = "keep them in one buffer")
    ROW(ACTIVATION_NUMBER, "activation_checkpointing.number_checkpoints", .kind = ZP_DS_COUNT,
        .remark = "only deepspeed.checkpointing reads it; the checkpointing of the model itself "
            "is set in the training script", NULLABLE, .help = "checkpoints of one forward")
    ROW(ACTIVATION_SYNCHRONIZE, "activation_checkpointing.synchronize_checkpoint_boundary",
        BOOLEAN_FALSE,
        .remark = "only deepspeed.checkpointing reads it; the checkpointing of the model itself "
            "is set in the training script", .help = "synchronise the device at each checkpoint")
    ROW(ACTIVATION_PROFILE, "activation_checkpointing.profile", BOOLEAN_FALSE,
        .remark = "only deepspeed.checkpointing reads it; the checkpointing of the model itself "
            "is set in the training script", .help = "time each checkpoint")
    /* printing, monitoring and features outside the modelled step */
    ROW(STEPS_PER_PRINT, "steps_per_print", .kind = ZP_DS_REAL, .unit = "steps", .remark = "prints",
        NULLABLE, .help = "steps between two progress lines")
    ROW(WALL_CLOCK, "wall_clock_breakdown", BOOLEAN_FALSE, .remark = "prints",
        .help = "time the phases of a step")
    ROW(MEMORY_BREAKDOWN, "memory_breakdown", BOOLEAN_FALSE, .remark = "prints",
        .help = "print memory figures")
    ROW(DUMP_STATE, "dump_state", BOOLEAN_FALSE, .remark = "prints",
        .help = "print the state of the engine")
    ROW(LOG_LEVEL, "log_level", .kind = ZP_DS_TEXT, .remark = "prints",
        .help = "how much is logged")
    ROW(DROP_LAST, "dataloader_drop_last", BOOLEAN_FALSE, .remark = "concerns the end of an epoch",
        .help = "drop the last incomplete batch")
    ROW(VOCABULARY_SIZE, "vocabulary_size", ELEMENTS, .remark = "a check", NULLABLE,
        .help = "only compared with multiples of 8")
    ROW(DATA_BEFORE_EXPERT, "use_data_before_expert_parallelism", BOOLEAN_FALSE,
        .remark = "expert parallelism is not modelled",
        .help = "order of the groups of expert parallelism")
    ROW(DISABLE_PYTHON_GC, "disable_python_gc", BOOLEAN_FALSE, .remark = "not modelled",
        .help = "switch the collector of Python off")
    ROW(CHECKPOINT, "checkpoint", .kind = ZP_DS_ANY, .remark = "concerns saving",
        .help = "how checkpoints are written")
    ROW(FLOPS_PROFILER, "flops_profiler", .kind = ZP_DS_ANY, .remark = "prints",
        .help = "profiler of one step")
    ROW(TENSORBOARD, "tensorboard", .kind = ZP_DS_ANY, .remark = "prints", .help = "monitor")
    ROW(WANDB, "wandb", .kind = ZP_DS_ANY, .remark = "prints", .help = "monitor")
    ROW(COMET, "comet", .kind = ZP_DS_ANY, .remark = "prints", .help = "monitor")
    ROW(CSV_MONITOR, "csv_monitor", .kind = ZP_DS_ANY, .remark = "prints", .help = "monitor")
    ROW(COMMS_LOGGER, "comms_logger", .kind = ZP_DS_ANY, .remark = "prints",
        .help = "log of collectives")
    ROW(TIMERS, "timers", .kind = ZP_DS_ANY, .remark = "prints",
        .help = "how the timers synchronise")
    ROW(AUTOTUNING, "autotuning", .kind = ZP_DS_ANY, .remark = "not a run by itself",
        .help = "search for stage and batch size")
    ROW(DATA_EFFICIENCY, "data_efficiency", .kind = ZP_DS_ANY, .remark = "not modelled",
        .help = "curriculum and token dropping")
    ROW(DATASTATES, "datastates", .kind = ZP_DS_ANY, .remark = "concerns saving",
        .help = "asynchronous checkpoints")
    ROW(HYBRID_ENGINE, "hybrid_engine", .kind = ZP_DS_ANY, .remark = "not modelled",
        .help = "generation inside training")
    ROW(WEIGHT_QUANTIZATION, "weight_quantization", .kind = ZP_DS_ANY, .remark = "not modelled",
        .help = "quantised inference")
    ROW(COMPILE, "compile", .kind = ZP_DS_ANY,
        .remark = "not taken over, the script calls engine.compile(): model.compile of a scenario "
            "models torch.compile of the blocks",
        .help = "torch.compile and DeepCompile")
    ROW(PIPELINE, "pipeline", .kind = ZP_DS_ANY,
        .remark = "not taken over: parallel.pipeline of a scenario models a pipeline under the "
            "runtime ideal",
        .help = "pipeline engine")
    ROW(TENSOR_PARALLEL, "tensor_parallel", .kind = ZP_DS_BLOCK_FREE,
        .help = "automatic tensor parallelism")
    ROW(AUTOTP_SIZE, "tensor_parallel.autotp_size", .kind = ZP_DS_COUNT, .unit = "ranks",
        .fallback = "0", NO_LIMIT,
        .remark = "not taken over: parallel.tensor of a scenario cuts the model",
        .help = "tensor parallel ranks in training; 0: off")
    ROW(EXPERT_PARALLEL, "expert_parallel", .kind = ZP_DS_ANY, .remark = "not modelled",
        .help = "automatic expert parallelism")
    /* removed */
    ROW(NEBULA, "nebula", .kind = ZP_DS_ANY,
        .remark = "remove it; checkpoints are written by torch.save", .state = ZP_DS_REMOVED,
        .help = "asynchronous checkpoints on Azure")
    ROW(COMPRESSION, "compression_training", .kind = ZP_DS_ANY, .remark = "remove it",
        .state = ZP_DS_REMOVED, .help = "pruning and quantisation in training")
    ROW(QUANTIZE_TRAINING, "quantize_training", .kind = ZP_DS_ANY, .remark = "remove it",
        .state = ZP_DS_REMOVED, .help = "mixture of quantisation")
    ROW(SPARSE_GRADIENTS, "sparse_gradients", .kind = ZP_DS_ANY,
        .remark = "remove it; embeddings built with sparse=True need no flag",
        .state = ZP_DS_REMOVED, .help = "sparse reduction of embedding gradients")
    ROW(EIGENVALUE, "eigenvalue", .kind = ZP_DS_ANY, .remark = "remove it", .state = ZP_DS_REMOVED,
        .help = "eigenvalues for the mixture of quantisation")
    ROW(SPARSE_ATTENTION, "sparse_attention", .kind = ZP_DS_ANY, .remark = "remove it",
        .state = ZP_DS_REMOVED, .help = "sparse attention kernels")
    ROW(ELASTICITY, "elasticity", .kind = ZP_DS_ANY, .remark = "set the batch keys directly",
        .state = ZP_DS_REMOVED, .help = "batch sizes for a range of ranks")
    ROW(GRAPH_HARVESTING, "graph_harvesting", .kind = ZP_DS_ANY, .remark = "remove it",
        .state = ZP_DS_REMOVED, .help = "CUDA graphs")
    ROW(CURRICULUM, "curriculum_learning", .kind = ZP_DS_ANY,
        .remark = "use data_efficiency.data_sampling.curriculum_learning", .state = ZP_DS_REMOVED,
        .help = "curriculum learning of the oldest format")
    ROW(LAYER_DROP, "progressive_layer_drop", .kind = ZP_DS_ANY, .remark = "remove it",
        .state = ZP_DS_REMOVED, .help = "progressive layer dropping")
};
