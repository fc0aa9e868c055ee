/* What collectives move. */
#include "models/ledger/checks_internal.h"

static gint64
micro_batches(const ChecksFacts *facts)
{
    return MAX(1, facts->job->training.accumulation);
}

/* Message of all units together, each padded for its owners. */
static gint64
padded_bytes(const ChecksFacts *facts, ZpDtype dtype, gint64 shards)
{
    return checks_bytes(dtype, shards * facts->job->world.shard_group);
}

/* Is it so many messages?  Half bytes are rounded up unit by unit. */
static gboolean
is_messages(const ChecksFacts *facts, gint64 moved, gint64 times, gint64 message)
{
    gint64 rounding = times * facts->units->n_units;
    return moved >= times * message && moved <= times * message + rounding;
}

/* Gathers of units for one pass over all of them; DeepSpeed may fetch by reductions, from smaller
 * groups or quantised. */
gboolean
checks_gathers_plainly(const ChecksFacts *facts)
{
    const ZpDeepspeed *settings = facts->deepspeed;
    if (checks_parameter_owners(facts) == 1 || checks_quantises(facts))
        return FALSE;
    return facts->runtime != CHECKS_DEEPSPEED ||
           (!settings->all_reduce_for_fetch && settings->mics_shard_ranks == 0);
}

/* What a pass needs beyond what is stored whole. */
static gint64
needed_bytes(const ChecksFacts *facts, gint64 elements)
{
    ZpDtype dtype = checks_gathered(facts);
    gint64 whole = facts->device_bytes[ZP_CLASS_PARAMETER]; /* DeepSpeed's persistent ones */
    if (facts->runtime != CHECKS_DEEPSPEED)
        return micro_batches(facts) * checks_bytes(dtype, elements);
    return micro_batches(facts) * MAX(0, checks_bytes(dtype, elements) - whole);
}

static gboolean
forward_gathers_everything(const ChecksFacts *facts)
{
    const ChecksScan *scan = facts->scan;
    gint64 moved = scan->gathered_bytes[ZP_PHASE_FORWARD];
    if (facts->runtime != CHECKS_IDEAL)
        return !checks_gathers_plainly(facts) ||
               moved + scan->kept_at_forward_bytes >= needed_bytes(facts, facts->elements);
    gboolean gathers = facts->job->zero.stage >= 3 && facts->job->world.shard_group > 1;
    gint64 message = padded_bytes(facts, facts->job->precision.gathered, facts->shard_elements);
    return is_messages(facts, moved, gathers ? micro_batches(facts) : 0, message);
}

/* Of an embedding that is told not to be gathered again, and where all before the first trained
 * layer is left alone, less is needed. */
static gint64
backward_elements(const ChecksFacts *facts)
{
    const ZpModel *model = facts->job->model;
    gint64 elements = facts->trainable < facts->elements ? 0 : facts->elements;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++)
        if (zp_model_layer(model, l)->kind == ZP_LAYER_EMBEDDING)
            elements -= facts->units->units[facts->units->unit_of_layer[l]].elements;
    return MAX(0, elements);
}

static gboolean
backward_gathers_what_was_freed(const ChecksFacts *facts)
{
    const ChecksScan *scan = facts->scan;
    const ZpZero *zero = &facts->job->zero;
    gint64 moved = scan->gathered_bytes[ZP_PHASE_BACKWARD];
    if (facts->runtime != CHECKS_IDEAL)
        return !checks_gathers_plainly(facts) || moved + scan->kept_at_backward_bytes >=
                                                     needed_bytes(facts, backward_elements(facts));
    gboolean gathers =
        zero->stage >= 3 && facts->job->world.shard_group > 1 && zero->reshard_after_forward;
    gint64 message = padded_bytes(facts, facts->job->precision.gathered, facts->shard_elements);
    return is_messages(facts, moved, gathers ? micro_batches(facts) : 0, message);
}

/* After a step whose owners updated their shares, everybody gets them. */
static gboolean
updates_reach_everybody(const ChecksFacts *facts)
{
    int stage = facts->job->zero.stage;
    gint64 moved = facts->scan->gathered_bytes[ZP_PHASE_GATHER];
    gint32 owners = checks_state_owners(facts);
    if (facts->runtime & CHECKS_FSDP || stage == 0 || stage == 3 || owners == 1)
        return TRUE;
    gint64 least = checks_bytes(checks_stored(facts), facts->trainable);
    if (facts->runtime != CHECKS_IDEAL)
        return moved >= least;
    return is_messages(
        facts, moved, 1,
        padded_bytes(facts, facts->job->precision.parameter, facts->shard_trainable));
}

/* FSDP's replicas add up what the shard groups have reduced: that comes on top. */
static gint64
reduced_bytes(const ChecksFacts *facts)
{
    const gint64 *bytes = facts->scan->bytes;
    if (facts->runtime & CHECKS_FSDP && facts->job->world.shard_group > 1 &&
        bytes[ZP_KIND_REDUCE_SCATTER] > 0)
        return bytes[ZP_KIND_REDUCE_SCATTER];
    return bytes[ZP_KIND_ALL_REDUCE] + bytes[ZP_KIND_REDUCE_SCATTER] + bytes[ZP_KIND_REDUCE] +
           bytes[ZP_KIND_ALL_TO_ALL];
}

