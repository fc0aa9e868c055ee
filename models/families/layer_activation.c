#include "models/families/layer_activation_internal.h"

#include "models/families/adapters.h"
#include "models/families/forms_internal.h"
#include "models/families/lengths_internal.h"
#include "models/families/outer_internal.h"
#include "models/job/job.h"

#include <string.h>

enum { COPY_BYTES = 2 };

typedef struct {
    ZpModel *model;
    const GArray *facts;
    const ZpArchitectureTraits *traits;
    gint64 *copied; /* elements of each layer that autocast copies, or NULL */
    GArray *blocks; /* Known */
    GArray *parts;  /* Measured */
} Builder;

typedef struct {
    ZpActivationBlock block;
    ZpActivationParts parts;
    ZpModelScripts scripts;
} Measured;

/* A block seen before, and what its layers got. */
typedef struct {
    ZpBlockLayers layers;
    gint32 activations[ZP_BLOCK_MAX_LAYERS];
    ZpBlockRecomputed recomputed[ZP_BLOCK_MAX_LAYERS];
    gint32 script; /* as ZpModelLayer.script */
    gint32 parts[ZP_BLOCK_MAX_LAYERS];
} Known;

static gint32
add(Builder *builder, ZpModelActivation *activation, gint32 layer)
{
    const ZpArchitectureTraits *traits = builder->traits;
    gint64 fixed = zp_lengths_fixed(traits, builder->model, layer);
    zp_forms_cut(activation, traits->context_parallel, traits->widened);
    if (fixed > 0)
        zp_forms_fix(activation, fixed);
    gint64 copies = builder->copied ? COPY_BYTES * builder->copied[layer] : 0;
    for (ZpModelPolicyBytes *set = NULL; (set = zp_forms_next(activation, set)) != NULL;)
        for (int p = 0; p < ZP_MODEL_POLICIES; p++)
            set[p].kept.constant_bytes += copies;
    return zp_model_add_activation(builder->model, activation);
}

/* What grows with pairs is dropped after the core's forward and brought back for its backward. */
static void
recompute_core(ZpModelPolicyBytes *set)
{
    ZpModelPolicyBytes *policy = &set[ZP_CHECKPOINTING_SELECTIVE];
    *policy = set[ZP_CHECKPOINTING_NONE];
    gint64 pairs = policy->kept.bytes_per_pair;
    if (pairs == 0)
        return;
    policy->kept.bytes_per_pair = 0;
    policy->recomputed.bytes_per_pair = pairs;
    policy->recompute = (ZpModelPeak){
        .n_forms = 1, .forms = {{.bytes_per_pair = zp_forms_pairs(&policy->forward)}}};
    for (gint32 f = 0; f < policy->forward.n_forms; f++)
        policy->forward.forms[f].bytes_per_pair += pairs;
}

/* Adds to what is kept, where the policy keeps such things, or to what it brings back; of less than
 * nothing, what is brought back cannot give goes off what is kept. */
static void
add_kept(ZpModelPolicyBytes *set, const ZpArchitectureTraits *traits, const ZpModelBytes *bytes)
{
    gboolean core = traits->selective == ZP_SELECTIVE_ATTENTION_CORE;
    zp_forms_add(&set[ZP_CHECKPOINTING_NONE].kept, bytes, 1);
    zp_forms_add(&set[ZP_CHECKPOINTING_FULL].recomputed, bytes, 1);
    ZpModelPolicyBytes *selective = &set[ZP_CHECKPOINTING_SELECTIVE];
    zp_forms_add(core ? &selective->kept : &selective->recomputed, bytes, 1);
    gint64 missing = MIN(selective->recomputed.bytes_per_token, 0);
    selective->recomputed.bytes_per_token -= missing;
    selective->kept.bytes_per_token += missing;
}

static const Measured *
measure(Builder *builder, const ZpActivationBlock *block)
{
    for (guint i = 0; i < builder->parts->len; i++) {
        const Measured *measured = &g_array_index(builder->parts, Measured, i);
        if (zp_activation_equal(&measured->block, block))
            return measured;
    }
    Measured measured = {.block = *block};
    measured.parts = zp_activation_parts(block, &measured.scripts);
    g_array_append_val(builder->parts, measured);
    return &g_array_index(builder->parts, Measured, builder->parts->len - 1);
}

