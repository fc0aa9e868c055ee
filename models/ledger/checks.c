#include "models/ledger/checks.h"

G_DEFINE_QUARK(zp - checks - error - quark, zp_checks_error)

typedef struct {
    const ZpJob *job;
    const ZpUnits *units;
    const ZpChecksFigures *figures;
    /* Sums over units. */
    gint64 elements, trainable;             /* whole */
    gint64 shard_elements, shard_trainable; /* one rank's, rounded up */
} Facts;

typedef struct {
    ZpChecksName label;
    gboolean (*holds)(const Facts *facts);
} Check;

void
zp_checks_figures_of_play(const ZpPlayRank *rank, ZpChecksFigures *figures)
{
    const ZpMemory *memory = &rank->memory[ZP_TAPE_SPACE_DEVICE];
    for (int c = 0; c < ZP_N_CLASSES; c++)
        figures->persistent[c] = memory->bytes[c];
    figures->gathered_peak_bytes = memory->class_peak_bytes[ZP_CLASS_GATHERED];
    figures->activation_peak_bytes = memory->class_peak_bytes[ZP_CLASS_ACTIVATION];
}

void
zp_checks_figures_of_ledger(const ZpLedger *ledger, ZpChecksFigures *figures)
{
    *figures = (ZpChecksFigures){
        .gathered_peak_bytes = ledger->gathered_bytes + ledger->prefetched_bytes,
        .activation_peak_bytes = ledger->activation_bytes,
    };
    for (int r = 0; r < ledger->n_rows; r++)
        figures->persistent[ledger->rows[r].class_id] += ledger->rows[r].persistent_bytes;
}

static gint64
bytes_of(ZpDtype dtype, gint64 elements)
{
    return zp_dtype_bytes(zp_dtype_bits(dtype), elements);
}

static gint64
ceil_divide(gint64 a, gint64 b)
{
    return a / b + (a % b != 0);
}

/* The class that stands for optimizer state: the master copy, else a moment. */
static gint64
optimizer_state_bytes(const Facts *facts, gint64 elements, gint64 *measured)
{
    const ZpJob *job = facts->job;
    if (job->precision.master != ZP_DTYPE_NONE) {
        *measured = facts->figures->persistent[ZP_CLASS_MASTER];
        return bytes_of(job->precision.master, elements);
    }
    *measured = facts->figures->persistent[ZP_CLASS_MOMENTUM];
    return job->optimizer->momentum ? bytes_of(job->precision.moments, elements) : 0;
}

static gboolean
optimizer_is_divided(const Facts *facts)
{
    if (facts->job->zero.stage < 1 || facts->job->world.shard_group == 1)
        return TRUE;
    gint64 measured = 0;
    gint64 replicated = optimizer_state_bytes(facts, facts->trainable, &measured);
    return replicated == 0 || facts->shard_trainable == facts->trainable || measured < replicated ||
           (measured == 2 * bytes_of(facts->job->precision.moments, facts->shard_trainable) &&
            facts->job->precision.master == ZP_DTYPE_NONE); /* counted twice: another rule's case */
}

static gboolean
parameters_are_whole(const Facts *facts)
{
    return facts->job->zero.stage >= 3 ||
           facts->figures->persistent[ZP_CLASS_PARAMETER] >=
               bytes_of(facts->job->precision.parameter, facts->elements);
}

static gboolean
master_is_counted(const Facts *facts)
{
    return facts->job->precision.master == ZP_DTYPE_NONE || facts->trainable == 0 ||
           facts->figures->persistent[ZP_CLASS_MASTER] > 0;
}

/* One moment takes its dtype's width per owned element (and a scale a block), never twice that. */
static gboolean
moments_are_counted_once(const Facts *facts)
{
    const ZpOptimizer *optimizer = facts->job->optimizer;
    gint64 owned = facts->job->zero.stage >= 1 ? facts->shard_trainable : facts->trainable;
    gint64 once = bytes_of(facts->job->precision.moments, owned);
    if (optimizer->block_elements > 0)
        once += 4 * ceil_divide(owned, optimizer->block_elements);
    if (optimizer->momentum && facts->figures->persistent[ZP_CLASS_MOMENTUM] > once)
        return FALSE;
    return !optimizer->variance || optimizer->factored ||
           facts->figures->persistent[ZP_CLASS_VARIANCE] <= once;
}

/* Shards of all owners together hold every element: what floor division would lose. */
static gboolean
padding_is_kept(const Facts *facts)
{
    const ZpJob *job = facts->job;
    if (job->zero.stage >= 3 && facts->figures->persistent[ZP_CLASS_PARAMETER] <
                                    bytes_of(job->precision.parameter, facts->shard_elements))
        return FALSE;
    if (job->zero.stage >= 2 && facts->figures->persistent[ZP_CLASS_GRADIENT] <
                                    bytes_of(job->precision.gradient, facts->shard_trainable))
        return FALSE;
    gint64 measured = 0;
    gint64 owned = optimizer_state_bytes(facts, facts->shard_trainable, &measured);
    return job->zero.stage < 1 || measured >= owned;
}

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
    gint64 kept, recomputed, forward, backward;
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
            .recomputed = form_bytes(&job->training, &own->recomputed),
            .forward = peak_bytes(&job->training, &own->forward),
            .backward = peak_bytes(&job->training, &own->backward),
        };
    }
    return needs;
}

