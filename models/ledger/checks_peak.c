/* What lives within a step: most of each class alone. */
#include "models/ledger/checks_internal.h"

static gint64
form_bytes(const ZpTraining *training, const ZpModelBytes *form)
{
    gint64 b = training->micro_batch, s = training->sequence;
    gint64 of_sequence = form->bytes_per_position + b * form->bytes_per_token;
    gint64 of_square = form->bytes_per_position_pair + b * form->bytes_per_pair;
    gint64 bytes = form->constant_bytes + b * form->bytes_per_sequence;
    return MAX(0, bytes + s * (of_sequence + s * of_square));
}

static gint64
peak_bytes(const ZpTraining *training, const ZpModelPeak *peak)
{
    gint64 largest = 0;
    for (gint32 f = 0; f < peak->n_forms; f++)
        largest = MAX(largest, form_bytes(training, &peak->forms[f]));
    return largest;
}

/* Of a kind of layer under one policy. */
typedef struct {
    gint64 kept, recomputed, forward, recompute, backward;
    gint64 growing; /* of kept, what grows with the tokens */
} Needs;

static Needs *
needs_of(const ZpJob *job, ZpCheckpointing policy)
{
    const ZpModel *model = job->model;
    Needs *needs = g_new0(Needs, model->activations->len + 1);
    for (guint a = 0; a < model->activations->len; a++) {
        const ZpModelPolicyBytes *own = zp_model_policy_bytes(
            zp_model_activation(model, (gint32)a), (int)policy, job->training.micro_batch);
        needs[a] = (Needs){
            .kept = form_bytes(&job->training, &own->kept),
            .growing = form_bytes(&job->training, &own->kept) - MAX(0, own->kept.constant_bytes),
            .recomputed = form_bytes(&job->training, &own->recomputed),
            .forward = peak_bytes(&job->training, &own->forward),
            .recompute = peak_bytes(&job->training, &own->recompute),
            .backward = peak_bytes(&job->training, &own->backward),
        };
    }
    return needs;
}

/* A class of what layers hold, at least and at most at its worst instant. */
typedef struct {
    gint64 kept, growing, recomputed, beside, most;
} Held;

static void
hold(Held *held, const Needs *own, gboolean backward)
{
    held->kept += own->kept;
    held->growing += own->growing;
    held->recomputed += own->recomputed;
    gint64 later = backward ? held->recomputed + own->backward : 0;
    held->most = MAX(held->most, held->kept + MAX(own->forward, later));
    held->beside =
        MAX(held->beside, MAX(own->forward, held->recomputed + MAX(own->recompute, own->backward)));
}

/* When a layer runs, forward or backward, what those before it keep is there as well. */
static void
hold_layers(const ChecksFacts *facts, Held *activations, Held *logits)
{
    const ZpModel *model = facts->job->model;
    g_autofree Needs *in_block = needs_of(facts->job, facts->job->training.checkpointing);
    g_autofree Needs *outside = needs_of(facts->job, ZP_CHECKPOINTING_NONE);
    /* Frameworks run no backward where nothing is trained. */
    gboolean backward = facts->runtime == CHECKS_IDEAL || facts->trainable == facts->elements;
    gint32 block = ZP_MODEL_NONE;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        activations->recomputed = layer->block == block ? activations->recomputed : 0;
        block = layer->block;
        if (layer->activation != ZP_MODEL_NONE)
            hold(layer->kind == ZP_LAYER_HEAD ? logits : activations,
                 &(block == ZP_MODEL_NONE ? outside : in_block)[layer->activation], backward);
    }
}

/* Micro-batches whose activations a pipeline's first stage keeps at a time. */
static gint64
in_flight(const ZpJob *job)
{
    return MAX(1, MIN(job->world.parallel.pipeline, job->training.accumulation));
}

/* Tensor by tensor, kept ones die while gradients are born, and casts of weights may live longer or
 * shorter than their operator: sums say less then. */
#define OPERATOR_BYTES (G_GINT64_CONSTANT(16) << 20) /* of operators, whatever the tokens */

