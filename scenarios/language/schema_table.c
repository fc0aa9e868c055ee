/* The table itself.  Defaults that stand for measurements say so in their help; `zeropeak list`
 * shows the catalogue's sources. */
#include "scenarios/language/schema.h"
#include "scenarios/language/schema_choices_internal.h"
#include "scenarios/language/schema_frameworks_internal.h"

#define ROW(id_, section_, key_, ...) \
    [ZP_KEY_##id_] = {.id = ZP_KEY_##id_, .section = section_, .key = key_, __VA_ARGS__}

#define INTEGER(kind_, unit_, min_, max_) \
    .kind = ZP_SCHEMA_##kind_, .unit = unit_, .min = min_, .max = max_
#define COUNT(unit_, min_, max_) INTEGER(COUNT, unit_, min_, max_)
#define BYTES(min_) INTEGER(BYTES, NULL, min_, G_MAXINT64 / 1024)
#define TIME INTEGER(TIME, NULL, 0, 1000 * ZP_TIME_PER_S)
#define RATE(kind_) .kind = ZP_SCHEMA_##kind_, .low = 1, .high = 1e21
#define RATIO(low_, high_) .kind = ZP_SCHEMA_RATIO, .low = low_, .high = high_
#define EFFICIENCY RATIO(1e-6, 1)
#define ENUM(choices_) .kind = ZP_SCHEMA_ENUM, .choices = choices_
#define BOOL .kind = ZP_SCHEMA_BOOL
#define TEXT .kind = ZP_SCHEMA_TEXT
#define DTYPE(set_) .kind = ZP_SCHEMA_DTYPE, .dtypes = set_

#define MEANS(help_, example_) .help = help_, .example = example_
#define BY(text_) .fallback = text_
#define AUTO(rule_) .fallback = "auto", .rule = rule_
#define WORD(word_, value_) .word = word_, .word_value = value_
#define TO(field_) .offset = G_STRUCT_OFFSET(ZpJob, field_), .size = sizeof(((ZpJob *)0)->field_)
#define SHAPES .shapes_model = TRUE

/* Widths that a tensor class can be kept in. */
#define BIT(dtype) (1u << ZP_DTYPE_##dtype)
#define FLOATS (BIT(FP64) | BIT(FP32) | BIT(TF32) | BIT(BF16) | BIT(FP16))
#define STORED ((FLOATS & ~BIT(TF32)) | BIT(FP8) | BIT(INT8) | BIT(INT4))

#define MAX_DIMENSION ((gint64)1 << 32)
#define MAX_LAYERS ZP_SCHEMA_MAX_LAYERS
#define MAX_ELEMENTS ZP_SCHEMA_MAX_ELEMENTS

static const ZpSchemaKey keys[ZP_N_KEYS] = {
    ROW(NAME, "scenario", "name", TEXT, AUTO("the file's name without its ending"),
        MEANS("Name of the run in reports and the database", "llama3-8b-zero3")),
    ROW(DESCRIPTION, "scenario", "description", TEXT, BY(""),
        MEANS("What the scenario shows, in a line", "ZeRO-3 on one node")),

    ROW(CATALOG, "model", "catalog", TEXT, SHAPES,
        MEANS("A built-in model by name; `zeropeak list models` shows them", "Llama-3-8B")),
    ROW(CONFIG, "model", "config", TEXT, SHAPES,
        MEANS(
            "Path of a Hugging Face config.json, relative to the scenario file (with --set: to the "
            "working folder)",
            "models/my/config.json")),
    ROW(TOTAL_PARAMETERS, "model", "total_parameters", COUNT("elements", 1, MAX_ELEMENTS), SHAPES,
        MEANS("A model known by its size alone: equal layers, 2 FLOP per parameter and token, no "
              "activations",
              "7e9")),
    ROW(PIECES, "model", "pieces", COUNT(NULL, 1, MAX_LAYERS), BY("1"), SHAPES,
        MEANS("Equal layers that total_parameters is cut into (the first take the remainder)",
              "32")),
    ROW(LAYERS, "model", "layers", COUNT(NULL, 1, MAX_LAYERS), SHAPES,
        MEANS("Transformer blocks", "32")),
    ROW(HIDDEN, "model", "hidden", COUNT(NULL, 1, MAX_DIMENSION), SHAPES,
        MEANS("Width of the residual stream", "4096")),
    ROW(HEADS, "model", "heads", COUNT(NULL, 1, MAX_DIMENSION), SHAPES,
        MEANS("Query heads of a block", "32")),
    ROW(KV_HEADS, "model", "kv_heads", COUNT(NULL, 1, MAX_DIMENSION), AUTO("same as heads"), SHAPES,
        MEANS("Key and value heads (grouped-query attention); divides heads", "8")),
    ROW(HEAD_SIZE, "model", "head_size", COUNT(NULL, 1, MAX_DIMENSION), AUTO("hidden / heads"),
        SHAPES, MEANS("Width of a head", "128")),
    ROW(FFN, "model", "ffn", COUNT(NULL, 1, MAX_DIMENSION), SHAPES,
        MEANS("Inner width of the MLP", "14336")),
    ROW(GATED, "model", "gated", BOOL, BY("true"), SHAPES,
        MEANS("The MLP has a gate projection beside the up projection (SwiGLU)", "true")),
    ROW(VOCABULARY, "model", "vocabulary", COUNT(NULL, 1, MAX_DIMENSION), SHAPES,
        MEANS("Rows of the embedding table and the head", "128256")),
    ROW(POSITIONS, "model", "positions", COUNT(NULL, 1, MAX_DIMENSION), WORD("none", 0), BY("none"),
        SHAPES, MEANS("Rows of a learned position table; none for rotary positions", "1024")),
    ROW(TIED, "model", "tied", BOOL, BY("false"), SHAPES,
        MEANS("The head shares the embedding table", "false")),
    ROW(ATTENTION_BIAS, "model", "attention_bias", BOOL, BY("false"), SHAPES,
        MEANS("All four attention projections have biases", "false")),
    ROW(QKV_BIAS, "model", "qkv_bias", BOOL, AUTO("same as attention_bias"), SHAPES,
        MEANS("The query, key and value projections have biases", "false")),
    ROW(MLP_BIAS, "model", "mlp_bias", BOOL, BY("false"), SHAPES,
        MEANS("The MLP projections have biases", "false")),
    ROW(HEAD_BIAS, "model", "head_bias", BOOL, BY("false"), SHAPES,
        MEANS("The head has a bias", "false")),
    ROW(NORM, "model", "norm", ENUM(norms), BY("rmsnorm"), SHAPES,
        MEANS("Kind of the normalisations", "rmsnorm")),
    ROW(NORMS_PER_BLOCK, "model", "norms_per_block", COUNT(NULL, 1, 4), BY("2"), SHAPES,
        MEANS("Normalisations in a block: 1, 2 or 4", "2")),
    ROW(FINAL_NORM, "model", "final_norm", BOOL, BY("true"), SHAPES,
        MEANS("A normalisation before the head", "true")),
    ROW(ATTENTION, "model", "attention", ENUM(attentions), BY("default"), SHAPES,
        MEANS("Implementation of attention", "flash")),
    ROW(COMPILE, "model", "compile", ENUM(compiles), BY("none"), SHAPES,
        MEANS("What torch.compile fuses: fewer kernels, and what they make is made again instead "
              "of kept",
              "blocks")),
    ROW(NORM_KERNEL, "model", "norm_kernel", ENUM(norm_kernels), BY("default"), SHAPES,
        MEANS("How RMS norms are computed (LayerNorm is one kernel)", "fused")),
    ROW(ROTARY_KERNEL, "model", "rotary_kernel", ENUM(rotary_kernels), BY("written_out"), SHAPES,
        MEANS("How the rotary embedding is computed: counts in time", "fused")),
    ROW(DROPOUT, "model", "dropout", ENUM(traits), BY("default"), SHAPES,
        MEANS("Masks after embedding, attention and MLP are kept", "no")),
    ROW(ATTENTION_DROPOUT, "model", "attention_dropout", ENUM(traits), BY("default"), SHAPES,
        MEANS("Dropout of attention's probabilities; eager attention keeps a mask and a copy",
              "no")),
    ROW(EXPERTS, "model", "experts", ENUM(experts), BY("default"), SHAPES,
        MEANS("How a mixture's experts are computed", "loop")),
    ROW(CAUSAL, "model", "causal", BOOL, BY("true"), SHAPES,
        MEANS("A token attends to earlier ones only: half of the pairs", "true")),
    ROW(EXPERT_IMBALANCE, "model", "expert_imbalance", RATIO(1, 1e6), BY("1"), SHAPES,
        MEANS("Mixture of experts: tokens of the busiest rank's experts over the mean", "1.2")),
    ROW(FROZEN, "model", "frozen", TEXT, BY("none"), SHAPES,
        MEANS("Parameters that are not trained, as name patterns (*, ?) separated by commas: no "
              "gradient, no optimizer state, still gathered",
              "*.embed_tokens.weight")),
    ROW(LORA_RANK, "model", "lora_rank", COUNT(NULL, 1, 1 << 20), WORD("none", 0), BY("none"),
        SHAPES, MEANS("Rank of low-rank adapters; everything else is frozen", "16")),
    ROW(LORA_TARGETS, "model", "lora_targets", TEXT, BY("q_proj, v_proj"), SHAPES,
        MEANS("Modules that get adapters, by last name or pattern, separated by commas",
              "q_proj, k_proj, v_proj, o_proj")),
    ROW(LORA_DROPOUT, "model", "lora_dropout", BOOL, BY("false"), SHAPES,
        MEANS("Adapters drop some of their input: a copy and a mask of it are kept", "true")),

    ROW(LAYER_PARAMETERS, "layer", "parameters", COUNT("elements", 0, MAX_ELEMENTS), SHAPES,
        MEANS("Parameters of this layer (required)", "218112000")),
    ROW(LAYER_REPEAT, "layer", "repeat", COUNT(NULL, 1, MAX_LAYERS), BY("1"), SHAPES,
        MEANS("How many such layers follow one another", "32")),
    ROW(LAYER_FLOPS, "layer", "flops_per_token", COUNT("FLOP", 0, MAX_ELEMENTS),
        AUTO("2 x parameters"), SHAPES, MEANS("Forward operations per token", "436224000")),
    ROW(LAYER_ACTIVATION, "layer", "activation_bytes_per_token", BYTES(0), BY("0 B"), SHAPES,
        MEANS("Activations kept from forward to backward, per token", "139264 B")),
    ROW(LAYER_CHECKPOINT, "layer", "checkpoint_bytes_per_token", BYTES(0), BY("0 B"), SHAPES,
        MEANS("The layer's input, which full checkpointing keeps, per token", "8192 B")),

    ROW(MICRO_BATCH, "training", "micro_batch", COUNT("sequences", 1, MAX_DIMENSION), BY("1"),
        TO(training.micro_batch), MEANS("Sequences a rank takes at a time", "4")),
    ROW(SEQUENCE, "training", "sequence", COUNT("tokens", 1, MAX_DIMENSION), BY("2048"), SHAPES,
        TO(training.sequence), MEANS("Tokens of a sequence", "8192")),
    ROW(ACCUMULATION, "training", "accumulation", COUNT(NULL, 1, 100000), BY("1"),
        TO(training.accumulation),
        MEANS("Micro-batches whose gradients make one optimizer step", "8")),
    ROW(CHECKPOINTING, "training", "checkpointing", ENUM(checkpointings), BY("none"),
        TO(training.checkpointing),
        MEANS("Which activations are recomputed in backward instead of kept", "full")),
    ROW(SELECTIVE, "training", "selective", ENUM(selectives), BY("attention_core"), SHAPES,
        TO(training.selective),
        MEANS("What checkpointing = selective keeps", "every_second_product")),
    ROW(REENTRANT, "training", "reentrant", BOOL, BY("false"), SHAPES,
        MEANS("Full checkpointing is torch's reentrant variant (use_reentrant = True)", "true")),
    ROW(AUTOCAST, "training", "autocast", BOOL, BY("false"), SHAPES,
        MEANS("torch.autocast: fp32 parameters and residual stream, 16-bit products and copies of "
              "the weights they use",
              "true")),
    ROW(LOSS, "training", "loss", ENUM(losses), BY("default"), SHAPES,
        MEANS("How the loss takes the logits: what of them is copied and kept", "raw")),
    ROW(LOSS_CHUNKS, "training", "loss_chunks", COUNT("chunks", 1, 64), BY("8"), SHAPES,
        MEANS("Chunks of a chunked loss", "8")),
    ROW(LOSS_OUTSIDE, "training", "loss_outside", BOOL, BY("false"), TO(training.loss_outside),
        MEANS(
            "The loss is computed from the logits that the model returns (torchtitan), not in its "
            "forward (transformers): FSDP's hooks are between the two",
            "true")),
    ROW(HOLD_OUTPUTS, "training", "hold_outputs", BOOL, BY("false"), SHAPES,
        MEANS("A variable of the training loop (outputs = model(...)) holds the logits through "
              "backward; Trainer's does not",
              "true")),
    ROW(PADDING, "training", "padding", BOOL, BY("false"), SHAPES,
        MEANS(
            "Batches are padded: attention through scaled_dot_product_attention gets a mask, which "
            "takes its memory-efficient kernel",
            "true")),

    ROW(TRANSFORMERS, "framework", "transformers", ENUM(transformers_versions), BY("5"), SHAPES,
        MEANS("Version of transformers whose models run", "4")),

    ROW(PARAMETER, "precision", "parameter", DTYPE(STORED), BY("bf16"), TO(precision.parameter),
        MEANS("Format of the parameters that a rank keeps", "bf16")),
    ROW(GRADIENT, "precision", "gradient", DTYPE(FLOATS & ~BIT(TF32)),
        AUTO("same as parameter; bf16 below 16 bits"), TO(precision.gradient),
        MEANS("Format of the gradients that a rank keeps", "fp32")),
    ROW(GATHERED, "precision", "gathered", DTYPE(STORED), AUTO("same as parameter"), SHAPES,
        TO(precision.gathered), MEANS("Format in which parameters are gathered", "bf16")),
    ROW(REDUCE, "precision", "reduce", DTYPE(FLOATS & ~BIT(TF32)), AUTO("same as gradient"),
        TO(precision.reduce), MEANS("Format in which gradients are reduced between ranks", "fp32")),
    ROW(COMPUTE, "precision", "compute", DTYPE(FLOATS | BIT(FP8)),
        AUTO("same as gathered; bf16 below 8 bits, for integers and with autocast"), SHAPES,
        MEANS("Format of matrix products and activations", "bf16")),
    ROW(MASTER, "precision", "master",
        DTYPE(BIT(NONE) | BIT(FP64) | BIT(FP32) | BIT(BF16) | BIT(FP16)),
        AUTO("fp32 if parameters are below 32 bits and the optimizer keeps a master copy, else "
             "none"),
        TO(precision.master),
        MEANS("Format of the optimizer's own copy of the parameters", "fp32")),
    ROW(MOMENTS, "precision", "moments",
        DTYPE((FLOATS & ~BIT(TF32)) | BIT(FP8) | BIT(INT8) | BIT(INT4)),
        AUTO("the optimizer's own"), TO(precision.moments),
        MEANS("Format of momentum and variance", "fp32")),

    ROW(OPTIMIZER, "optimizer", "name", TEXT, BY("adamw"),
        MEANS("Optimizer by name; `zeropeak list optimizers` shows them", "adamw")),

    ROW(RANKS, "world", "ranks", COUNT("ranks", 1, 1 << 24), BY("8"), TO(world.ranks),
        MEANS("World size, one GPU each: data parallel but for the cuts of [parallel]", "64")),
    ROW(SHARD_GROUP, "world", "shard_group", COUNT("ranks", 1, 1 << 24), AUTO("all ranks"),
        TO(world.shard_group),
        MEANS("Ranks that share one copy of the sharded state; divides ranks (hybrid sharding when "
              "smaller).  Counted without the cuts of [parallel]: data x context parallel ranks",
              "8")),

    ROW(TENSOR, "parallel", "tensor", COUNT("ranks", 1, 1 << 16), BY("1"), SHAPES,
        TO(world.parallel.tensor),
        MEANS("Tensor parallel ranks (Megatron-LM): neighbours that share every matrix; divides "
              "world.ranks, heads and ffn, and key heads or the other way round.  The vocabulary "
              "is padded to a multiple of 128 x tensor",
              "8")),
    ROW(SEQUENCE_PARALLEL, "parallel", "sequence_parallel", BOOL, BY("false"), SHAPES,
        TO(world.parallel.sequence),
        MEANS("Megatron-LM's sequence parallelism: tensor parallel ranks also share the tokens of "
              "norms and residual stream",
              "true")),
    ROW(CONTEXT, "parallel", "context", COUNT("ranks", 1, 1 << 16), BY("1"), SHAPES,
        TO(world.parallel.context),
        MEANS("Context parallel ranks: each takes a part of the sequence and gathers keys and "
              "values; ZeRO shards over them too",
              "2")),
    ROW(PIPELINE, "parallel", "pipeline", COUNT("stages", 1, MAX_LAYERS), BY("1"), SHAPES,
        TO(world.parallel.pipeline),
        MEANS("Pipeline stages (one forward, one backward) of the runtime ideal at stages 0 and 1; "
              "divides the blocks.  The simulated rank is of the first stage, "
              "training.accumulation counts the micro-batches",
              "4")),

    ROW(ZERO_CONFIG, "zero", "config", TEXT, BY("none"),
        MEANS(
            "A ds_config.json or FSDP settings (accelerate YAML, HF Trainer JSON, torchtitan "
            "TOML), "
            "relative to the scenario file (with --set: to the working folder): what it says holds "
            "where this file says nothing",
            "ds_config.json")),
    ROW(RUNTIME, "zero", "runtime", TEXT, BY("ideal"),
        MEANS(
            "Whose rules decide order, buffers and lifetimes; `zeropeak list runtimes` shows them",
            "ideal")),
    ROW(STAGE, "zero", "stage", COUNT(NULL, 0, 3), BY("3"), TO(zero.stage),
        MEANS("ZeRO stage: 0 shards nothing, 1 optimizer state, 2 gradients too, 3 parameters too",
              "3")),
    ROW(WRAP, "zero", "wrap", ENUM(wraps), BY("block"), TO(zero.wrap),
        MEANS("Which layers make a shard unit, gathered and freed together", "block")),
    ROW(WRAP_BLOCKS, "zero", "wrap_blocks", COUNT("blocks", 1, 100000), BY("1"),
        TO(zero.wrap_blocks), MEANS("Blocks a unit under wrap = block", "2")),
    ROW(WRAP_ELEMENTS, "zero", "wrap_elements", COUNT("elements", 1, MAX_ELEMENTS),
        BY("1e8 elements"), TO(zero.wrap_elements),
        MEANS("Least size of a unit under wrap = size", "5e8 elements")),
    ROW(OUTER, "zero", "outer", ENUM(outers), BY("own"), TO(zero.outer),
        MEANS("Where embedding, final norm and head belong", "own")),
    ROW(PREFETCH, "zero", "prefetch", COUNT("units", 0, 100000), BY("1"),
        MEANS("Units gathered ahead of the one that computes, in both directions (stage 3)", "2")),
    ROW(PREFETCH_FORWARD, "zero", "prefetch_forward", COUNT("units", 0, 100000),
        AUTO("same as prefetch"), TO(zero.prefetch_forward),
        MEANS("Units gathered ahead in forward", "1")),
    ROW(PREFETCH_BACKWARD, "zero", "prefetch_backward", COUNT("units", 0, 100000),
        AUTO("same as prefetch"), TO(zero.prefetch_backward),
        MEANS("Units gathered ahead in backward", "1")),
    ROW(BUCKET, "zero", "bucket", COUNT("elements", 1, MAX_ELEMENTS), BY("5e8 elements"),
        TO(zero.bucket_elements),
        MEANS("Gradients reduced together: a bucket closes when it holds this many",
              "2e8 elements")),
    ROW(OVERLAP, "zero", "overlap", BOOL, BY("true"), TO(zero.overlap),
        MEANS("Reductions run beside backward; otherwise backward waits for each", "true")),
    ROW(OVERLAP_GATHER, "zero", "overlap_gather", BOOL, BY("false"), TO(zero.overlap_gather),
        MEANS("ideal, stages 1 and 2: gathers of updated parameters run beside the next forward; "
              "otherwise after the step",
              "false")),
    ROW(RESHARD, "zero", "reshard_after_forward", BOOL, BY("true"), TO(zero.reshard_after_forward),
        MEANS("Stage 3 frees a unit after its forward and gathers it again for backward", "true")),

    ROWS_DEEPSPEED,
    ROWS_FSDP,

    ROW(FILE, "device", "file", TEXT, BY("none"),
        MEANS(
            "An own GPU, node and fabric in one INI file (scenarios/machines/h100-capped.ini shows "
            "its keys), relative to the scenario file (with --set: to the working folder); "
            "device.gpu and node.name then default to those it names",
            "none")),
    ROW(GPU, "device", "gpu", TEXT, BY("A100-SXM-80"),
        MEANS("GPU by name; `zeropeak list gpus` shows them", "H100-SXM-80")),
    ROW(MEMORY, "device", "memory", BYTES(1), WORD("unlimited", 0), AUTO("the GPU's memory"),
        TO(device.capacity_bytes), MEANS("Memory that a process can use", "80 GiB")),
    ROW(FLOPS, "device", "flops", RATE(FLOPS), AUTO("the GPU's dense peak in the compute format"),
        TO(device.flops_per_s), MEANS("Peak rate of matrix products", "312 TFLOP/s")),
    ROW(FLOPS_EFFICIENCY, "device", "flops_efficiency", EFFICIENCY,
        AUTO("what large products sustain on the GPU over its peak: measured, else by its chip and "
             "power; 0.75 where neither is known"),
        TO(device.flops_efficiency),
        MEANS("Share of the peak that matrix products achieve", "0.8")),
    ROW(MEMORY_BANDWIDTH, "device", "memory_bandwidth", RATE(BANDWIDTH), AUTO("the GPU's"),
        TO(device.memory_bytes_per_s), MEANS("Peak bandwidth of device memory", "2039 GB/s")),
    ROW(MEMORY_EFFICIENCY, "device", "memory_efficiency", EFFICIENCY,
        AUTO("measured over peak bandwidth of the GPU, 0.8 where none is known"),
        TO(device.memory_efficiency),
        MEANS("Share of that bandwidth that kernels achieve", "0.85")),
    ROW(KERNEL_LATENCY, "device", "kernel_latency", TIME, BY("4 us"), TO(device.kernel_latency_ps),
        MEANS("Time of an empty kernel on the device (assumed)", "4 us")),
    ROW(CALIBRATION, "device", "calibration", TEXT,
        AUTO("built-in; none where nothing is known of the GPU's chip"),
        MEANS(
            "Constants that price layers by their shapes: built-in (measured on the GPU, or scaled "
            "from another board: `zeropeak list gpus` shows the grade; figures stated above scale "
            "them), a file of `zeropeak calibrate` (relative to the scenario file; with --set: to "
            "the working folder), or none (a roofline of the figures above)",
            "built-in")),
    ROW(OVERHEAD, "device", "overhead", BYTES(0),
        AUTO("sum of the catalogue's entries: context, communicators, workspaces"),
        TO(device.overhead_bytes), MEANS("Memory outside the tensor allocator", "1.5 GiB")),
    ROW(CONTINGENCY, "device", "contingency", RATIO(0, 10), BY("0"), TO(device.contingency),
        MEANS("Share of the peak to keep free on top of it", "5 %")),
    ROW(ALLOCATOR, "device", "allocator", ENUM(allocators),
        AUTO("caching under a framework's runtime, none under ideal"), TO(device.allocator),
        MEANS("Allocator that tensors come from: what it reserves then decides whether a run fits",
              "caching")),

    ROW(NODE, "node", "name", TEXT,
        AUTO("a node that comes with the GPU; none if the catalogue has none"), WORD("none", 0),
        MEANS("Kind of node; `zeropeak list nodes` shows them", "DGX-A100")),
    ROW(GPUS, "node", "gpus", COUNT(NULL, 1, 1 << 20), AUTO("the node's, 8 where none is named"),
        TO(network.gpus_per_node), MEANS("GPUs of a node", "8")),
    ROW(LINK_BANDWIDTH, "node", "link_bandwidth", RATE(BANDWIDTH),
        AUTO("the GPU's scale-up link, its host link where it has none"),
        TO(network.link_bytes_per_s),
        MEANS("Between GPUs of a node, per direction and GPU", "300 GB/s")),
    ROW(LINK_EFFICIENCY, "node", "link_efficiency", EFFICIENCY,
        AUTO("measured ring over link bandwidth of the GPU, 0.78 where none is known"),
        TO(network.link_efficiency), MEANS("Share of it that collectives achieve", "0.8")),
    ROW(LINK_LATENCY, "node", "link_latency", TIME, BY("40 us"), TO(network.link_latency_ps),
        MEANS("Fixed time of a collective inside a node (fits of public 8-GPU measurements: 31 to "
              "43 us)",
              "40 us")),
    ROW(NETWORK_BANDWIDTH, "node", "network_bandwidth", RATE(BANDWIDTH),
        AUTO("the node's, 50 GB/s where none is named"), TO(network.network_bytes_per_s),
        MEANS("Between nodes, per direction and node (all its adapters)", "400 Gbit/s")),
    ROW(NETWORK_EFFICIENCY, "node", "network_efficiency", EFFICIENCY, BY("0.85"),
        TO(network.network_efficiency),
        MEANS("Share of it that collectives achieve (measured on public clusters: 0.84 to 0.97)",
              "0.9")),
    ROW(NETWORK_LATENCY, "node", "network_latency", TIME, BY("80 us"),
        TO(network.network_latency_ps),
        MEANS(
            "Fixed time of a collective between nodes (fits of public measurements: 42 to 364 us)",
            "80 us")),
    ROW(COLLECTIVES, "node", "collectives", ENUM(collectives), BY("measured"),
        MEANS(
            "How collectives are priced: by measured tables of the platform (else fitted formulas, "
            "which efficiencies and latencies stated above scale), by formulas alone, or simple: "
            "latency plus bytes over bandwidth",
            "measured")),
    ROW(ALGORITHM, "node", "algorithm", ENUM(algorithms), BY("nccl"), TO(network.algorithm),
        MEANS("Which algorithm they run where the price follows it (fitted, measured)", "ring")),
    ROW(H2D, "node", "h2d", RATE(BANDWIDTH), AUTO("the GPU's host link"),
        TO(network.host_to_device_bytes_per_s), MEANS("Host to device, pinned memory", "25 GB/s")),
    ROW(D2H, "node", "d2h", RATE(BANDWIDTH), AUTO("the GPU's host link"),
        TO(network.device_to_host_bytes_per_s), MEANS("Device to host, pinned memory", "25 GB/s")),

    ROW(LAUNCH_OVERHEAD, "host", "launch_overhead", TIME, BY("5 us"), TO(host.launch_overhead_ps),
        MEANS("Host time to launch a kernel or collective (assumed)", "5 us")),
    ROW(INSTR_OVERHEAD, "host", "instr_overhead", TIME, BY("1 us"), TO(host.instr_overhead_ps),
        MEANS("Host time of any other instruction (assumed)", "1 us")),
    ROW(RUN_AHEAD, "host", "run_ahead", COUNT("launches", 1, 1 << 30), WORD("unlimited", 0),
        BY("1024"), TO(host.run_ahead),
        MEANS("Launches that the host may be ahead of the device", "1024")),

    ROW(SIMULATED_RANKS, "simulation", "ranks", COUNT("ranks", 1, 1 << 24), WORD("all", 0), BY("1"),
        TO(simulation.simulated_ranks),
        MEANS("1: a representative rank stands for all; all: each rank is played", "all")),
    ROW(JITTER, "simulation", "jitter", RATIO(0, 0.16), BY("0"), TO(simulation.jitter_ppm),
        MEANS("Standard deviation of compute times, relative", "5 %")),
    ROW(SEED, "simulation", "seed", COUNT(NULL, 0, G_MAXINT64), BY("1"), TO(simulation.seed),
        MEANS("Seed of the random numbers", "42")),
    ROW(STEPS, "simulation", "steps", COUNT("steps", 1, 10000), BY("1"), TO(simulation.steps),
        MEANS("Training steps to simulate; times are of the last", "3")),
    ROW(SLOW_RANK, "simulation", "slow_rank", COUNT(NULL, 0, (1 << 24) - 1),
        WORD("none", ZP_MODEL_NONE), BY("none"), TO(simulation.slow_rank),
        MEANS("A rank that computes slower than the others", "3")),
    ROW(SLOW_FACTOR, "simulation", "slow_factor", RATIO(1, 1000), BY("1"), TO(simulation.slow_ppm),
        MEANS("Its compute times relative to the others'", "1.2")),

    ROW(LIMIT, "sweep", "limit", COUNT("points", 1, 1000000), BY("1e6 points"),
        MEANS("Refuse a sweep of more points than this", "10000")),
};

const ZpSchemaKey *
zp_schema_table(gsize *n)
{
    *n = G_N_ELEMENTS(keys);
    return keys;
}