/* Activations belong to a rank's own micro-batch: data parallelism does not divide them.  When a
 * layer runs, forward or backward, what those before it keep is there as well. */
static gboolean
activations_are_per_rank(const Facts *facts)
{
    const ZpModel *model = facts->job->model;
    g_autofree Needs *in_block = needs_of(facts->job, facts->job->training.checkpointing);
    g_autofree Needs *outside = needs_of(facts->job, ZP_CHECKPOINTING_NONE);
    gint64 kept = 0, recomputed = 0, most = 0;
    gint32 block = ZP_MODEL_NONE;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        recomputed = layer->block == block ? recomputed : 0;
        block = layer->block;
        if (layer->kind == ZP_LAYER_HEAD || layer->activation == ZP_MODEL_NONE)
            continue; /* a head's are logits */
        const Needs *own = &(block == ZP_MODEL_NONE ? outside : in_block)[layer->activation];
        kept += own->kept;
        recomputed += own->recomputed;
        most = MAX(most, kept + MAX(own->forward, recomputed + own->backward));
    }
    return facts->figures->activation_peak_bytes >= most;
}

static gint64
missing_bytes(const Facts *facts, gint32 unit)
{
    const ZpPrecision *precision = &facts->job->precision;
    gint64 owners = facts->job->world.shard_group;
    gint64 shard = ceil_divide(facts->units->units[unit].elements, owners);
    gint64 held = precision->gathered == precision->parameter ? shard : 0;
    return bytes_of(precision->gathered, shard * owners - held);
}

static gboolean
gathered_unit_is_counted(const Facts *facts)
{
    gint64 largest = 0;
    if (facts->job->zero.stage < 3)
        return TRUE;
    for (gint32 u = 0; u < facts->units->n_units; u++)
        largest = MAX(largest, missing_bytes(facts, u));
    return facts->figures->gathered_peak_bytes >= largest;
}

/* With prefetch, the next unit's gather starts when a unit starts: both are alive then. */
static gboolean
prefetched_unit_is_counted(const Facts *facts)
{
    const ZpZero *zero = &facts->job->zero;
    if (zero->stage < 3 || zero->prefetch_forward == 0)
        return TRUE;
    gint64 pair = 0;
    for (gint32 u = 0; u + 1 < facts->units->n_units; u++)
        pair = MAX(pair, missing_bytes(facts, u) + missing_bytes(facts, u + 1));
    return facts->figures->gathered_peak_bytes >= pair;
}

static const Check checks[] = {
    {{"master-weights-are-counted", "a master copy exists when the precision asks for one"},
     master_is_counted},
    {{"padding-is-kept", "the shards of all owners cover every element"}, padding_is_kept},
    {{"optimizer-state-is-divided", "from stage 1 on a rank stores its share alone"},
     optimizer_is_divided},
    {{"moments-are-counted-once", "one momentum and one variance per owned element"},
     moments_are_counted_once},
    {{"parameters-are-whole-below-stage-3", "stages 0 to 2 replicate the parameters"},
     parameters_are_whole},
    {{"activations-are-per-rank", "data parallelism does not divide activations"},
     activations_are_per_rank},
    {{"gathered-unit-is-counted", "the largest unit is alive while it computes"},
     gathered_unit_is_counted},
    {{"prefetched-unit-is-counted", "the unit gathered ahead is alive beside it"},
     prefetched_unit_is_counted},
};

gboolean
zp_checks_run(const ZpJob *job, const ZpUnits *units, const ZpChecksFigures *figures,
              GError **error)
{
    Facts facts = {.job = job, .units = units, .figures = figures};
    for (gint32 u = 0; u < units->n_units; u++) {
        const ZpUnit *unit = &units->units[u];
        facts.elements += unit->elements;
        facts.trainable += unit->trainable_elements;
        facts.shard_elements += ceil_divide(unit->elements, job->world.shard_group);
        facts.shard_trainable += ceil_divide(unit->trainable_elements, job->world.shard_group);
    }
    for (gsize c = 0; c < G_N_ELEMENTS(checks); c++) {
        if (!checks[c].holds(&facts)) {
            g_set_error(error, ZP_CHECKS_ERROR, (gint)c, "%s: broken rule: %s",
                        checks[c].label.name, checks[c].label.guards);
            return FALSE;
        }
    }
    return TRUE;
}

gsize
zp_checks_count(void)
{
    return G_N_ELEMENTS(checks);
}

const ZpChecksName *
zp_checks_name(gsize index)
{
    g_assert(index < G_N_ELEMENTS(checks));
    return &checks[index].label;
}