static gboolean
plays_tensors(const ChecksFacts *facts)
{
    return (facts->runtime & CHECKS_TORCH) != 0 && facts->job->model->scripts->len > 0;
}

static gboolean
activations_are_per_rank(const ChecksFacts *facts)
{
    Held activations = {0}, logits = {0};
    hold_layers(facts, &activations, &logits);
    gint64 others = (in_flight(facts->job) - 1) * activations.kept;
    gint64 least = plays_tensors(facts) ? activations.growing : activations.most;
    return facts->peak_bytes[ZP_CLASS_ACTIVATION] >= least + others;
}

static gboolean
activations_are_counted_once(const ChecksFacts *facts)
{
    Held activations = {0}, logits = {0};
    hold_layers(facts, &activations, &logits);
    gint64 most = in_flight(facts->job) * activations.kept + activations.beside;
    if (plays_tensors(facts))
        most = 2 * most + OPERATOR_BYTES;
    return facts->peak_bytes[ZP_CLASS_ACTIVATION] <= most;
}

static gboolean
logits_are_counted(const ChecksFacts *facts)
{
    Held activations = {0}, logits = {0};
    hold_layers(facts, &activations, &logits);
    return facts->peak_bytes[ZP_CLASS_LOGITS] >= logits.most;
}

/* A product that makes l numbers of h ones takes 2 h l FLOPs: so many logits of 16 bits or more
 * live at once, unless the loss takes them in chunks that it makes again. */
gint64
checks_least_logits_bytes(const ChecksFacts *facts)
{
    const ZpModel *model = facts->job->model;
    gint64 positions = facts->job->training.micro_batch * (facts->job->training.sequence - 1);
    gint64 least = 0;
    for (gint32 l = 0; l < (gint32)model->layers->len && model->hidden > 0; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        gint64 tensor = MAX(1, facts->job->world.parallel.tensor);
        gint64 per_token = layer->flops_per_token / (2 * model->hidden);
        if (layer->kind == ZP_LAYER_HEAD && !layer->runs_again && layer->activation >= 0 &&
            model->vocabulary > 0 && per_token >= model->vocabulary / tensor)
            least = 2 * positions * (model->vocabulary / tensor);
    }
    return least;
}

static gboolean
logits_are_whole(const ChecksFacts *facts)
{
    return facts->peak_bytes[ZP_CLASS_LOGITS] >= checks_least_logits_bytes(facts);
}

/* New memory of a gathered unit: whole, but for the rank's shard where that has the same format. */
gint64
checks_missing_bytes(const ChecksFacts *facts, gint64 elements)
{
    const ZpPrecision *precision = &facts->job->precision;
    gint64 owners = facts->job->world.shard_group;
    gint64 shard = checks_ceil(elements, owners);
    gint64 held = precision->gathered == precision->parameter ? shard : 0;
    return checks_bytes(precision->gathered, shard * owners - held);
}

/* What a framework gathers it gathers into new memory; DeepSpeed parameter by parameter. */
static gboolean
gathers_apart(const ChecksFacts *facts)
{
    const ZpDeepspeed *settings = facts->deepspeed;
    if (checks_parameter_owners(facts) == 1 || checks_quantises(facts))
        return FALSE;
    return facts->runtime != CHECKS_DEEPSPEED ||
           settings->param_persistence_elements <= facts->largest_parameter_elements;
}

static gboolean
gathered_unit_is_counted(const ChecksFacts *facts)
{
    gint64 largest = 0;
    if (facts->runtime == CHECKS_IDEAL) {
        for (gint32 u = 0; u < facts->units->n_units && facts->job->zero.stage >= 3; u++)
            largest = MAX(largest, checks_missing_bytes(facts, facts->units->units[u].elements));
    } else if (gathers_apart(facts)) {
        gboolean by_unit = facts->runtime & CHECKS_FSDP && (!facts->fsdp->wrap_trainable);
        largest = checks_bytes(checks_gathered(facts), by_unit ? facts->largest_unit_elements
                                                               : facts->largest_parameter_elements);
    }
    return facts->peak_bytes[ZP_CLASS_GATHERED] >= largest;
}

