/* The keys of a scenario file: one table for parsing, checking, `explain`, manual, dump and tests.
 *
 * A key belongs to a section; "zero.stage" is its full name.  Keys of the section "layer" are
 * repeated: each group [layer NAME] has its own. */
#pragma once

#include "models/job/deepspeed.h"
#include "models/job/fsdp.h"
#include "models/job/job.h"
#include "scenarios/language/quantity.h"

/* In the order of sections and keys in a dump. */
typedef enum {
    ZP_KEY_NAME,
    ZP_KEY_DESCRIPTION,

    ZP_KEY_CATALOG,
    ZP_KEY_CONFIG,
    ZP_KEY_TOTAL_PARAMETERS,
    ZP_KEY_PIECES,
    ZP_KEY_LAYERS,
    ZP_KEY_HIDDEN,
    ZP_KEY_HEADS,
    ZP_KEY_KV_HEADS,
    ZP_KEY_HEAD_SIZE,
    ZP_KEY_FFN,
    ZP_KEY_GATED,
    ZP_KEY_VOCABULARY,
    ZP_KEY_POSITIONS,
    ZP_KEY_TIED,
    ZP_KEY_ATTENTION_BIAS,
    ZP_KEY_QKV_BIAS,
    ZP_KEY_MLP_BIAS,
    ZP_KEY_HEAD_BIAS,
    ZP_KEY_NORM,
    ZP_KEY_NORMS_PER_BLOCK,
    ZP_KEY_FINAL_NORM,
    ZP_KEY_ATTENTION,
    ZP_KEY_COMPILE,
    ZP_KEY_NORM_KERNEL,
    ZP_KEY_ROTARY_KERNEL,
    ZP_KEY_DROPOUT,
    ZP_KEY_ATTENTION_DROPOUT,
    ZP_KEY_EXPERTS,
    ZP_KEY_CAUSAL,
    ZP_KEY_EXPERT_IMBALANCE,
    ZP_KEY_FROZEN,
    ZP_KEY_LORA_RANK,
    ZP_KEY_LORA_TARGETS,
    ZP_KEY_LORA_DROPOUT,

    ZP_KEY_LAYER_PARAMETERS,
    ZP_KEY_LAYER_REPEAT,
    ZP_KEY_LAYER_FLOPS,
    ZP_KEY_LAYER_ACTIVATION,
    ZP_KEY_LAYER_CHECKPOINT,

    ZP_KEY_MICRO_BATCH,
    ZP_KEY_SEQUENCE,
    ZP_KEY_ACCUMULATION,
    ZP_KEY_CHECKPOINTING,
    ZP_KEY_SELECTIVE,
    ZP_KEY_REENTRANT,
    ZP_KEY_AUTOCAST,
    ZP_KEY_LOSS,
    ZP_KEY_LOSS_CHUNKS,
    ZP_KEY_LOSS_OUTSIDE,
    ZP_KEY_HOLD_OUTPUTS,
    ZP_KEY_PADDING,

    ZP_KEY_TRANSFORMERS,

    ZP_KEY_PARAMETER,
    ZP_KEY_GRADIENT,
    ZP_KEY_GATHERED,
    ZP_KEY_REDUCE,
    ZP_KEY_COMPUTE,
    ZP_KEY_MASTER,
    ZP_KEY_MOMENTS,

    ZP_KEY_OPTIMIZER,

    ZP_KEY_RANKS,
    ZP_KEY_SHARD_GROUP,

    ZP_KEY_TENSOR,
    ZP_KEY_SEQUENCE_PARALLEL,
    ZP_KEY_CONTEXT,
    ZP_KEY_PIPELINE,

    ZP_KEY_ZERO_CONFIG,
    ZP_KEY_RUNTIME,
    ZP_KEY_STAGE,
    ZP_KEY_WRAP,
    ZP_KEY_WRAP_BLOCKS,
    ZP_KEY_WRAP_ELEMENTS,
    ZP_KEY_OUTER,
    ZP_KEY_PREFETCH,
    ZP_KEY_PREFETCH_FORWARD,
    ZP_KEY_PREFETCH_BACKWARD,
    ZP_KEY_BUCKET,
    ZP_KEY_OVERLAP,
    ZP_KEY_OVERLAP_GATHER,
    ZP_KEY_RESHARD,

    ZP_KEY_DS_CONTIGUOUS,
    ZP_KEY_DS_REDUCE_SCATTER,
    ZP_KEY_DS_MULTI_RANK,
    ZP_KEY_DS_ROUND_ROBIN,
    ZP_KEY_DS_OVERLAP,
    ZP_KEY_DS_REDUCE_BUCKET,
    ZP_KEY_DS_ALLGATHER_BUCKET,
    ZP_KEY_DS_SUB_GROUP,
    ZP_KEY_DS_PREFETCH_BUCKET,
    ZP_KEY_DS_MAX_LIVE,
    ZP_KEY_DS_MAX_REUSE,
    ZP_KEY_DS_PARAM_PERSISTENCE,
    ZP_KEY_DS_MODEL_PERSISTENCE,
    ZP_KEY_DS_GRANULARITY,
    ZP_KEY_DS_ALL_REDUCE_FETCH,
    ZP_KEY_DS_SEQUENTIAL,
    ZP_KEY_DS_EFFICIENT_LINEAR,
    ZP_KEY_DS_LEAF_CLASSES,
    ZP_KEY_DS_HPZ,
    ZP_KEY_DS_QUANTIZED_WEIGHTS,
    ZP_KEY_DS_QUANTIZED_FROZEN,
    ZP_KEY_DS_QUANTIZED_GRADIENTS,
    ZP_KEY_DS_MICS,
    ZP_KEY_DS_MICS_HIERARCHICAL,
    ZP_KEY_DS_OFFLOAD_PARAM,
    ZP_KEY_DS_OFFLOAD_PARAM_PIN,
    ZP_KEY_DS_OFFLOAD_PARAM_BUFFERS,
    ZP_KEY_DS_OFFLOAD_PARAM_BUFFER,
    ZP_KEY_DS_OFFLOAD_PARAM_CPU,
    ZP_KEY_DS_OFFLOAD_OPTIMIZER,
    ZP_KEY_DS_OFFLOAD_OPTIMIZER_PIN,
    ZP_KEY_DS_OFFLOAD_OPTIMIZER_BUFFERS,
    ZP_KEY_DS_OFFLOAD_OPTIMIZER_RATIO,
    ZP_KEY_DS_PINNED_POWER,
    ZP_KEY_DS_ACCUMULATION,
    ZP_KEY_DS_COMMUNICATION,
    ZP_KEY_DS_CLIPPING,
    ZP_KEY_DS_OVERFLOW,
    ZP_KEY_DS_IMMEDIATE,
    ZP_KEY_DS_ADAM,
    ZP_KEY_DS_ZERO_INIT,
    ZP_KEY_DS_COLD,
    ZP_KEY_DS_CPU_ADAM_RATE,
    ZP_KEY_DS_NVME_READ,
    ZP_KEY_DS_NVME_WRITE,

    ZP_KEY_FS_OPTIMIZER,
    ZP_KEY_FS_SET_TO_NONE,
    ZP_KEY_FS_FIRST_STEP,
    ZP_KEY_FS_REDUCE_UNSET,
    ZP_KEY_FS_RESHARD,
    ZP_KEY_FS_ROOT_RESHARD,
    ZP_KEY_FS_FORWARD_PREFETCH,
    ZP_KEY_FS_BACKWARD_PREFETCH,
    ZP_KEY_FS_EMBEDDING_UNSHARD,
    ZP_KEY_FS_RS_BUFFERS,
    ZP_KEY_FS_SEPARATE_SCATTER,
    ZP_KEY_FS_SYNC,
    ZP_KEY_FS_ALL_REDUCE,
    ZP_KEY_FS_RESHARD_BACKWARD,
    ZP_KEY_FS_CPU_OFFLOAD,
    ZP_KEY_FS_PIN,
    ZP_KEY_FS_CPU_ADAM_RATE,
    ZP_KEY_FS_CHECKPOINT_OUTSIDE,
    ZP_KEY_FS_SHARD_GRAD_OP,
    ZP_KEY_FS_PREFETCH,
    ZP_KEY_FS_NEXT_FORWARD,
    ZP_KEY_FS_LIMIT,
    ZP_KEY_FS_ORIG,
    ZP_KEY_FS_BUCKET,
    ZP_KEY_FS_VIEW,
    ZP_KEY_FS_UNUSED,
    ZP_KEY_FS_STATIC_GRAPH,
    ZP_KEY_FS_ZERO_GRAD,
    ZP_KEY_FS_WRAP_TRAINABLE,
    ZP_KEY_FS_SHARD_EVEN,

    ZP_KEY_FILE,
    ZP_KEY_GPU,
    ZP_KEY_MEMORY,
    ZP_KEY_FLOPS,
    ZP_KEY_FLOPS_EFFICIENCY,
    ZP_KEY_MEMORY_BANDWIDTH,
    ZP_KEY_MEMORY_EFFICIENCY,
    ZP_KEY_KERNEL_LATENCY,
    ZP_KEY_CALIBRATION,
    ZP_KEY_OVERHEAD,
    ZP_KEY_CONTINGENCY,
    ZP_KEY_ALLOCATOR,

    ZP_KEY_NODE,
    ZP_KEY_GPUS,
    ZP_KEY_LINK_BANDWIDTH,
    ZP_KEY_LINK_EFFICIENCY,
    ZP_KEY_LINK_LATENCY,
    ZP_KEY_NETWORK_BANDWIDTH,
    ZP_KEY_NETWORK_EFFICIENCY,
    ZP_KEY_NETWORK_LATENCY,
    ZP_KEY_COLLECTIVES,
    ZP_KEY_ALGORITHM,
    ZP_KEY_H2D,
    ZP_KEY_D2H,

    ZP_KEY_LAUNCH_OVERHEAD,
    ZP_KEY_INSTR_OVERHEAD,
    ZP_KEY_RUN_AHEAD,

    ZP_KEY_SIMULATED_RANKS,
    ZP_KEY_JITTER,
    ZP_KEY_SEED,
    ZP_KEY_STEPS,
    ZP_KEY_SLOW_RANK,
    ZP_KEY_SLOW_FACTOR,

    ZP_KEY_LIMIT,

    ZP_N_KEYS
} ZpSchemaId;

