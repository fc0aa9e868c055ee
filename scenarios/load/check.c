/* Rules between keys: what must divide, what needs what, and which products must fit 64 bits. */
#include "models/job/wrapping.h"
#include "scenarios/load/resolve_internal.h"

static void
check_world(ZpScenarioResolve *resolve)
{
    gint64 ranks = zp_scenario_data_ranks(resolve),
           group = zp_scenario_key_integer(resolve, ZP_KEY_SHARD_GROUP);
    gboolean cut = ranks != zp_scenario_key_integer(resolve, ZP_KEY_RANKS);
    gint64 simulated = zp_scenario_key_integer(resolve, ZP_KEY_SIMULATED_RANKS);
    gint64 slow = zp_scenario_key_integer(resolve, ZP_KEY_SLOW_RANK);
    if (group > ranks || ranks % group != 0)
        zp_scenario_resolve_complain(
            resolve, ZP_KEY_SHARD_GROUP, ZP_SCENARIO_ERROR_RANGE,
            "a shard group of %" G_GINT64_FORMAT " ranks does not divide %s, %" G_GINT64_FORMAT,
            group, cut ? "the data parallel ranks of [parallel]" : "world.ranks", ranks);
    if (simulated != 0 && simulated != 1 && simulated != ranks)
        zp_scenario_resolve_complain(resolve, ZP_KEY_SIMULATED_RANKS, ZP_SCENARIO_ERROR_RANGE,
                                     "legal are 1 (a representative) and all (%" G_GINT64_FORMAT
                                     "), not %" G_GINT64_FORMAT,
                                     ranks, simulated);
    if (slow == ZP_MODEL_NONE) {
        if (zp_scenario_resolve_says(resolve, ZP_KEY_SLOW_FACTOR))
            zp_scenario_resolve_warn(resolve, ZP_KEY_SLOW_FACTOR,
                                     "has no effect without slow_rank");
        return;
    }
    if (slow >= ranks)
        zp_scenario_resolve_complain(resolve, ZP_KEY_SLOW_RANK, ZP_SCENARIO_ERROR_RANGE,
                                     "there is no rank %" G_GINT64_FORMAT
                                     ": legal is 0 to %" G_GINT64_FORMAT,
                                     slow, ranks - 1);
    if (simulated == 1 && ranks > 1)
        zp_scenario_resolve_complain(resolve, ZP_KEY_SLOW_RANK, ZP_SCENARIO_ERROR_CONFLICT,
                                     "one slow rank needs simulation.ranks = all");
}

static void
check_stage(ZpScenarioResolve *resolve)
{
    int stage = (int)zp_scenario_key_integer(resolve, ZP_KEY_STAGE);
    if (resolve->runtime->supports_stage == NULL || resolve->runtime->supports_stage(stage))
        return;
    g_autoptr(GString) legal = g_string_new(NULL);
    for (int s = 0; s <= 3; s++) {
        if (resolve->runtime->supports_stage(s))
            g_string_append_printf(legal, "%s%d", legal->len > 0 ? ", " : "", s);
    }
    zp_scenario_resolve_complain(resolve, ZP_KEY_STAGE, ZP_SCENARIO_ERROR_CONFLICT,
                                 "the runtime %s has no stage %d: legal are %s",
                                 resolve->runtime->name, stage, legal->str);
}

void
zp_scenario_check_keys(ZpScenarioResolve *resolve)
{
    check_world(resolve);
    zp_scenario_check_parallel(resolve);
    check_stage(resolve);
}

/* --- with the model --- */

static gboolean
same_wrapping(const ZpScenarioResolve *resolve)
{
    const ZpScenario *base = resolve->base;
    if (base == NULL || base->state->n_units == 0 || base->model != resolve->scenario->model)
        return FALSE;
    const ZpZero *a = &base->job.zero, *b = &resolve->scenario->job.zero;
    return a->wrap == b->wrap && a->wrap_blocks == b->wrap_blocks &&
           a->wrap_elements == b->wrap_elements && a->outer == b->outer;
}

static void
check_prefetch(ZpScenarioResolve *resolve)
{
    ZpScenarioState *state = resolve->state;
    const ZpZero *zero = &resolve->scenario->job.zero;
    if (same_wrapping(resolve)) {
        state->n_units = resolve->base->state->n_units;
    } else {
        g_autoptr(ZpUnits) units = zp_wrapping_apply(resolve->scenario->model, zero);
        state->n_units = units->n_units;
    }
    ZpSchemaId directions[] = {ZP_KEY_PREFETCH_FORWARD, ZP_KEY_PREFETCH_BACKWARD};
    gint32 depths[] = {zero->prefetch_forward, zero->prefetch_backward};
    for (int d = 0; d < 2; d++) {
        if (depths[d] <= state->n_units)
            continue;
        gboolean own = zp_scenario_resolve_given(resolve, directions[d]);
        zp_scenario_resolve_complain(resolve, own ? directions[d] : ZP_KEY_PREFETCH,
                                     ZP_SCENARIO_ERROR_RANGE,
                                     "%d units gathered ahead are more than the %d units that the "
                                     "model is wrapped into",
                                     depths[d], state->n_units);
        if (!own)
            return; /* the other direction has the same number */
    }
}

typedef __int128 Wide;