/* With prefetch, the next unit's gather starts when a unit starts: both are alive then. */
static gboolean
prefetched_unit_is_counted(const ChecksFacts *facts)
{
    const ZpZero *zero = &facts->job->zero;
    if (zero->stage < 3 || zero->prefetch_forward == 0)
        return TRUE;
    gint64 pair = 0;
    for (gint32 u = 0; u + 1 < facts->units->n_units; u++)
        pair = MAX(pair, checks_missing_bytes(facts, facts->units->units[u].elements) +
                             checks_missing_bytes(facts, facts->units->units[u + 1].elements));
    return facts->peak_bytes[ZP_CLASS_GATHERED] >= pair;
}

/* Resharded units make room: never more than two roots' worth, the deepest prefetch and one unit.
 */
static gboolean
gathered_units_are_freed(const ChecksFacts *facts)
{
    const ZpZero *zero = &facts->job->zero;
    if (facts->of_ledger)
        return TRUE;
    if (facts->device_bytes[ZP_CLASS_GATHERED] > 0)
        return FALSE;
    gint64 sum = 0, n = 0;
    for (gint32 u = 0; u < facts->units->n_units; u++) {
        const ZpUnit *unit = &facts->units->units[u];
        gboolean spans = unit->last_layer - unit->first_layer > 3;
        sum += spans ? checks_missing_bytes(facts, unit->elements) : 0;
        n += !spans;
    }
    gint64 depth = 1 + MAX(zero->prefetch_forward, zero->prefetch_backward);
    gint64 room = sum + (depth + 1) * checks_missing_bytes(facts, facts->largest_unit_elements);
    return zero->stage < 3 || !zero->reshard_after_forward || n <= depth + 1 ||
           facts->peak_bytes[ZP_CLASS_GATHERED] <= room;
}

/* Gradients that wait for their reduction, of the largest unit at least. */
gint64
checks_least_bucket_bytes(const ChecksFacts *facts)
{
    const ZpDeepspeed *settings = facts->deepspeed;
    if (facts->job->world.ranks == 1)
        return 0;
    gint64 unit = facts->largest_trainable_elements, owners = facts->job->world.shard_group;
    ZpDtype dtype = checks_reduced(facts);
    switch (facts->runtime) {
    case CHECKS_IDEAL:
        return checks_bytes(dtype,
                            facts->job->zero.stage > 0 ? checks_ceil(unit, owners) * owners : unit);
    case CHECKS_FSDP2:
        return facts->fsdp->wrap_trainable ? 0 : checks_bytes(dtype, unit);
    case CHECKS_FSDP1:
        if (facts->fsdp->wrap_trainable) /* units of their own lie inside */
            return 0;
        return checks_parameter_owners(facts) == 1 ? 0 : checks_bytes(dtype, unit / owners);
    case CHECKS_DEEPSPEED:
        if (facts->job->zero.stage == 0 || !settings->contiguous_gradients)
            return 0;
        unit = MIN(facts->trainable, settings->reduce_bucket_elements);
        return facts->job->zero.stage == 1 ? 0 : checks_bytes(dtype, unit);
    default:
        return facts->fsdp->unwrapped ? 0 : checks_bytes(dtype, facts->trainable);
    }
}

static gboolean
buckets_are_counted(const ChecksFacts *facts)
{
    return facts->peak_bytes[ZP_CLASS_COMMUNICATION] >= checks_least_bucket_bytes(facts);
}

static gboolean
nothing_of_a_pass_stays(const ChecksFacts *facts)
{
    static const ZpClass classes[] = {ZP_CLASS_ACTIVATION, ZP_CLASS_LOGITS, ZP_CLASS_WORKSPACE,
                                      ZP_CLASS_OPTIMIZER_TEMPORARY};
    for (gsize i = 0; i < G_N_ELEMENTS(classes); i++)
        if (!facts->of_ledger && facts->device_bytes[classes[i]] > 0)
            return FALSE;
    return TRUE;
}