/* What the experts of a mixture keep: it grows with the number of chosen ones. */
static ZpModelBytes
experts_kept(Builder *builder, const ZpActivationBlock *block, const ZpModelBytes *kept)
{
    gint64 k = block->chosen_experts;
    ZpActivationBlock other = *block;
    other.chosen_experts = k < block->expert_count ? k + 1 : k - 1;
    if (other.chosen_experts == 0)
        return *kept; /* one expert, for all */
    const ZpActivationParts *parts = &measure(builder, &other)->parts;
    ZpModelBytes part = parts->parts[parts->n_parts - 1].policies[ZP_CHECKPOINTING_NONE].kept;
    zp_forms_add(&part, kept, -1);
    zp_forms_scale(&part, (double)(k * (other.chosen_experts - k)));
    return part;
}

static void
unbalance(Builder *builder, const ZpActivationBlock *block, ZpModelActivation *activation)
{
    const ZpArchitectureTraits *traits = builder->traits;
    double factor = traits->expert_imbalance;
    if (factor <= 1.0 || block->family != ZP_BLOCK_MOE)
        return;
    ZpModelBytes more =
        experts_kept(builder, block, &activation->policies[ZP_CHECKPOINTING_NONE].kept);
    zp_forms_scale(&more, factor - 1.0);
    for (ZpModelPolicyBytes *set = NULL; (set = zp_forms_next(activation, set)) != NULL;) {
        add_kept(set, traits, &more);
        for (int p = 0; p < ZP_MODEL_POLICIES; p++) {
            zp_forms_scale_peak(&set[p].forward, factor);
            zp_forms_scale_peak(&set[p].recompute, factor);
            zp_forms_scale_peak(&set[p].backward, factor);
        }
    }
}

/* A second attention of a block that has one: its input is no checkpoint, but what the first hands
 * on. */
static void
repeat_inside(ZpModelPolicyBytes *set)
{
    ZpModelBytes input = set[ZP_CHECKPOINTING_FULL].kept;
    zp_forms_add(&set[ZP_CHECKPOINTING_NONE].kept, &input, -1);
    ZpModelBytes all = set[ZP_CHECKPOINTING_NONE].kept;
    for (int p = ZP_CHECKPOINTING_SELECTIVE; p <= ZP_CHECKPOINTING_FULL; p++) {
        ZpModelPolicyBytes *policy = &set[p];
        if (policy->recomputed.bytes_per_token == 0)
            continue; /* all kept but the core */
        zp_forms_add(&policy->kept, &input, -1);
        policy->recomputed = all;
        zp_forms_add(&policy->recomputed, &policy->kept, -1);
    }
}

static ZpModelActivation
activation_of(Builder *builder, const ZpActivationBlock *block, const ZpActivationParts *parts,
              const ZpBlockLayers *layers, gint32 index, gboolean *exact)
{
    const ZpArchitectureTraits *traits = builder->traits;
    ZpBlockPart part = zp_block_part(layers, index);
    gboolean crossed = part == ZP_PART_CROSS && block->family == ZP_BLOCK_T5_DECODER;
    int place = part == ZP_PART_MLP ? parts->n_parts - 1 : crossed ? 1 : 0;
    ZpModelActivation activation = parts->parts[place];
    ZpClosedLayer own = zp_closed_layer(traits, &layers->facts[index]);
    ZpClosedLayer known = zp_block_closed(block, part, &own);
    ZpModelBytes difference = {.bytes_per_token = zp_closed_bytes_per_token(traits, &own) -
                                                  zp_closed_bytes_per_token(traits, &known)};
    if (part == ZP_PART_CROSS && !crossed && traits->source_tokens > 0) {
        gint64 keys = traits->number_bytes * (own.key + own.value);
        difference.bytes_per_token -= keys;
        difference.bytes_per_sequence += keys * traits->source_tokens;
    }
    *exact = *exact && difference.bytes_per_token == 0 && (part != ZP_PART_CROSS || crossed);
    for (ZpModelPolicyBytes *set = NULL; (set = zp_forms_next(&activation, set)) != NULL;) {
        if (traits->selective == ZP_SELECTIVE_ATTENTION_CORE)
            recompute_core(set);
        if (part == ZP_PART_CROSS && !crossed)
            repeat_inside(set);
        if (layers->kinds[index] != ZP_LAYER_OTHER) /* a tower's sizes are all it states */
            add_kept(set, traits, &difference);
    }
    if (part == ZP_PART_MLP)
        unbalance(builder, block, &activation);
    return activation;
}

