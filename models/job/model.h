/* A model: parameters, the module tree that owns them, and the layers that execute.
 *
 * Three views of one thing:
 *  - parameters, in registration order (what named_parameters() would list);
 *  - modules, the tree in pre-order (what frameworks hang hooks on);
 *  - layers, the pieces of computation in forward order (what costs time and activations):
 *    embedding, then per block its sublayers, final norm, head.
 *
 * Strings are interned (g_intern_string) or static: never freed. */
#pragma once

#include "models/job/script.h"
#include <glib.h>

#define ZP_MODEL_NONE (-1)

typedef struct {
    const char *name; /* full dotted name */
    gint64 elements;
    gint64 shape[4]; /* shape[0] is dim 0; unused entries 0 */
    gint32 n_dims;
    gint32 module;  /* the module that owns it directly */
    gint32 layer;   /* the layer that uses it first, or ZP_MODEL_NONE */
    gint32 tied_to; /* index of the parameter whose storage it shares; then elements are counted
                     * there and this entry must not be summed; ZP_MODEL_NONE otherwise */
    gboolean trainable;
    gboolean expert; /* belongs to one expert of a mixture */
} ZpModelParameter;

typedef struct {
    const char *name;                     /* full dotted name, "" for the root */
    const char *class_name;               /* "LlamaDecoderLayer"; "" where unknown */
    gint32 parent;                        /* ZP_MODEL_NONE for the root */
    gint32 first_parameter, n_parameters; /* direct parameters, contiguous */
    gint32 layer;                         /* the layer it computes in, or ZP_MODEL_NONE */
    gint32 block;                         /* transformer block it belongs to, or ZP_MODEL_NONE */
    gboolean container;                   /* a list of modules: never called itself */
    gboolean is_block;                    /* one transformer block: what wrapping policies wrap */
    gint32
        n_calls; /* children in call order (module indices; a container stands for its children
                  * in turn; children left out are not called); 0: registration order, each once */
    gint32 *calls;
} ZpModelModule;

typedef enum {
    ZP_LAYER_EMBEDDING,
    ZP_LAYER_ATTENTION,
    ZP_LAYER_MLP, /* dense or mixture of experts */
    ZP_LAYER_NORM,
    ZP_LAYER_HEAD,
    ZP_LAYER_OTHER,
} ZpLayerKind;

static inline gint64
zp_model_bytes_at(const ZpModelBytes *form, gint64 sequences, gint64 tokens)
{
    gint64 positions = form->bytes_per_position + form->bytes_per_position_pair * tokens;
    gint64 rows = form->bytes_per_token + form->bytes_per_pair * tokens;
    return form->constant_bytes + positions * tokens +
           sequences * (form->bytes_per_sequence + rows * tokens);
}

/* A largest live set: the largest of several forms, since b and s decide which instant is worst. */
enum { ZP_MODEL_PEAK_FORMS = 8 };
typedef struct {
    gint32 n_forms; /* 0: nothing */
    ZpModelBytes forms[ZP_MODEL_PEAK_FORMS];
} ZpModelPeak;

static inline gint64
zp_model_peak_at(const ZpModelPeak *peak, gint64 sequences, gint64 tokens)
{
    gint64 most = 0;
    for (gint32 i = 0; i < peak->n_forms; i++) {
        gint64 bytes = zp_model_bytes_at(&peak->forms[i], sequences, tokens);
        most = i == 0 || bytes > most ? bytes : most;
    }
    return most;
}

/* What a layer holds under one checkpointing policy.  Layers of a block are passed in order forward
 * and in recomputation (all of the block is brought back before its backward), in reverse order
 * backward.
 *
 * At the worst instant of a layer's forward the block's own bytes are its kept bytes, those of the
 * layers before it, and `forward`: the residual stream that comes in and goes out is in there
 * unless kept.  In recomputation: all kept, what the layers up to this one brought back, and
 * `recompute`.  In backward: the kept and recomputed bytes of the layers up to this one, and
 * `backward`, in which are the gradients of activations, not those of parameters. */
