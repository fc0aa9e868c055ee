/* Shared by the files of the checks. */
#pragma once

#include "models/job/deepspeed.h"
#include "models/job/fsdp.h"
#include "models/ledger/checks.h"

/* Runtimes as bits. */
enum {
    CHECKS_IDEAL = 1,
    CHECKS_DEEPSPEED = 2,
    CHECKS_FSDP1 = 4,
    CHECKS_FSDP2 = 8,
    CHECKS_DDP = 16,
    CHECKS_FSDP = CHECKS_FSDP1 | CHECKS_FSDP2,
    CHECKS_TORCH = CHECKS_FSDP | CHECKS_DDP,
    CHECKS_ALL = 31,
};

/* What one pass over the tape finds. */
typedef struct {
    /* Of the last step, by kind; collectives of the model's own cuts (tensor, context, pipeline)
     * are left out. */
    gint64 bytes[ZP_N_KINDS];
    double flops[ZP_N_KINDS];
    ZpTime busy_ps[ZP_N_KINDS];
    /* Message bytes of gathers and broadcasts of the last step, by phase. */
    gint64 gathered_bytes[ZP_N_PHASES];
    /* Gathered parameters that live when a pass begins, summed over the last step's micro-batches;
     * frameworks only. */
    gint64 kept_at_forward_bytes, kept_at_backward_bytes;
    gint64 gradient_at_step_bytes; /* on device and host when the optimizer begins; likewise */
    /* Of the whole play: works in a row, alone. */
    ZpTime stream_ps[ZP_TAPE_MAX_STREAMS][ZP_TAPE_N_CATEGORIES];
    ZpTime link_ps[ZP_TAPE_MAX_LINKS]; /* without latencies */
    ZpTime category_ps[ZP_TAPE_N_CATEGORIES];
} ChecksScan;

void checks_scan(const ZpTape *tape, gboolean live, ChecksScan *scan);

/* A class of a rank's state must lie between these; a high of 0 bounds nothing. */
typedef struct {
    gint64 low, high;
} ChecksBounds;

typedef struct {
    gint64 measured;
    ChecksBounds bounds;
    gint64 whole_bytes; /* what a rank stores that divides nothing */
    gint32 owners;      /* ranks that share one copy */
    ZpDtype dtype;
    gboolean absent;    /* the job keeps no such state */
    gint64 scale_bytes; /* beyond the bounds: scales of quantised states */
} ChecksStored;

enum {
    CHECKS_PARAMETERS,
    CHECKS_GRADIENTS,
    CHECKS_MASTER,
    CHECKS_MOMENTUM,
    CHECKS_VARIANCE,
    CHECKS_N_STORED,
};

typedef struct {
    const ZpChecksStep *step;
    const ZpJob *job;
    const ZpUnits *units;
    const ZpFsdp *fsdp; /* the job's, or the defaults */
    const ZpDeepspeed *deepspeed;
    guint runtime; /* one bit */
    gboolean of_ledger;
    const ChecksScan *scan; /* NULL: of the ledger */
    /* Sums over the units: whole, and of one rank, each unit rounded up. */
    gint64 elements, trainable;
    gint64 shard_elements, shard_trainable;
    gint64 largest_unit_elements, largest_trainable_elements; /* of a unit */
    gint64 largest_parameter_elements;
    gint64 row_elements; /* one row of every parameter, together; frameworks only */
    gint32 n_parameters;
    /* Measured. */
    gint64 device_bytes[ZP_N_CLASSES]; /* at the end of the step */
    gint64 bytes[ZP_N_CLASSES];        /* likewise, the host's too */
    gint64 peak_bytes[ZP_N_CLASSES];   /* most of the class alone, on the device */
    ChecksStored stored[CHECKS_N_STORED];
} ChecksFacts;

/* Own arithmetic: nothing here comes from what is checked. */
int checks_bits(ZpDtype dtype);
gint64 checks_bytes(ZpDtype dtype, gint64 elements);
static inline gint64
checks_ceil(gint64 a, gint64 b)
{
    return a / b + (a % b != 0);
}

/* Ranks that share one copy of parameters, of optimizer state, of gradients (1: whole). */
gint32 checks_parameter_owners(const ChecksFacts *facts);
gint32 checks_gradient_owners(const ChecksFacts *facts);
gint32 checks_state_owners(const ChecksFacts *facts);

/* Settings and sums; nothing measured. */
void checks_facts_init(ChecksFacts *facts, const ZpJob *job, const ZpUnits *units,
                       ZpDeepspeed *defaults);
/* Are works of computation as long as they were priced? */
gboolean checks_are_nominal(const ZpJob *job);
ZpTime checks_longest_stream(const ZpTape *tape, const ChecksScan *scan, gboolean computes);

/* Fills `stored` from what was measured. */
void checks_store(ChecksFacts *facts);

/* Formats in which a runtime stores, gathers and reduces. */
ZpDtype checks_stored(const ChecksFacts *facts);
ZpDtype checks_gathered(const ChecksFacts *facts);
ZpDtype checks_reduced(const ChecksFacts *facts);
gboolean checks_gathers_plainly(const ChecksFacts *facts);
gint64 checks_least_bucket_bytes(const ChecksFacts *facts);
gint64 checks_least_logits_bytes(const ChecksFacts *facts);
/* New memory of a gathered unit of the ideal runtime. */
gint64 checks_missing_bytes(const ChecksFacts *facts, gint64 elements);
gint64 checks_least_temporary_bytes(const ChecksFacts *facts); /* of the optimizer */
gboolean checks_offloads(const ChecksFacts *facts);
gboolean checks_quantises(const ChecksFacts *facts); /* messages shorter than their numbers */

typedef struct {
    ZpChecksName label;
    guint runtimes;
    gboolean ledger; /* holds for the ledger's figures too */
    gboolean (*holds)(const ChecksFacts *facts);
} ChecksRule;

/* One table a file, each ended by a rule without a name. */
extern const ChecksRule checks_state_rules[];
extern const ChecksRule checks_peak_rules[];
extern const ChecksRule checks_traffic_rules[];
extern const ChecksRule checks_time_rules[];
