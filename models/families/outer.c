#include "models/families/outer_internal.h"

#include "models/families/forms_internal.h"
#include "models/job/job.h"

enum { ID_BYTES = 8, STATISTIC_BYTES = 4, FLOAT_BYTES = 4 };

static ZpModelPeak
peak_of(ZpModelBytes form)
{
    return (ZpModelPeak){.n_forms = 1, .forms = {form}};
}

static ZpModelActivation
same_always(const ZpModelPolicyBytes *policy)
{
    ZpModelActivation activation = {0};
    for (int p = 0; p < ZP_MODEL_POLICIES; p++)
        activation.policies[p] = *policy;
    return activation;
}

/* T5's position biases: the zeros of cross-attention are kept, and where blocks are checkpointed
 * the biases of both stacks, which are among their inputs. */
static void
add_biases(ZpModelActivation *activation, const ZpArchitectureTraits *traits)
{
    gint64 each = traits->number_bytes * traits->heads;
    for (ZpModelPolicyBytes *set = NULL; (set = zp_forms_next(activation, set)) != NULL;)
        for (int p = 0; p < ZP_MODEL_POLICIES; p++)
            set[p].kept.bytes_per_position_pair += each;
    activation->handed.bytes_per_position_pair += 2 * each;
}

/* Pixels in fp32 are there all the time, and what the projection of patches reads of them; blocks
 * that are checkpointed keep the mask they are given, a byte a pair. */
static void
add_inputs(ZpModelActivation *activation, const ZpArchitectureTraits *traits, gint64 convolved)
{
    gboolean apart = traits->number_bytes < FLOAT_BYTES;
    gint64 pixels = traits->pixels * (FLOAT_BYTES + (apart ? traits->number_bytes : 0));
    /* Whisper: two positions a token go into the second convolution, and through GELU before. */
    enum { TIMES_CONVOLVED = 5 };
    ZpModelBytes inputs = {.bytes_per_sequence = pixels,
                           .bytes_per_token = TIMES_CONVOLVED * traits->number_bytes * convolved};
    gboolean padded = traits->mask == ZP_MASK_SEQUENCE;
    gboolean shared = traits->mask == ZP_MASK_SHARED || (traits->windowed && !padded);
    for (ZpModelPolicyBytes *set = NULL; (set = zp_forms_next(activation, set)) != NULL;)
        for (int p = 0; p < ZP_MODEL_POLICIES; p++)
            zp_forms_add(&set[p].kept, &inputs, 1);
    activation->handed.bytes_per_pair += padded;
    activation->handed.bytes_per_position_pair += shared;
}

ZpModelActivation
zp_outer_embedding(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts, gboolean encoder)
{
    gint64 width = facts->residual_width, stream = traits->residual_bytes * width;
    gint64 ways = zp_architecture_stream_ways(traits);
    gboolean normed = facts->norms_width > 0;
    gint64 beside = traits->positions || traits->token_types || traits->scaled_embedding ||
                            traits->embedding_dropout || normed
                        ? stream
                        : 0;
    gint64 kept = traits->embedding_dropout ? width : 0;
    if (normed)
        kept += stream + 2L * STATISTIC_BYTES;
    ZpModelBytes live = {.bytes_per_token = stream + beside,
                         .bytes_per_position = traits->positions ? stream : 0};
    ZpModelPolicyBytes policy = {
        .kept = {.bytes_per_token = ID_BYTES + (kept + ways - 1) / ways},
        .forward = peak_of(live),
        .backward = peak_of(live),
    };
    ZpModelActivation activation = same_always(&policy);
    if (traits->t5_interface)
        add_biases(&activation, traits);
    gboolean listens = encoder && traits->source_tokens > 0;
    if (listens || traits->own_tokens > 0 || traits->mask != ZP_MASK_NONE || traits->windowed)
        add_inputs(&activation, traits, listens ? width : 0);
    return activation;
}

