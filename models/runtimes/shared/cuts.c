#include "models/runtimes/shared/cuts.h"

#include <string.h>

#include "models/parallel/parallel.h"
#include "models/prices/cost.h"

enum { MAX_OPERATIONS = 4 };

typedef struct {
    ZpKind kind;
    gint64 bytes;
    gint32 size, stride; /* of the group, in places of the world */
    const char *label;
} Operation;

typedef struct {
    int n;
    Operation list[MAX_OPERATIONS];
} Operations;

static gint64
number_bytes(const ZpJob *job)
{
    return MAX(16, zp_dtype_bits(job->precision.gathered)) / 8;
}

static gint64
tokens_of(const ZpJob *job)
{
    return job->training.micro_batch * job->training.sequence;
}

static gint64
stream_bytes(const ZpJob *job)
{
    return tokens_of(job) * job->model->hidden * number_bytes(job);
}

static void
add(Operations *operations, const Operation *operation)
{
    g_assert(operations->n < MAX_OPERATIONS);
    operations->list[operations->n++] = *operation;
}

/* An input that all ranks need and an output that all ranks have a part of: f and g of the papers
 * (_f and _g their conjugates in backward). */
static void
add_sublayer(const ZpJob *job, gboolean gathers, gboolean reduces, Operations *operations)
{
    const ZpParallel *parallel = &job->world.parallel;
    Operation operation = {ZP_KIND_ALL_REDUCE, stream_bytes(job), parallel->tensor, 1, "tensor"};
    if (zp_parallel_sequence(parallel)) {
        operation.kind = ZP_KIND_ALL_GATHER;
        if (gathers)
            add(operations, &operation);
        operation.kind = ZP_KIND_REDUCE_SCATTER;
    }
    if (reduces)
        add(operations, &operation);
}

/* The loss of cut logits: maximum, sum and the target's logit of each token, in fp32
 * (megatron/core/tensor_parallel/cross_entropy.py). */
static void
add_loss(const ZpJob *job, Operations *operations)
{
    Operation operation = {ZP_KIND_ALL_REDUCE, 4 * tokens_of(job), job->world.parallel.tensor, 1,
                           "tensor"};
    for (int i = 0; i < 3; i++)
        add(operations, &operation);
}

static void
add_tensor(const ZpJob *job, const ZpModelLayer *layer, ZpKind pass, Operations *operations)
{
    gboolean backward = pass == ZP_KIND_BACKWARD;
    if (!layer->tensor_cut || job->world.parallel.tensor <= 1)
        return;
    if (layer->kind == ZP_LAYER_EMBEDDING) {
        add_sublayer(job, backward, !backward, operations);
    } else if (layer->kind == ZP_LAYER_HEAD) {
        add_sublayer(job, !backward, backward, operations);
        if (!backward)
            add_loss(job, operations);
    } else {
        add_sublayer(job, TRUE, TRUE, operations);
    }
}

static void
add_context(const ZpJob *job, const ZpModelLayer *layer, ZpKind pass, Operations *operations)
{
    const ZpParallel *parallel = &job->world.parallel;
    const ZpModel *model = job->model;
    if (layer->flops_per_pair == 0 || zp_parallel_context(parallel) == 1)
        return;
    gint64 sequence = tokens_of(job) * parallel->context;
    Operation operation = {ZP_KIND_ALL_GATHER,
                           2 * sequence * model->kv_heads * model->head_size * number_bytes(job),
                           parallel->context, zp_parallel_tensor(parallel), "context"};
    add(operations, &operation);
    operation.kind = ZP_KIND_REDUCE_SCATTER;
    if (pass == ZP_KIND_BACKWARD)
        add(operations, &operation);
}

/* The attention core, all that the selective policy recomputes, talks to nobody. */
static Operations
find_operations(const ZpJob *job, const ZpModelLayer *layer, ZpKind pass)
{
    Operations operations = {.n = 0};
    if (pass == ZP_KIND_RECOMPUTE && job->training.checkpointing == ZP_CHECKPOINTING_SELECTIVE)
        return operations;
    add_context(job, layer, pass, &operations);
    add_tensor(job, layer, pass, &operations);
    return operations;
}

