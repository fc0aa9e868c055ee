/* What PyTorch's runtimes are asked to run: parameters in flattening order, the units that own
 * them, and one forward pass as a list of steps.
 *
 * The plan is all that the compilers fsdp2, fsdp1 and ddp know of a model.  It comes from a ZpModel
 * and its wrapping (fsdp_model.h) or from a recorded case (tests/check_reference). */
#pragma once

#include "models/job/fsdp.h"
#include "sim/tape/tape.h"

#define ZP_FSDP_NONE (-1)

typedef struct {
    const char *name;
    gint64 rows, row_elements; /* dim 0, and the product of the other dims */
    gboolean trainable;
    gboolean inner; /* fsdp2: Shard(i > 0), cut evenly along another dimension than the first */
    gint32 unit;
    gint32 parameter; /* index in the model, or ZP_FSDP_NONE */
} ZpFsdpParameter;

typedef struct {
    const char *name;
    gint32 first_parameter, n_parameters; /* contiguous in ZpFsdpPlan.parameters */
    gboolean root;
    gboolean input_requires_grad; /* else post-backward runs in the final callback (fsdp2) */
    gint32 reshard_after_forward; /* 0: no, 1: yes, n > 1: to groups of n ranks */
    gboolean unshard_in_backward;
    gint32 first_forward_prefetch, n_forward_prefetch; /* in ZpFsdpPlan.prefetch */
    gint32 first_backward_prefetch, n_backward_prefetch;
} ZpFsdpUnit;

typedef enum {
    ZP_FSDP_ENTER, /* a unit's (first) module is called */
    ZP_FSDP_LEAVE, /* its (last) module returns */
    ZP_FSDP_CALL,  /* computation that uses parameters, all of whose gradients appear together */
} ZpFsdpStepKind;

typedef struct {
    guint8 kind;
    gboolean requires_grad;   /* set by zp_fsdp_plan_finish(): gradients flow through it */
    gint32 unit;              /* entered or left; for a call the unit that time is charged to */
    gint32 first_use, n_uses; /* CALL: in ZpFsdpPlan.uses, in the order their gradients appear */
    gint32 first_layer, n_layers; /* CALL: layers of the model it computes */
    gint32 region;                /* checkpointed region it belongs to, or ZP_FSDP_NONE */
    gint32 birth; /* CALL with uses: event of the layer's script before which their gradients are
                   * made; ZP_FSDP_NONE: no script */
} ZpFsdpStep;

/* Steps that are computed again in backward, just before the first of them is needed. */
typedef struct {
    gint32 first_step, last_step;
} ZpFsdpRegion;

typedef struct {
    gboolean sync;       /* set_requires_gradient_sync / not in no_sync() */
    gboolean all_reduce; /* set_requires_all_reduce */
    gboolean reshard_after_backward;
    gboolean last_backward; /* set_is_last_backward */
} ZpFsdpMicroBatch;

typedef struct {
    GArray *parameters;      /* ZpFsdpParameter */
    GArray *units;           /* ZpFsdpUnit, in order of first use */
    GArray *steps;           /* ZpFsdpStep */
    GArray *uses;            /* gint32: parameters */
    GArray *regions;         /* ZpFsdpRegion */
    GArray *prefetch;        /* gint32: units */
    GArray *optimizer_order; /* gint32: parameters as model.parameters() lists them */
    GArray *state_order;     /* gint32: units as named_modules() meets them */
    GArray *micro_batches;   /* ZpFsdpMicroBatch */
    gint32 *n_uses;          /* by parameter; filled by zp_fsdp_plan_finish() */

    gint32 shard, replicate; /* ranks of a shard group, and groups */
    gint32 rank;             /* of the world; members of a shard group are consecutive */
    int stored_bytes;        /* a stored parameter's width */
    int param_bytes;         /* MixedPrecision param_dtype; 0: not set */
    int reduce_bytes;        /* MixedPrecision reduce_dtype; 0: not set */
    int moments;             /* optimizer states: 0, 1 or 2 per element */
    int moment_bytes;        /* a state's width */
    gboolean square_root;    /* the step takes the root of the variance (Adam): temporaries */

    ZpFsdp settings;
    ZpFsdpStrategy strategy; /* fsdp1 */
} ZpFsdpPlan;

ZpFsdpPlan *zp_fsdp_plan_new(void);
void zp_fsdp_plan_free(ZpFsdpPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpFsdpPlan, zp_fsdp_plan_free)

/* Counts uses, marks the steps through which gradients flow and clamps the dtypes as
 * FSDPParam.init_dtype_attrs does; call once after filling. */
void zp_fsdp_plan_finish(ZpFsdpPlan *plan);

static inline const ZpFsdpParameter *
zp_fsdp_plan_parameter(const ZpFsdpPlan *plan, gint32 index)
{
    return &g_array_index(plan->parameters, ZpFsdpParameter, (guint)index);
}

static inline const ZpFsdpUnit *
zp_fsdp_plan_unit(const ZpFsdpPlan *plan, gint32 index)
{
    return &g_array_index(plan->units, ZpFsdpUnit, (guint)index);
}

static inline const ZpFsdpStep *
zp_fsdp_plan_step(const ZpFsdpPlan *plan, gint32 index)
{
    return &g_array_index(plan->steps, ZpFsdpStep, (guint)index);
}

static inline gint32
zp_fsdp_plan_use(const ZpFsdpPlan *plan, gint32 index)
{
    return g_array_index(plan->uses, gint32, (guint)index);
}

static inline gint64
zp_fsdp_parameter_elements(const ZpFsdpParameter *parameter)
{
    return parameter->rows * parameter->row_elements;
}

/* Width of unsharded parameters and of their gradients. */
static inline int
zp_fsdp_plan_compute_bytes(const ZpFsdpPlan *plan)
{
    return plan->param_bytes ? plan->param_bytes : plan->stored_bytes;
}

/* Width in which gradients are reduced (foreach_reduce: reduce_dtype or grad dtype). */
static inline int
zp_fsdp_plan_reduce_bytes(const ZpFsdpPlan *plan)
{
    return plan->reduce_bytes ? plan->reduce_bytes : zp_fsdp_plan_compute_bytes(plan);
}

/* Each unit but the root lists the next `n` (or, backward, the previous `n`) units. */
void zp_fsdp_plan_add_prefetch(ZpFsdpPlan *plan, gint32 n_units, gint32 n, gboolean forward);