/* The norm that ends a stack of blocks reads no sizes of theirs but the stream's width. */
ZpModelActivation
zp_outer_norm(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts, gboolean encoder)
{
    ZpActivationBlock block = {
        .family = traits->t5           ? ZP_BLOCK_T5_ENCODER
                  : traits->layer_norm ? ZP_BLOCK_GPT2
                                       : ZP_BLOCK_LLAMA,
        .norm = traits->norm,
        .regime = traits->regime,
        .adapter_rank = traits->lora_rank,
        .tensor_parallel = traits->tensor_parallel,
        .sequence_parallel = traits->sequence_parallel,
        .batch = 2,
        .tokens = traits->tensor_parallel,
        .hidden = facts->norms_width,
        .heads = traits->tensor_parallel,
        .kv_heads = traits->tensor_parallel,
        .head_size = 2,
        .ffn = traits->tensor_parallel,
    };
    ZpModelActivation activation = zp_activation_norm_part(&block);
    gint64 width = facts->norms_width, kept = encoder ? traits->residual_bytes * width : 0;
    if (traits->t5 && traits->dropout) /* its mask; the decoder's embedding has one as well */
        kept += encoder ? width : 2 * width;
    ZpModelBytes more = {.bytes_per_token = kept};
    for (ZpModelPolicyBytes *set = NULL; (set = zp_forms_next(&activation, set)) != NULL;)
        for (int p = 0; p < ZP_MODEL_POLICIES; p++)
            zp_forms_add(&set[p].kept, &more, 1);
    return activation;
}

ZpModelActivation
zp_outer_projection(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts)
{
    gint64 stream = traits->residual_bytes * facts->residual_width;
    gint64 inside = traits->number_bytes * (facts->inner_width + facts->norms_width);
    if (facts->norms_width > 0)
        inside += 2L * STATISTIC_BYTES;
    ZpModelBytes once = {.bytes_per_token = stream}, twice = {.bytes_per_token = 2 * stream};
    /* Autocast makes a copy of what is read: of the first token alone, but by the head of masked
     * tokens. */
    gboolean cast = traits->regime == ZP_REGIME_AMP;
    gint64 all = cast ? traits->number_bytes * facts->residual_width : stream;
    gint64 input = facts->norms_width > 0 || !cast ? all : 0;
    ZpModelBytes kept = {.bytes_per_token = input + inside};
    ZpModelPolicyBytes policy = {
        .kept = kept, .forward = peak_of(once), .backward = peak_of(twice)};
    return same_always(&policy);
}

static int
count_heads(const ZpModel *model)
{
    int heads = 0;
    for (guint l = 0; l < model->layers->len; l++)
        heads += zp_model_layer(model, (gint32)l)->kind == ZP_LAYER_HEAD;
    return heads;
}

gboolean
zp_outer_head(const ZpArchitectureTraits *traits, const ZpTreeLayer *facts, ZpModel *model,
              ZpModelActivation *activation)
{
    gint64 ways = traits->tensor_parallel;
    if (facts->matrix_elements == 0 || traits->vocabulary == 0)
        return FALSE;
    ZpActivationLoss loss = {
        .kind = traits->loss,
        .regime = traits->regime,
        .soft_cap = traits->logit_cap,
        .keep_logits = traits->hold_outputs,
        .frozen = traits->lora_rank > 0,
        .compiled = traits->compiled_loss,
        .chunks = traits->loss_chunks,
        .batch = 2,
        .tokens = 2L * traits->loss_chunks,
        .hidden = MAX(facts->matrix_elements / traits->vocabulary, 1),
        .vocabulary = (traits->vocabulary + ways - 1) / ways,
    };
    *activation = zp_activation_loss_part(&loss);
    gboolean stated = count_heads(model) == 1 && traits->regime != ZP_REGIME_AMP &&
                      traits->context_parallel == 1 && traits->widened == 1;
    for (int one = 0; stated && one <= 1; one++)
        zp_activation_loss_events(&loss, one, zp_model_head_events(model, one));
    return TRUE;
}