/* The layers are the parts of the block, and nothing corrects what it tells: then it may be told
 * tensor by tensor.  A compiler's order is its own. */
static void
state_script(Builder *builder, Known *known, const ZpActivationParts *parts,
             const ZpModelScripts *scripts)
{
    const ZpArchitectureTraits *traits = builder->traits;
    const ZpBlockLayers *layers = &known->layers;
    gboolean core = traits->selective == ZP_SELECTIVE_ATTENTION_CORE;
    if (traits->compiled || layers->n_layers != parts->n_parts || traits->context_parallel > 1 ||
        traits->widened > 1 || traits->expert_imbalance > 1.0)
        return;
    for (gint32 l = 0; l < layers->n_layers; l++)
        if (layers->kinds[l] == ZP_LAYER_OTHER || zp_block_part(layers, l) == ZP_PART_OTHER)
            return;
    ZpModelScripts own = {0};
    for (int p = 0; p < ZP_MODEL_POLICIES; p++)
        for (int alone = 0; alone <= 1; alone++)
            if (p != ZP_CHECKPOINTING_SELECTIVE || !core)
                own.of[p][alone] = zp_lengths_script(
                    scripts->of[p][alone], zp_lengths_fixed(traits, builder->model, layers->first));
    g_array_append_val(builder->model->scripts, own);
    known->script = (gint32)builder->model->scripts->len;
    for (gint32 l = 0; l < layers->n_layers; l++)
        known->parts[l] = l;
}

/* Which of the block's parameters get adapters, as a plain block of its kind has them. */
static void
adapt_block(Builder *builder, const ZpBlockLayers *layers, ZpActivationBlock *block)
{
    const ZpArchitectureTraits *traits = builder->traits;
    if (traits->lora_rank == 0)
        return;
    const ZpModelScript *script = measure(builder, block)->scripts.of[ZP_CHECKPOINTING_NONE][FALSE];
    block->adapter_rank = traits->lora_rank;
    block->adapter_dropout = traits->lora_dropout;
    block->input_frozen = layers->leads;
    block->adapted = zp_adapters_mask(builder->model, layers->first, layers->n_layers, script,
                                      traits->lora_targets);
}

static void
build_block(Builder *builder, Known *known)
{
    const ZpArchitectureTraits *traits = builder->traits;
    const ZpBlockLayers *layers = &known->layers;
    ZpActivationBlock block;
    gboolean described = zp_block_describe(traits, layers, &block);
    /* A copy: what is measured moves as more comes. */
    ZpActivationParts parts = {0};
    ZpModelScripts scripts = {0};
    if (described) {
        adapt_block(builder, layers, &block);
        const Measured *measured = measure(builder, &block);
        parts = measured->parts;
        scripts = measured->scripts;
    }
    gboolean exact = described;
    for (gint32 l = 0; l < layers->n_layers; l++) {
        ZpBlockPart part = zp_block_part(layers, l);
        known->activations[l] = ZP_MODEL_NONE;
        known->recomputed[l] = described
                                   ? zp_block_recomputed(traits, &block, part)
                                   : (ZpBlockRecomputed){.products = 1, .of = 1, .core = TRUE};
        if (described && part == ZP_PART_OTHER)
            continue; /* a tower's block module, where the tower's own layer is elsewhere */
        ZpModelActivation activation =
            described ? activation_of(builder, &block, &parts, layers, l, &exact)
                      : zp_closed_activation(traits, &layers->facts[l], l == 0);
        known->activations[l] = add(builder, &activation, layers->first + l);
    }
    if (exact)
        state_script(builder, known, &parts, &scripts);
}

static gboolean
alike(const ZpBlockLayers *a, const ZpBlockLayers *b)
{
    gsize n = (gsize)a->n_layers;
    return a->leads == b->leads && a->windowed == b->windowed && a->n_layers == b->n_layers &&
           memcmp(a->kinds, b->kinds, n * sizeof a->kinds[0]) == 0 &&
           memcmp(a->facts, b->facts, n * sizeof a->facts[0]) == 0;
}