/* Groups of the model's cuts are numbered by places of the world; they send what they have in one
 * message. */
static ZpCost
price(const ZpJob *job, const Operation *operation)
{
    ZpNetwork network = job->network;
    network.rank_stride = 1;
    network.piece_bytes = 0;
    return zp_cost_collective(&network, operation->kind, operation->bytes, operation->size,
                              operation->stride);
}

/* Labels are static strings: one of each a tape. */
static gint32
label_of(ZpTape *tape, const char *label)
{
    guint index = 0;
    if (g_ptr_array_find(tape->labels, label, &index))
        return (gint32)index;
    return zp_tape_add_label(tape, label);
}

static void
launch(const ZpJob *job, ZpTape *tape, guint8 stream, const Operation *operation)
{
    ZpCost cost = price(job, operation);
    ZpTapeWork work = {
        .fixed_ps = cost.fixed_ps,
        .solo_ps = cost.solo_ps,
        .bytes = operation->bytes,
        .wire_bytes = cost.wire_bytes,
        .kind = (gint16)operation->kind,
        .link = (gint8)cost.link,
        .group = ZP_TAPE_NONE, /* its ranks are one simulated rank */
        .category = ZP_TAPE_COMMUNICATION,
        .rule = zp_tape_add_rule(tape, cost.rule),
        .label = label_of(tape, operation->label),
        .ranks = operation->size,
    };
    zp_tape_launch(tape, stream, zp_tape_add_work(tape, &work));
}

void
zp_cuts_communicate(const ZpJob *job, ZpTape *tape, guint8 stream, const ZpModelLayer *layer,
                    ZpKind pass)
{
    Operations operations = find_operations(job, layer, pass);
    for (int i = 0; i < operations.n; i++)
        launch(job, tape, stream, &operations.list[i]);
}

ZpTime
zp_cuts_duration(const ZpJob *job, const ZpModelLayer *layer, ZpKind pass)
{
    Operations operations = find_operations(job, layer, pass);
    ZpTime sum = 0;
    for (int i = 0; i < operations.n; i++) {
        ZpCost cost = price(job, &operations.list[i]);
        sum = zp_time_add(sum, zp_time_add(cost.fixed_ps, cost.solo_ps));
    }
    return sum;
}

/* Stages are the outermost part of a rank's number. */
static Operation
send(const ZpJob *job)
{
    const ZpParallel *parallel = &job->world.parallel;
    gint64 cut = zp_parallel_sequence(parallel) ? parallel->tensor : 1;
    return (Operation){ZP_KIND_SEND, stream_bytes(job) / cut, 2,
                       job->world.ranks * zp_parallel_tensor(parallel), "pipeline"};
}

void
zp_cuts_send(const ZpJob *job, ZpTape *tape, guint8 stream)
{
    Operation operation = send(job);
    launch(job, tape, stream, &operation);
}

void
zp_cuts_wait(ZpTape *tape, guint8 stream, ZpTime waiting_ps)
{
    ZpTapeWork work = {
        .fixed_ps = waiting_ps,
        .kind = ZP_KIND_WAIT,
        .link = ZP_TAPE_NONE,
        .group = ZP_TAPE_NONE,
        .category = ZP_TAPE_COMMUNICATION,
        .rule = zp_tape_add_rule(tape, "passes of the other stages"),
        .label = label_of(tape, "pipeline"),
    };
    if (waiting_ps > 0)
        zp_tape_launch(tape, stream, zp_tape_add_work(tape, &work));
}

ZpTime
zp_cuts_send_duration(const ZpJob *job)
{
    Operation operation = send(job);
    ZpCost cost = price(job, &operation);
    return zp_time_add(cost.fixed_ps, cost.solo_ps);
}
