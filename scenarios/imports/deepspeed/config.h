/* A DeepSpeed configuration as it is, read the way DeepSpeed and the HF Trainer read it.
 *
 * Every key of schema.h gets a value and an origin.  Reading never stops at the first mistake:
 * all messages are collected.  A configuration with errors still holds what could be read, so
 * that a table can be shown; nobody should simulate it. */
#pragma once

#include "models/job/deepspeed.h"
#include "models/words/dtype.h"
#include "scenarios/imports/deepspeed/schema.h"
#include "scenarios/readers/readers.h"

/* What the file alone does not say.  Zero everywhere means: unknown. */
typedef struct {
    gint64 hidden;     /* hidden_size, else the largest of hidden_sizes, else that of text_config */
    gint64 parameters; /* trainable elements of the model */
    gint64 world;      /* data-parallel ranks */
    /* The trainer's flags; they fill "auto" only. */
    gint64 micro_batch, accumulation;
    gboolean has_max_grad_norm;
    double max_grad_norm;
    ZpDtype precision;   /* FP32: neither flag; NONE: unknown */
    const char *version; /* of DeepSpeed, as "0.19.6"; NULL: the newest */
    gboolean strict;     /* comments and trailing commas are errors */
    /* Reads blocks of zero_optimization that stand at the top level as if they stood inside: for
     * showing what was probably meant.  The warning stays. */
    gboolean as_if_placed;
} ZpDsContext;

typedef enum {
    ZP_DS_FROM_DEFAULT,
    ZP_DS_FROM_FILE,
    ZP_DS_FROM_AUTO,    /* "auto", filled by the trainer's rule */
    ZP_DS_FROM_NOWHERE, /* "auto", but what the rule needs is unknown: the value is not known */
    ZP_DS_FROM_LEGACY,  /* a deprecated key set it */
    ZP_DS_FROM_OTHERS,  /* follows from other keys */
} ZpDsOrigin;

typedef struct {
    ZpDsOrigin origin;
    gboolean known;   /* FALSE: unset, or "auto" that nothing fills */
    gboolean refused; /* what the file says is an error; the default stands here */
    gboolean boolean;
    gint64 integer;    /* COUNT */
    double number;     /* COUNT and REAL */
    char *text;        /* CHOICE, TEXT, ANY: as shown */
    GStrv list;        /* LIST */
    int line, column;  /* 0: not in the file */
    char *detail;      /* how it came about; NULL */
    char *consequence; /* what follows from it here; NULL */
    char *ignored;     /* why it has no effect; NULL: it has */
} ZpDsValue;

typedef struct {
    ZpDsValue values[ZP_N_DS_KEYS];
    GPtrArray *unknown; /* ZpImportRow of keys that are not in the schema */
    ZpImportMessages *messages;
} ZpDsConfig;

/* `context` may be NULL.  Never NULL: what cannot be read is an error among the messages. */
ZpDsConfig *zp_ds_config_parse(const char *file, const char *text, gsize length,
                               const ZpDsContext *context);
/* The same from a tree that came from elsewhere (a block of a launcher's file).  Takes
 * `messages`. */
ZpDsConfig *zp_ds_config_from_tree(const ZpTree *root, const ZpDsContext *context,
                                   ZpImportMessages *messages);
void zp_ds_config_free(ZpDsConfig *config);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpDsConfig, zp_ds_config_free)

const ZpDsValue *zp_ds_config_value(const ZpDsConfig *config, ZpDsKey key);
/* For a key of that kind; 0, FALSE, NULL where the value is not known. */
gint64 zp_ds_config_integer(const ZpDsConfig *config, ZpDsKey key);
double zp_ds_config_real(const ZpDsConfig *config, ZpDsKey key);
gboolean zp_ds_config_boolean(const ZpDsConfig *config, ZpDsKey key);
const char *zp_ds_config_text(const ZpDsConfig *config, ZpDsKey key);
/* Does the file (or a deprecated key in it) set this key? */
gboolean zp_ds_config_given(const ZpDsConfig *config, ZpDsKey key);
int zp_ds_config_stage(const ZpDsConfig *config); /* 0..3 */
/* Format of parameters and activations: BF16, FP16, FP32, or NONE while "auto" is open. */
ZpDtype zp_ds_config_precision(const ZpDsConfig *config);
/* Does bf16 with fp32 accumulation at stage 1 select DeepSpeed's BF16_Optimizer?
 * (runtime/engine.py, _configure_zero_optimizer) */
gboolean zp_ds_config_uses_bf16_optimizer(const ZpDsConfig *config);

/* Rows for the table (ZpImportRow): what the file says, unknown keys, and every default that
 * matters at this stage. */
GPtrArray *zp_ds_config_rows(const ZpDsConfig *config);
/* The key table as Markdown, for the documentation. */
char *zp_ds_config_markdown(void);

/* A DeepSpeed configuration into a job: its meaning for the deepspeed runtime.
 *
 * Which keys arrive here is exactly what the "effect" column of the key table claims; a test
 * changes each key in turn and looks. */

typedef enum {
    ZP_DS_APPLY_ERROR_REFUSED, /* the configuration has errors */
    ZP_DS_APPLY_ERROR_OPEN,    /* "auto" that matters, and nothing to fill it */
} ZpDsApplyError;
#define ZP_DS_APPLY_ERROR (zp_ds_apply_error_quark())
GQuark zp_ds_apply_error_quark(void);

/* Fills `settings` (from zp_deepspeed_init() on) and, of `job`, runtime, precision, zero, and
 * what the file says of training; job->deepspeed points to `settings` then.  What the file leaves
 * open keeps the job's own value: micro batch and accumulation where they are positive.
 * `settings` borrows the lists of `config`, which must live as long. */
gboolean zp_ds_apply_job(const ZpDsConfig *config, ZpDeepspeed *settings, ZpJob *job,
                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