static const Known *
find_block(Builder *builder, const ZpBlockLayers *layers)
{
    for (guint i = builder->blocks->len; i > 0; i--) {
        const Known *known = &g_array_index(builder->blocks, Known, i - 1);
        if (alike(&known->layers, layers))
            return known;
    }
    Known made = {.layers = *layers};
    build_block(builder, &made);
    g_array_append_val(builder->blocks, made);
    return &g_array_index(builder->blocks, Known, builder->blocks->len - 1);
}

static ZpTreeLayer
facts_of(const Builder *builder, gint32 layer)
{
    ZpTreeLayer facts = g_array_index(builder->facts, ZpTreeLayer, layer);
    if (facts.residual_width == 0)
        facts.residual_width = builder->model->hidden;
    return facts;
}

/* Attaches the block that begins at `first`; returns where the next one begins. */
static gint32
attach_block(Builder *builder, gint32 first)
{
    gint32 n = (gint32)builder->model->layers->len;
    gint32 block = zp_model_layer(builder->model, first)->block;
    ZpBlockLayers layers = {.first = first};
    gint32 end = first;
    for (; end < n && zp_model_layer(builder->model, end)->block == block; end++) {
        g_assert(layers.n_layers < ZP_BLOCK_MAX_LAYERS);
        layers.kinds[layers.n_layers] = zp_model_layer(builder->model, end)->kind;
        layers.facts[layers.n_layers++] = facts_of(builder, end);
    }
    const ZpArchitectureTraits *traits = builder->traits;
    layers.leads = traits->lora_rank > 0 && block == 0;
    layers.windowed =
        traits->windowed && (traits->window_step == 0 || (block + 1) % traits->window_step != 0);
    const Known *known = find_block(builder, &layers);
    for (gint32 l = 0; l < layers.n_layers; l++) {
        ZpModelLayer *layer = &g_array_index(builder->model->layers, ZpModelLayer, first + l);
        const ZpBlockRecomputed *share = &known->recomputed[l];
        layer->activation = known->activations[l];
        layer->script = known->script;
        layer->part = known->parts[l];
        layer->selective_flops_per_token =
            (gint64)((__int128)layer->flops_per_token * share->products / share->of);
        layer->selective_flops_per_pair = share->core ? layer->flops_per_pair : 0;
        layer->selective_last = share->last;
    }
    return end;
}

static void
attach_outer(Builder *builder, gint32 index)
{
    const ZpArchitectureTraits *traits = builder->traits;
    ZpModelLayer *layer = &g_array_index(builder->model->layers, ZpModelLayer, index);
    ZpTreeLayer facts = facts_of(builder, index);
    ZpModelActivation activation;
    switch (layer->kind) {
    case ZP_LAYER_EMBEDDING:
        activation =
            zp_outer_embedding(traits, &facts, zp_lengths_in_encoder(builder->model, index));
        break;
    case ZP_LAYER_NORM:
        activation = zp_outer_norm(traits, &facts, zp_lengths_blocks_follow(builder->model, index));
        break;
    case ZP_LAYER_HEAD:
        if (!zp_outer_head(traits, &facts, builder->model, &activation))
            return;
        break;
    case ZP_LAYER_ATTENTION:
    case ZP_LAYER_MLP:
    case ZP_LAYER_OTHER:
    default:
        activation = zp_outer_projection(traits, &facts);
        break;
    }
    layer->activation = add(builder, &activation, index);
}

static void
clear_measured(gpointer data)
{
    zp_model_scripts_clear(&((Measured *)data)->scripts);
}

void
zp_architecture_attach_activations(ZpModel *model, const GArray *facts,
                                   const ZpArchitectureTraits *traits)
{
    /* Of frozen weights no cache holds any: products keep them, as the blocks say. */
    gboolean copies = traits->regime == ZP_REGIME_AMP && traits->lora_rank == 0;
    g_autofree gint64 *copied = copies ? zp_block_copies(model, facts) : NULL;
    g_autoptr(GArray) blocks = g_array_new(FALSE, FALSE, sizeof(Known));
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(Measured));
    g_array_set_clear_func(parts, clear_measured);
    Builder builder = {model, facts, traits, copied, blocks, parts};
    for (gint32 l = 0; l < (gint32)model->layers->len;) {
        if (zp_model_layer(model, l)->block != ZP_MODEL_NONE) {
            l = attach_block(&builder, l);
        } else {
            attach_outer(&builder, l);
            l++;
        }
    }
}