/* The largest model that a scenario may ask for. */
#define ZP_SCHEMA_MAX_LAYERS 10000
#define ZP_SCHEMA_MAX_ELEMENTS ((gint64)1 << 56)

typedef enum {
    ZP_SCHEMA_COUNT,
    ZP_SCHEMA_BYTES,
    ZP_SCHEMA_BANDWIDTH,
    ZP_SCHEMA_FLOPS,
    ZP_SCHEMA_TIME,
    ZP_SCHEMA_RATIO,
    ZP_SCHEMA_ENUM,
    ZP_SCHEMA_BOOL,
    ZP_SCHEMA_DTYPE,
    ZP_SCHEMA_TEXT,
    ZP_N_SCHEMA_KINDS
} ZpSchemaKind;

typedef struct {
    const char *name; /* NULL ends a list */
    int value;
    const char *help;
} ZpSchemaChoice;

/* Values of node.collectives. */
typedef enum {
    ZP_COLLECTIVES_SIMPLE,
    ZP_COLLECTIVES_FITTED,
    ZP_COLLECTIVES_MEASURED,
} ZpSchemaCollectives;

/* Where a value goes. */
typedef enum { ZP_SCHEMA_IN_JOB, ZP_SCHEMA_IN_DEEPSPEED, ZP_SCHEMA_IN_FSDP } ZpSchemaPlace;