/* Divided gradients are reduced with every micro-batch, whole ones once; replicas of a shard group
 * then add theirs. */
static gboolean
ideal_gradients_are_reduced(const ChecksFacts *facts)
{
    const gint64 *bytes = facts->scan->bytes;
    const ZpWorld *world = &facts->job->world;
    ZpDtype dtype = facts->job->precision.reduce;
    int stage = facts->job->zero.stage;
    if (stage == 0)
        return bytes[ZP_KIND_ALL_REDUCE] ==
               (world->ranks > 1 ? checks_bytes(dtype, facts->trainable) : 0);
    gint64 times = stage >= 2 ? micro_batches(facts) : 1;
    gint64 message = padded_bytes(facts, dtype, facts->shard_trainable);
    gint64 replicas = world->ranks > world->shard_group ? message / world->shard_group : 0;
    return bytes[ZP_KIND_REDUCE_SCATTER] == (world->shard_group > 1 ? times * message : 0) &&
           bytes[ZP_KIND_ALL_REDUCE] == replicas;
}

static gboolean
gradients_are_reduced(const ChecksFacts *facts)
{
    const ZpFsdp *fsdp = facts->fsdp;
    if (facts->runtime == CHECKS_IDEAL)
        return ideal_gradients_are_reduced(facts);
    if (facts->job->world.ranks == 1 || checks_quantises(facts) || (fsdp->unwrapped))
        return TRUE;
    gint64 times = 1;
    if (facts->runtime == CHECKS_DEEPSPEED && facts->job->zero.stage >= 2)
        times = micro_batches(facts);
    /* A shard group of one rank leaves all to the replicas, who may wait for the last. */
    gboolean waits = facts->runtime == CHECKS_FSDP2 && facts->job->world.shard_group == 1 &&
                     !facts->fsdp->all_reduce_every_micro_batch;
    if (facts->runtime & CHECKS_TORCH && facts->fsdp->sync_every_micro_batch && !waits)
        times = micro_batches(facts);
    return reduced_bytes(facts) >= times * checks_bytes(checks_reduced(facts), facts->trainable);
}

/* Each rank puts on its link (n-1)/n of a gathered, scattered or exchanged message, twice that of a
 * reduction to all, a message of what goes from or to one rank; an owner at a time, all of it. */
static gboolean
wire_follows_the_ring(const ChecksFacts *facts, const ZpTapeWork *work)
{
    const ZpTape *tape = facts->step->tape;
    gint64 n = work->group != ZP_TAPE_NONE ? tape->groups[work->group].size : work->ranks;
    double message = (double)work->bytes;
    if (n <= 1)
        return work->wire_bytes == 0;
    double ring = message * (double)(n - 1) / (double)n, most = message;
    if (work->kind == ZP_KIND_ALL_REDUCE)
        ring = most = 2.0 * ring;
    else if (work->kind == ZP_KIND_BROADCAST || work->kind == ZP_KIND_REDUCE ||
             work->kind == ZP_KIND_SEND)
        ring = message;
    double wire = (double)work->wire_bytes, slack = 2.0 + 1e-9 * message;
    gboolean by_owner = facts->job->network.piece_bytes > 0 && wire >= most - slack;
    return wire >= ring - slack && wire <= (by_owner ? most : ring) + slack;
}

static gboolean
wire_bytes_follow(const ChecksFacts *facts)
{
    const ZpTape *tape = facts->step->tape;
    for (gint32 w = 0; w < tape->n_works; w++) {
        const ZpTapeWork *work = &tape->works[w];
        if (work->category == ZP_TAPE_COMMUNICATION && work->kind != ZP_KIND_WAIT &&
            !wire_follows_the_ring(facts, work))
            return FALSE;
        if (work->category == ZP_TAPE_COPY && work->wire_bytes != work->bytes)
            return FALSE;
    }
    return TRUE;
}

const ChecksRule checks_traffic_rules[] = {
    {{"forward-gathers-every-parameter",
      "what a forward computes with was kept or gathered, in the format of the products",
      "ZeRO, section 7.2.2: a message of all parameters for each pass"},
     CHECKS_ALL,
     FALSE,
     forward_gathers_everything},
    {{"backward-gathers-what-was-freed",
      "what a backward computes with was kept since forward or gathered again",
      "ZeRO, section 7.2.2: a message of all parameters for each pass"},
     CHECKS_ALL,
     FALSE,
     backward_gathers_what_was_freed},
    {{"updated-parameters-are-gathered", "shares updated by their owners reach every rank",
      "ZeRO, section 7.2.1"},
     CHECKS_ALL,
     FALSE,
     updates_reach_everybody},
    {{"gradients-are-reduced",
      "every gradient is reduced, divided ones with each micro-batch, in the format of reductions",
      "ZeRO, section 7.2.1"},
     CHECKS_ALL,
     FALSE,
     gradients_are_reduced},
    {{"wire-bytes-follow-the-collective",
      "(n-1)/n of a message to gather or scatter it, twice that to reduce it to all",
      "Thakur, Rabenseifner and Gropp 2005; nccl-tests, doc/PERFORMANCE.md"},
     CHECKS_ALL,
     FALSE,
     wire_bytes_follow},
    {{NULL, NULL, NULL}, 0, FALSE, NULL},
};
