#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "models/architecture.h"
#include "tests/check_memory/memory.h"

const char *
memory_row_text(const MemoryRow *row, const char *column)
{
    return zp_validate_csv_get(row->csv, row->record, column);
}

gint64
memory_row_integer(const MemoryRow *row, const char *column, gint64 missing)
{
    double value = zp_validate_csv_number(row->csv, row->record, column, -1.0);
    return value >= 1.0 && value < 9e18 ? (gint64)value : missing;
}

gboolean
memory_row_has(const MemoryRow *row, const char *column, const char *part)
{
    g_autofree char *low = g_ascii_strdown(memory_row_text(row, column), -1);
    return strstr(low, part) != NULL;
}

gboolean
memory_row_eager(const MemoryRow *row)
{
    return memory_row_has(row, "attn_impl", "eager") ||
           (*memory_row_text(row, "attn_impl") == '\0' && memory_row_has(row, "source", "sc21"));
}

static ZpModel *
build_shape(const MemoryRow *row, ZpDtype compute, gboolean gated)
{
    gint64 hidden = memory_row_integer(row, "d_model", 0);
    ZpArchitecture a = {
        .family = gated ? "llama" : "gpt2",
        .layers = memory_row_integer(row, "n_layers", 0),
        .hidden = hidden,
        .heads = memory_row_integer(row, "n_heads", 0),
        .kv_heads = memory_row_integer(row, "n_kv_heads", 0),
        .ffn = memory_row_integer(row, "d_ff", 4 * hidden),
        .vocabulary = memory_row_integer(row, "vocab", 0),
        .positions = gated ? 0 : memory_row_integer(row, "seq_len", 0),
        .gated = gated,
        .tied = g_str_has_prefix(memory_row_text(row, "tied_embeddings"), "y"),
        .attention_bias = !gated,
        .mlp_bias = !gated,
        .norm_bias = !gated,
        .final_norm = TRUE,
    };
    ZpArchitectureOptions options = {
        .compute = compute,
        .attention = memory_row_eager(row) ? ZP_ATTENTION_EAGER : ZP_ATTENTION_FLASH,
        .causal = TRUE,
    };
    return zp_architecture_build(&a, &options, memory_row_text(row, "model_name"), NULL);
}

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
build_encoder_decoder(const MemoryRow *row)
{
    char *end = NULL;
    const char *counts = memory_row_text(row, "n_layers");
    gint32 encoders = (gint32)g_ascii_strtoll(counts, &end, 10);
    const char *plus = strchr(counts, '+');
    gint32 decoders = plus != NULL ? (gint32)g_ascii_strtoll(plus + 1, NULL, 10) : 0;
    gint64 d = memory_row_integer(row, "d_model", 0), f = memory_row_integer(row, "d_ff", 4 * d);
    gint64 vocabulary = memory_row_integer(row, "vocab", 33278);
    const Tensor embedding[] = {{"weight", vocabulary, d}};
    const Tensor end_norm[] = {{"weight", d, 0}, {"bias", d, 0}};
    const Tensor head[] = {{"weight", vocabulary, d}, {"bias", vocabulary, 0}};
    ZpModel *model = zp_model_new(memory_row_text(row, "model_name"));
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

/* LoRA (arXiv 2106.09685): beside each of the four projections two matrices of rank r. */
static void
add_adapters(ZpModel *model, gint64 rank)
{
    guint n_base = model->parameters->len;
    for (guint p = 0; p < n_base; p++)
        g_array_index(model->parameters, ZpModelParameter, p).trainable = FALSE;
    for (guint p = 0; p < n_base; p++) {
        ZpModelParameter base = *zp_model_parameter(model, (gint32)p);
        if (base.n_dims != 2 || base.layer == ZP_MODEL_NONE ||
            zp_model_layer(model, base.layer)->kind != ZP_LAYER_ATTENTION)
            continue;
        for (int side = 0; side < 2; side++) {
            g_autofree char *name = g_strconcat(base.name, side == 0 ? ".lora_a" : ".lora_b", NULL);
            ZpModelParameter adapter = base;
            adapter.name = g_intern_string(name);
            adapter.shape[0] = side == 0 ? rank : base.shape[0];
            adapter.shape[1] = side == 0 ? base.shape[1] : rank;
            adapter.elements = adapter.shape[0] * adapter.shape[1];
            adapter.trainable = TRUE;
            g_array_append_val(model->parameters, adapter);
            g_array_index(model->layers, ZpModelLayer, (guint)base.layer).elements +=
                adapter.elements;
        }
    }
    zp_model_finish(model);
}

ZpModel *
memory_model_new(const MemoryRow *row, ZpDtype compute, const char **reason)
{
    if (memory_row_has(row, "n_layers", "enc"))
        return build_encoder_decoder(row);
    double wanted = zp_validate_csv_number(row->csv, row->record, "n_params", 0.0);
    g_autoptr(ZpModel) gated = build_shape(row, compute, TRUE);
    g_autoptr(ZpModel) plain = build_shape(row, compute, FALSE);
    if (gated == NULL || plain == NULL) {
        *reason = "the row has no transformer's shape";
        return NULL;
    }
    double off_gated = fabs((double)gated->n_elements - wanted);
    double off_plain = fabs((double)plain->n_elements - wanted);
    ZpModel *model = off_gated <= off_plain ? g_steal_pointer(&gated) : g_steal_pointer(&plain);
    const char *lora = strstr(memory_row_text(row, "notes"), "LoRA r=");
    if (lora != NULL)
        add_adapters(model, g_ascii_strtoll(lora + strlen("LoRA r="), NULL, 10));
    return model;
}
