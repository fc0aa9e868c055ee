/* Shared by the files of the ideal runtime. */
#pragma once

#include "models/job/runtime.h"
#include "models/prices/cost.h"
#include "models/runtimes/shared/communicators.h"
#include "models/runtimes/shared/layer_bytes.h"
#include "models/words/vocabulary.h"

/* The last is there with replicas alone: their all-reduce holds up no reduce-scatter. */
enum { IDEAL_COMPUTE, IDEAL_GATHER, IDEAL_REDUCE, IDEAL_REPLICATE };
enum { IDEAL_GROUP_SHARD, IDEAL_GROUP_REPLICA, IDEAL_GROUP_WORLD };

/* State of one unit while a tape is written. */
typedef struct {
    gint32 gathered; /* live gathered buffer or ZP_TAPE_NONE */
    gint32 ready;    /* event: gather finished; ZP_TAPE_NONE: nothing to wait for */
    gboolean issued; /* gathered in this pass */
    gint32 gradient; /* its part of the open bucket, or ZP_TAPE_NONE */
} IdealUnit;

typedef struct {
    const ZpJob *job;
    const ZpUnits *units;
    ZpTape *tape;
    ZpCommunicators communicators;
    IdealUnit *state; /* by unit */
    ZpLayerBytesTable bytes;
    gint32 *kept;          /* by layer: activations kept from forward to backward */
    gint32 *recomputed;    /* by layer: what backward has brought back */
    gint32 *forward_order; /* units by first use */
    gint32 *backward_order;
    gint64 tokens, pairs;
    gint32 *slots; /* kept of every micro-batch in flight */
    gint64 n_slots;
    gint16 micro_batch;
    gboolean last_micro_batch;
    /* buckets */
    GArray *open;            /* gint32: units complete in the open bucket */
    gint64 open_elements;    /* of complete units */
    gint32 previous_reduced; /* event: the bucket before the open one is reduced */
    gint32 before_previous_reduced;
} Ideal;

/* memory.c */
gint64 ideal_shard_elements(const Ideal *ideal, gint64 elements);
gint64 ideal_gathered_bytes(const Ideal *ideal, gint32 unit);
void ideal_allocate_persistent(Ideal *ideal);
ZpLayerBytes ideal_layer_bytes(const Ideal *ideal, gint32 layer);
gint64 ideal_owned_elements(const Ideal *ideal);

/* compute.c */
void ideal_forward(Ideal *ideal);
void ideal_backward(Ideal *ideal);
/* One micro-batch of a layer of job->model, communication of the model's cuts included; the
 * backward with what is recomputed for it. */
void ideal_layer_durations(const Ideal *ideal, const ZpJob *job, const ZpModelLayer *layer,
                           ZpTime *forward_ps, ZpTime *backward_ps);

/* pipeline.c: the passes of a step's micro-batches in the order of the schedule. */
void ideal_micro_batches(Ideal *ideal);

/* gather.c */
void ideal_open_unit(Ideal *ideal, const gint32 *order, gint32 position, gint32 prefetch,
                     ZpPhase phase);
void ideal_close_unit(Ideal *ideal, gint32 unit);
/* Stages 1 and 2: the parameters that the last optimizer step updated. */
void ideal_gather_updated(Ideal *ideal);

/* reduce.c */
gboolean ideal_reduces(const Ideal *ideal);
void ideal_begin_gradient(Ideal *ideal, gint32 unit);
void ideal_finish_gradient(Ideal *ideal, gint32 unit);
void ideal_flush(Ideal *ideal);
void ideal_wait_reduced(Ideal *ideal);

/* launch.c */
/* `rule`: how its duration was found, for ZpTapeWork.rule. */
void ideal_launch_kernel(Ideal *ideal, ZpKind kind, ZpTime duration_ps, double flops,
                         const char *rule);
void ideal_launch_collective(Ideal *ideal, guint8 stream, ZpKind kind, gint64 bytes, int group);