static void
check_product(ZpScenarioResolve *resolve, ZpSchemaId id, Wide product, const char *what)
{
    if (product >= 0 && product <= G_MAXINT64 / 4)
        return;
    zp_scenario_resolve_complain(resolve, id, ZP_SCENARIO_ERROR_OVERFLOW,
                                 "%s do not fit 64-bit integers: the scenario is too large", what);
}

/* Coefficients of 1, tokens, pairs, positions, position pairs and sequences. */
enum { FORM_TERMS = 6 };
typedef struct {
    Wide of[FORM_TERMS];
} Sums;

static Wide
magnitude(gint64 bytes)
{
    return bytes < 0 ? -(Wide)bytes : (Wide)bytes;
}

static void
add_form(Sums *sums, const ZpModelBytes *form, Wide times)
{
    const gint64 terms[FORM_TERMS] = {form->constant_bytes,          form->bytes_per_token,
                                      form->bytes_per_pair,          form->bytes_per_position,
                                      form->bytes_per_position_pair, form->bytes_per_sequence};
    for (int t = 0; t < FORM_TERMS; t++)
        sums->of[t] += times * magnitude(terms[t]);
}

static void
add_peak(Sums *sums, const ZpModelPeak *peak, Wide times)
{
    for (gint32 f = 0; f < peak->n_forms; f++)
        add_form(sums, &peak->forms[f], times);
}

/* All that layers may hold, under all policies, as coefficients: no less than any sum of it. */
static void
add_activations(const ZpModel *model, const ZpTraining *training, Sums *sums)
{
    g_autofree gint32 *n_layers = g_new0(gint32, model->activations->len + 1);
    for (guint l = 0; l < model->layers->len; l++) {
        gint32 entry = zp_model_layer(model, (gint32)l)->activation;
        if (entry != ZP_MODEL_NONE)
            n_layers[entry]++;
    }
    for (guint a = 0; a < model->activations->len; a++) {
        const ZpModelActivation *entry = zp_model_activation(model, (gint32)a);
        for (int p = 0; p < ZP_MODEL_POLICIES; p++) {
            const ZpModelPolicyBytes *policy =
                zp_model_policy_bytes(entry, p, training->micro_batch);
            add_form(sums, &policy->kept, n_layers[a]);
            add_form(sums, &policy->recomputed, n_layers[a]);
            /* One layer's at a time. */
            add_peak(sums, &policy->forward, 1);
            add_peak(sums, &policy->recompute, 1);
            add_peak(sums, &policy->backward, 1);
        }
    }
}

/* Sums over layers of what a micro-batch makes of them. */
static void
check_layers(ZpScenarioResolve *resolve)
{
    const ZpModel *model = resolve->scenario->model;
    const ZpTraining *training = &resolve->scenario->job.training;
    Wide tokens = (Wide)training->micro_batch * training->sequence;
    Sums bytes = {{0}};
    Wide token_flops = 0, pair_flops = 0;
    for (guint l = 0; l < model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, (gint32)l);
        bytes.of[1] += layer->traffic_bytes_per_token;
        token_flops += layer->flops_per_token;
        pair_flops += layer->flops_per_pair;
    }
    add_activations(model, training, &bytes);
    /* Dimensions are below 2^32 and sums below 2^100: one factor at a time stays in 128 bits. */
    Wide limit = (Wide)G_MAXINT64;
    check_product(resolve, ZP_KEY_MICRO_BATCH, tokens, "the tokens of a micro-batch");
    if (tokens > limit)
        return;
    Wide pairs = tokens * training->sequence;
    gboolean wide = pairs > limit && (bytes.of[2] > 0 || bytes.of[4] > 0 || pair_flops > 0);
    check_product(resolve, ZP_KEY_SEQUENCE, wide ? pairs : 0, "the token pairs of a micro-batch");
    if (wide || token_flops > limit || pair_flops > limit)
        return;
    const Wide by[FORM_TERMS] = {1,
                                 tokens,
                                 pairs,
                                 training->sequence,
                                 (Wide)training->sequence * training->sequence,
                                 training->micro_batch};
    Wide sum = 0;
    for (int t = 0; t < FORM_TERMS; t++) {
        if (bytes.of[t] > 0)
            sum += MIN(MIN(bytes.of[t], limit) * by[t] / 2, limit);
    }
    check_product(resolve, ZP_KEY_MICRO_BATCH, sum, "the activations of a micro-batch");
    check_product(resolve, ZP_KEY_MICRO_BATCH,
                  tokens * token_flops / 2 + (pair_flops > 0 ? pairs * pair_flops / 2 : 0),
                  "the operations of a micro-batch");
}

void
zp_scenario_check_model(ZpScenarioResolve *resolve)
{
    const ZpJob *job = &resolve->scenario->job;
    const ZpModel *model = resolve->scenario->model;
    check_prefetch(resolve);
    /* Parameter, gradient, master and two moments of at most 8 bytes, on every rank. */
    check_product(resolve, ZP_KEY_RANKS, (Wide)model->n_elements * 40 * job->world.ranks,
                  "parameters x bytes x ranks");
    check_product(resolve, ZP_KEY_ACCUMULATION,
                  (Wide)job->training.micro_batch * job->training.sequence *
                      job->training.accumulation / 64 * job->world.ranks,
                  "the tokens of a step");
    check_layers(resolve);
}