gint64
checks_least_temporary_bytes(const ChecksFacts *facts)
{
    const ZpOptimizer *optimizer = facts->job->optimizer;
    gint32 owners = checks_state_owners(facts);
    gint64 least = 0;
    if (facts->runtime == CHECKS_IDEAL) {
        gint64 owned = owners > 1 ? facts->shard_trainable : facts->trainable;
        gint64 largest = checks_ceil(facts->largest_parameter_elements, owners);
        least = checks_ceil(owned * optimizer->temporary_bits, 8);
        if (owned > 0)
            least += 4 * largest * optimizer->temporary_largest_copies;
    } else if (optimizer->variance && !checks_offloads(facts) && facts->job->zero.stage != 1 &&
               (facts->fsdp->optimizer == ZP_FSDP_OPTIMIZER_FOREACH)) {
        least = facts->stored[CHECKS_VARIANCE].bounds.low;
    }
    return least;
}

static gboolean
optimizer_temporaries_are_counted(const ChecksFacts *facts)
{
    return facts->peak_bytes[ZP_CLASS_OPTIMIZER_TEMPORARY] >= checks_least_temporary_bytes(facts);
}

static gboolean
ledger_adds_up(const ChecksFacts *facts)
{
    const ZpLedger *ledger = facts->step->ledger;
    gint64 sum = 0;
    for (int c = 0; c < ZP_N_CLASSES; c++)
        sum += facts->bytes[c] + facts->peak_bytes[c];
    return !facts->of_ledger || ledger->total_bytes == sum + ledger->contingency_bytes;
}

const ChecksRule checks_peak_rules[] = {
    {{"activations-are-per-rank",
      "data parallelism does not divide activations, and layers keep theirs until backward",
      "ZeRO, section 3.2; arXiv 2205.05198, section 4.1"},
     CHECKS_ALL,
     TRUE,
     activations_are_per_rank},
    {{"activations-are-counted-once", "a layer keeps its activations once for each micro-batch",
      "arXiv 2205.05198, section 4.1"},
     CHECKS_ALL,
     TRUE,
     activations_are_counted_once},
    {{"logits-are-whole", "a number for every token and word that the head's FLOPs pay for",
      "2 x hidden FLOPs a logit"},
     CHECKS_ALL,
     TRUE,
     logits_are_whole},
    {{"logits-are-counted", "the head's storages live beside one another as its autograd has them",
      "torch.nn.functional.cross_entropy"},
     CHECKS_ALL,
     TRUE,
     logits_are_counted},
    {{"gathered-unit-is-counted", "the largest unit is alive while it computes",
      "ZeRO, section 5.3; FSDP (arXiv 2304.11277), section 3.2.1"},
     CHECKS_IDEAL | CHECKS_FSDP | CHECKS_DEEPSPEED,
     TRUE,
     gathered_unit_is_counted},
    {{"prefetched-unit-is-counted", "the unit gathered ahead is alive beside it",
      "FSDP (arXiv 2304.11277), section 3.3.2"},
     CHECKS_IDEAL,
     TRUE,
     prefetched_unit_is_counted},
    {{"gathered-units-are-freed", "a resharded unit makes room, and none outlives the step",
      "FSDP (arXiv 2304.11277), section 3.2.1"},
     CHECKS_IDEAL,
     TRUE,
     gathered_units_are_freed},
    {{"gradient-buckets-are-counted", "gradients wait for their reduction in memory of their own",
      "ZeRO, section 5.2; PyTorch DDP (arXiv 2006.15704), section 3.2.3"},
     CHECKS_ALL,
     TRUE,
     buckets_are_counted},
    {{"temporaries-are-freed", "no activation, logit or temporary outlives the step",
      "torch.autograd frees what backward has used"},
     CHECKS_ALL,
     TRUE,
     nothing_of_a_pass_stays},
    {{"optimizer-temporaries-are-counted", "the step's own tensors live beside the state",
      "torch.optim, _multi_tensor_adam and _single_tensor_adam"},
     CHECKS_IDEAL | CHECKS_TORCH,
     TRUE,
     optimizer_temporaries_are_counted},
    {{"ledger-adds-up", "the total is the sum of the parts", "the ledger's definition"},
     CHECKS_IDEAL,
     TRUE,
     ledger_adds_up},
    {{NULL, NULL, NULL}, 0, FALSE, NULL},
};