typedef struct {
    ZpModelBytes kept;       /* from forward to backward */
    ZpModelBytes recomputed; /* brought back for backward, beside what is kept */
    ZpModelPeak forward, recompute, backward;
} ZpModelPolicyBytes;

/* By ZpCheckpointing (models/job/job.h): all kept; what the selective policy keeps; a block's
 * input. */
enum { ZP_MODEL_POLICIES = 3 };
typedef struct {
    ZpModelPolicyBytes policies[ZP_MODEL_POLICIES];
    /* Of a micro-batch of one sequence, where that differs: views of one sequence are contiguous
     * where those of more are copied. */
    gboolean differs_alone;
    ZpModelPolicyBytes alone[ZP_MODEL_POLICIES];
    /* A layer outside of blocks keeps these as well where blocks are checkpointed in full: what it
     * hands to all of them is among their inputs (masks, position biases). */
    ZpModelBytes handed;
} ZpModelActivation;

static inline const ZpModelPolicyBytes *
zp_model_policy_bytes(const ZpModelActivation *activation, int policy, gint64 sequences)
{
    return sequences == 1 && activation->differs_alone ? &activation->alone[policy]
                                                       : &activation->policies[policy];
}

/* A storage of the head's comes to life or dies: those of forward, then those of backward. */
typedef struct {
    gint32 storage; /* from 0 */
    gboolean backward, frees;
    gboolean behind;    /* of the loss, behind the head's product */
    ZpModelBytes bytes; /* of the storage, either way */
} ZpModelEvent;

/* Costs are integers per token (t = micro_batch x sequence tokens) and per pair
 * (micro_batch x sequence^2), forward, per rank.  Bytes are for the compute dtype the model was
 * built with. */
typedef struct {
    const char *name;
    ZpLayerKind kind;
    gint32 block;         /* transformer block, or ZP_MODEL_NONE */
    gint32 module;        /* ZP_MODEL_NONE for layers spelt by hand */
    gint64 elements;      /* parameters used here first (without those tied to an earlier layer) */
    gint64 tied_elements; /* parameters used here that belong to an earlier layer */
    /* Of the weights it multiplies by, tied ones too, and of those the frozen ones: autograd makes
     * no gradient for them.  Only their ratio counts (zp_model_finish()). */
    gint64 weight_elements, frozen_weight_elements;
    gint64 flops_per_token;
    gint64 flops_per_pair;
    gint64 traffic_bytes_per_token; /* device memory read and written, beside the parameters */
    gint64 stream_traffic_bytes_per_token; /* of it by norms and the residual stream */
    gboolean tensor_cut; /* the layer's matrices are cut among tensor parallel ranks */
    gint64 selective_flops_per_token, selective_flops_per_pair; /* recomputed under selective */
    gboolean runs_again;     /* forward, inside its backward: a loss in checkpointed chunks */
    gboolean selective_last; /* the layer's last product is part of them */
    gint32
        activation; /* what it holds: index into the model's activations (alike layers share one),
                     * or ZP_MODEL_NONE for nothing; the head's bytes are of class logits */
    gint32 script;  /* the same tensor by tensor, in order, of the layer's block: 1 + index into the
                     * model's scripts; 0: nobody states it */
    gint32 part;    /* of that block */
} ZpModelLayer;

/* By policy, of more sequences and of one, as ZpModelActivation; references. */
typedef struct {
    ZpModelScript *of[ZP_MODEL_POLICIES][2];
} ZpModelScripts;

typedef struct {
    const char *name;
    gint serial;        /* of no other model of this process: addresses come again, this does not */
    GArray *parameters; /* ZpModelParameter */
    GArray *modules;    /* ZpModelModule, pre-order; may be empty for hand-spelt models */
    GArray *layers;     /* ZpModelLayer, forward order */
    GArray *activations; /* ZpModelActivation, one for each kind of layer */
    GArray *scripts;     /* ZpModelScripts, one for each kind of block that is stated so */
    /* ZpModelEvent: the storages of which the head's activation tells the sums, for allocators; of
     * one sequence and of more (zp_model_head_events()); empty where nobody stated them. */
    GArray *head_events[2];
    gint32 n_blocks;
    gint64 n_elements; /* unique parameters */
    gint64 n_trainable_elements;
    gint64 n_active_elements;    /* parameters that one token uses (mixture of experts) */
    gint64 n_embedding_elements; /* token and position tables */
    gboolean tied;               /* the head shares the embedding's table */
    /* Dimensions for reports and cost models; 0 where they do not apply. */
    gint64 hidden, ffn, heads, kv_heads, head_size, vocabulary;
    const char *family; /* "llama", "gpt2", "hand-spelt", "total" ... */
} ZpModel;