/* What a key accepts is its kind, its range and one extra word. */
typedef struct {
    ZpSchemaId id;
    const char *section, *key;
    ZpSchemaKind kind;
    const char *unit;              /* COUNT: the word that may follow the number, or NULL */
    gint64 min, max;               /* COUNT, BYTES, TIME: inclusive */
    double low, high;              /* BANDWIDTH, FLOPS, RATIO: inclusive */
    const ZpSchemaChoice *choices; /* ENUM */
    guint dtypes;                  /* DTYPE: 1u << ZpDtype of the legal ones */
    const char *word;              /* stands for a number: "none", "all", "unlimited"; or NULL */
    gint64 word_value;             /* that number */
    const char *fallback;          /* the default as text; "auto": derived; NULL: none */
    const char *rule;              /* how "auto" is derived, in words; NULL where it is not */
    gboolean shapes_model;         /* another value means another ZpModel */
    const char *help;              /* one line */
    const char *example;           /* parses */
    ZpSchemaPlace place;
    gsize offset, size; /* where it goes in that struct; size 0: set by hand */
} ZpSchemaKey;

/* A value of any kind. */
typedef struct {
    gint64 integer; /* COUNT, BYTES, TIME (ps), ENUM, BOOL, DTYPE */
    double real;    /* BANDWIDTH, FLOPS, RATIO */
    char *text;     /* TEXT: a GRefString, owned; NULL otherwise */
} ZpSchemaValue;

