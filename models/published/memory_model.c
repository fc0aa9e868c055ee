#include <stdlib.h>
#include <string.h>

#include "models/families/adapters.h"
#include "models/published/memory_job_internal.h"
#include "models/published/model_internal.h"

/* What the runs with adapters train: q, k, v and o. */
#define ATTENTION_PROJECTIONS "*.self_attn.*_proj"

typedef struct {
    const char *name;
    gint64 rows, columns; /* columns 0: a vector */
} Tensor;

/* A block, or embedding and head, with its parameters one by one. */
static void
add_tensors(ZpModel *model, const char *layer_name, ZpLayerKind kind, gint32 block,
            const Tensor *tensors, gsize n)
{
    gint32 index = (gint32)model->layers->len;
    ZpModelLayer layer = {
        .name = g_intern_string(layer_name),
        .kind = kind,
        .block = block,
        .module = ZP_MODEL_NONE,
        .activation = ZP_MODEL_NONE,
    };
    for (gsize t = 0; t < n; t++) {
        g_autofree char *name = g_strconcat(layer_name, ".", tensors[t].name, NULL);
        ZpModelParameter parameter = {
            .name = g_intern_string(name),
            .elements = tensors[t].rows * MAX(1, tensors[t].columns),
            .shape = {tensors[t].rows, tensors[t].columns},
            .n_dims = tensors[t].columns > 0 ? 2 : 1,
            .module = ZP_MODEL_NONE,
            .layer = index,
            .tied_to = ZP_MODEL_NONE,
            .trainable = TRUE,
        };
        layer.elements += parameter.elements;
        g_array_append_val(model->parameters, parameter);
    }
    layer.flops_per_token = 2 * layer.elements;
    g_array_append_val(model->layers, layer);
}

/* torch.nn.TransformerEncoderLayer, and TransformerDecoderLayer with its second attention. */
static void
add_transformer_block(ZpModel *model, gboolean decoder, gint32 block, gint64 d, gint64 f)
{
    const Tensor tensors[] = {
        {"self_attn.in_proj_weight", 3 * d, d},
        {"self_attn.in_proj_bias", 3 * d, 0},
        {"self_attn.out_proj.weight", d, d},
        {"self_attn.out_proj.bias", d, 0},
        {"linear1.weight", f, d},
        {"linear1.bias", f, 0},
        {"linear2.weight", d, f},
        {"linear2.bias", d, 0},
        {"norm1.weight", d, 0},
        {"norm1.bias", d, 0},
        {"norm2.weight", d, 0},
        {"norm2.bias", d, 0},
        {"multihead_attn.in_proj_weight", 3 * d, d},
        {"multihead_attn.in_proj_bias", 3 * d, 0},
        {"multihead_attn.out_proj.weight", d, d},
        {"multihead_attn.out_proj.bias", d, 0},
        {"norm3.weight", d, 0},
        {"norm3.bias", d, 0},
    };
    g_autofree char *name = g_strdup_printf("%s.%d", decoder ? "decoder" : "encoder", block);
    add_tensors(model, name, ZP_LAYER_OTHER, block, tensors,
                decoder ? G_N_ELEMENTS(tensors) : G_N_ELEMENTS(tensors) - 6);
}

/* Lightning's demo: embedding, nn.Transformer with a norm after encoder and decoder, and a linear
 * head over a vocabulary of 33,278 (WikiText-2, pytorch_lightning/demos/transformer.py).  A few
 * tokens of 35: no activations are counted. */
static ZpModel *
build_encoder_decoder(const ZpValidateRecord *row)
{
    char *end = NULL;
    const char *counts = zp_validate_record_text(row, "n_layers");
    gint32 encoders = (gint32)g_ascii_strtoll(counts, &end, 10);
    const char *plus = strchr(counts, '+');
    gint32 decoders = plus != NULL ? (gint32)g_ascii_strtoll(plus + 1, NULL, 10) : 0;
    gint64 d = zp_validate_record_integer(row, "d_model", 0),
           f = zp_validate_record_integer(row, "d_ff", 4 * d);
    gint64 vocabulary = zp_validate_record_integer(row, "vocab", 33278);
    const Tensor embedding[] = {{"weight", vocabulary, d}};
    const Tensor end_norm[] = {{"weight", d, 0}, {"bias", d, 0}};
    const Tensor head[] = {{"weight", vocabulary, d}, {"bias", vocabulary, 0}};
    ZpModel *model = zp_model_new(zp_validate_record_text(row, "model_name"));
    add_tensors(model, "embedding", ZP_LAYER_EMBEDDING, ZP_MODEL_NONE, embedding, 1);
    for (gint32 b = 0; b < encoders; b++)
        add_transformer_block(model, FALSE, b, d, f);
    add_tensors(model, "encoder.norm", ZP_LAYER_NORM, ZP_MODEL_NONE, end_norm, 2);
    for (gint32 b = 0; b < decoders; b++)
        add_transformer_block(model, TRUE, encoders + b, d, f);
    add_tensors(model, "decoder.norm", ZP_LAYER_NORM, ZP_MODEL_NONE, end_norm, 2);
    add_tensors(model, "head", ZP_LAYER_HEAD, ZP_MODEL_NONE, head, 2);
    model->n_blocks = encoders + decoders;
    zp_model_finish(model);
    return model;
}

ZpModel *
zp_validate_memory_model(const ZpValidateRecord *row, const ZpJob *job, GError **error)
{
    if (zp_validate_record_has(row, "n_layers", "enc"))
        return build_encoder_decoder(row);
    const ZpArchitectureOptions options = {
        .compute = job->precision.gathered,
        .attention = zp_validate_record_is_eager(row) ? ZP_ATTENTION_EAGER : ZP_ATTENTION_FLASH,
        .causal = TRUE,
        .transformers = ZP_TRANSFORMERS_4,
        .tensor_parallel = job->world.parallel.tensor,
        .sequence_parallel = job->world.parallel.sequence,
    };
    g_autoptr(ZpModel) model = zp_validate_model_build(row, &options, FALSE, NULL);
    if (model == NULL) {
        g_set_error_literal(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW,
                            "the row has no transformer's shape");
        return NULL;
    }
    const char *lora = strstr(zp_validate_record_text(row, "notes"), "LoRA r=");
    gint32 rank = lora ? (gint32)g_ascii_strtoll(lora + strlen("LoRA r="), NULL, 10) : 0;
    if (lora != NULL && !zp_model_add_lora(model, rank, ATTENTION_PROJECTIONS, FALSE, error))
        return NULL;
    return g_steal_pointer(&model);
}