static inline GArray *
zp_model_head_events(const ZpModel *model, gboolean one_sequence)
{
    return model->head_events[one_sequence ? 0 : 1];
}

/* The share of a layer's products whose backward is the gradient of the input alone: their weight
 * is frozen. */
static inline double
zp_model_frozen_share(const ZpModelLayer *layer)
{
    return layer->frozen_weight_elements > 0
               ? (double)layer->frozen_weight_elements / (double)layer->weight_elements
               : 0.0;
}

/* Forward-equivalents of a layer's backward, for `pairs` pairs a token: of its products the
 * gradients of input and weight, where that is trained, of attention those of its inputs. */
static inline double
zp_model_backward_passes(const ZpModelLayer *layer, double pairs)
{
    double again = layer->runs_again ? 3.0 : 2.0;
    double weights = (double)layer->flops_per_token;
    double all = weights + (double)layer->flops_per_pair * pairs;
    return all > 0.0 ? again - zp_model_frozen_share(layer) * weights / all : again;
}

ZpModel *zp_model_new(const char *name);
void zp_model_free(ZpModel *model);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpModel, zp_model_free)

static inline const ZpModelLayer *
zp_model_layer(const ZpModel *model, gint32 index)
{
    return &g_array_index(model->layers, ZpModelLayer, (guint)index);
}

static inline const ZpModelParameter *
zp_model_parameter(const ZpModel *model, gint32 index)
{
    return &g_array_index(model->parameters, ZpModelParameter, (guint)index);
}

static inline const ZpModelModule *
zp_model_module(const ZpModel *model, gint32 index)
{
    return &g_array_index(model->modules, ZpModelModule, (guint)index);
}

/* Adds what a kind of layer holds, unless the model has an equal entry; returns its index for
 * ZpModelLayer.activation, ZP_MODEL_NONE for an entry that holds nothing. */
gint32 zp_model_add_activation(ZpModel *model, const ZpModelActivation *activation);

/* The scripts of a layer's block under a policy (ZpCheckpointing), or NULL. */
static inline const ZpModelScript *
zp_model_script(const ZpModel *model, const ZpModelLayer *layer, int policy, gint64 sequences)
{
    if (layer->script == 0)
        return NULL;
    return g_array_index(model->scripts, ZpModelScripts, (guint)layer->script - 1)
        .of[policy][sequences == 1];
}
void zp_model_scripts_clear(ZpModelScripts *scripts);

/* The usual entry: `kept`, of which the selective policy keeps `selective` and the full one
 * `input`, the rest being recomputed; no transients. */
ZpModelActivation zp_model_activation_of(const ZpModelBytes *kept, const ZpModelBytes *selective,
                                         const ZpModelBytes *input);

static inline const ZpModelActivation *
zp_model_activation(const ZpModel *model, gint32 index)
{
    return &g_array_index(model->activations, ZpModelActivation, (guint)index);
}

/* A model of `n_elements` parameters cut into `n_layers` equal layers (the first ones take the
 * remainder), for what is not a transformer: 2 FLOPs per parameter and token, no activations. */
ZpModel *zp_model_new_total(gint64 n_elements, gint32 n_layers);

/* A layer spelt by hand, `repeat` times, each a block; flops_per_token < 0 means 2 x elements.  The
 * selective policy keeps all of it, and nothing lives beside what is kept or recomputed. */
void zp_model_add_layer(ZpModel *model, const char *name, gint64 elements, gint32 repeat,
                        gint64 flops_per_token, gint64 kept_bytes_per_token,
                        gint64 input_bytes_per_token);

/* Sums parameters and layers into the n_* fields; call after filling. */
void zp_model_finish(ZpModel *model);