const ZpSchemaKey *zp_schema_table(gsize *n);
const ZpSchemaKey *zp_schema_key(ZpSchemaId id);

/* "zero.stage", or "stage" where only one section has it; the error names the nearest key or the
 * sections to choose from. */
const ZpSchemaKey *zp_schema_find(const char *name, GError **error);
/* Within a section; NULL if there is none. */
const ZpSchemaKey *zp_schema_find_in(const char *section, const char *key);
/* NULL-terminated names; free with g_free(). */
const char **zp_schema_sections(void);
const char **zp_schema_keys_of(const char *section);

/* Several lines: meaning, type, range, default, example; ends with a newline. */
char *zp_schema_explain(const ZpSchemaKey *key);
/* "count from 1 to 64", "one of block, model". */
char *zp_schema_legal(const ZpSchemaKey *key);

/* Reads `text` as this key's value; errors of ZP_SCHEMA_ERROR or ZP_QUANTITY_ERROR say what is
 * legal, without saying where. */
gboolean zp_schema_parse(const ZpSchemaKey *key, const char *text, ZpSchemaValue *value,
                         GError **error);
/* The plain default; a text is borrowed from the table.  FALSE for a key that has none or a rule.
 */
gboolean zp_schema_default(const ZpSchemaKey *key, ZpSchemaValue *value);
char *zp_schema_print(const ZpSchemaKey *key, const ZpSchemaValue *value);
gboolean zp_schema_value_equal(const ZpSchemaKey *key, const ZpSchemaValue *a,
                               const ZpSchemaValue *b);
void zp_schema_value_copy(ZpSchemaValue *to, const ZpSchemaValue *from);
void zp_schema_value_clear(ZpSchemaValue *value);

/* Writes the value where the key has its place. */
typedef struct {
    ZpJob *job;
    ZpDeepspeed *deepspeed;
    ZpFsdp *fsdp;
} ZpSchemaPlaces;
/* The inverse, for keys with a place; texts have none. */
void zp_schema_fetch(const ZpSchemaKey *key, const ZpSchemaPlaces *places, ZpSchemaValue *value);
void zp_schema_store(const ZpSchemaKey *key, const ZpSchemaValue *value,
                     const ZpSchemaPlaces *places);
