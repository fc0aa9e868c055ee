/* What tensor and context parallelism leave of a model. */
#include <string.h>

#include "models/parallel/parallel.h"

typedef struct {
    ZpModel *model;
    gint32 tensor;
    gint64 vocabulary; /* padded, of all ranks */
    gint64 kv_heads;   /* of one rank */
} Cut;

/* Matrices that every rank repeats: routers, gates of one number, latent projections before the
 * heads (megatron/core/transformer/multi_latent_attention.py, parallel_mode "duplicated"). */
static gboolean
is_repeated(const ZpModel *model, const ZpModelParameter *parameter)
{
    static const char *const names[] = {
        "gate", "router", "shared_expert_gate", "q_a_proj", "layer", "kv_a_proj_with_mqa", NULL};
    const ZpModelModule *module = zp_model_module(model, parameter->module);
    const char *dot = strrchr(module->name, '.');
    return g_strv_contains(names, dot != NULL ? dot + 1 : module->name) ||
           strstr(module->class_name, "Norm") != NULL;
}

static gboolean
is_cut_layer(const ZpModelLayer *layer)
{
    return layer->kind == ZP_LAYER_ATTENTION || layer->kind == ZP_LAYER_MLP;
}

/* A matrix of attention or MLP that is cut. */
static gboolean
is_matrix(const ZpModel *model, const ZpModelParameter *parameter)
{
    return parameter->n_dims == 2 && parameter->layer != ZP_MODEL_NONE &&
           parameter->module != ZP_MODEL_NONE && !parameter->expert &&
           is_cut_layer(zp_model_layer(model, parameter->layer)) && !is_repeated(model, parameter);
}

/* Where the output of a matrix is in its shape: Hugging Face's Conv1D stores it second. */
static int
output_of(const ZpModel *model, const ZpModelParameter *parameter)
{
    const char *class_name = zp_model_module(model, parameter->module)->class_name;
    return strcmp(class_name, "Conv1D") == 0 ? 1 : 0;
}

/* Does a later square matrix of the layer follow? */
static gboolean
square_follows(const ZpModel *model, gint32 index)
{
    const ZpModelParameter *parameter = zp_model_parameter(model, index);
    for (gint32 i = index + 1; i < (gint32)model->parameters->len; i++) {
        const ZpModelParameter *next = zp_model_parameter(model, i);
        if (next->layer == parameter->layer && is_matrix(model, next) &&
            next->shape[0] == next->shape[1])
            return TRUE;
    }
    return FALSE;
}

/* A matrix that ends its sublayer is cut by rows: it gives the residual stream's width and takes
 * another; of square ones the last. */
static gboolean
is_row_cut(const ZpModel *model, gint32 index)
{
    const ZpModelParameter *parameter = zp_model_parameter(model, index);
    int output = output_of(model, parameter);
    if (parameter->shape[output] != model->hidden)
        return FALSE;
    return parameter->shape[1 - output] != model->hidden || !square_follows(model, index);
}

/* Columns of one rank: of keys and values, alone or behind the queries, those of its key heads. */
static gint64
columns(const Cut *cut, const ZpModelLayer *layer, gint64 width)
{
    const ZpModel *model = cut->model;
    gint64 keys = model->kv_heads * model->head_size, queries = model->heads * model->head_size;
    if (layer->kind == ZP_LAYER_ATTENTION && model->kv_heads < model->heads) {
        if (width == keys)
            return cut->kv_heads * model->head_size;
        if (width == queries + 2 * keys)
            return queries / cut->tensor + 2 * cut->kv_heads * model->head_size;
    }
    return width / cut->tensor;
}

/* The cut dimension of a parameter and what is left of it; FALSE: the parameter stays whole. */
static gboolean
find_cut(const Cut *cut, gint32 index, int *dimension, gint64 *left)
{
    const ZpModel *model = cut->model;
    const ZpModelParameter *parameter = zp_model_parameter(model, index);
    if (parameter->layer == ZP_MODEL_NONE || parameter->module == ZP_MODEL_NONE)
        return FALSE;
    const ZpModelLayer *layer = zp_model_layer(model, parameter->layer);
    if (layer->kind == ZP_LAYER_EMBEDDING || layer->kind == ZP_LAYER_HEAD) {
        *dimension = 0;
        *left = cut->vocabulary / cut->tensor;
        return parameter->shape[0] == model->vocabulary;
    }
    if (is_matrix(model, parameter)) {
        int output = output_of(model, parameter);
        gboolean row = is_row_cut(model, index);
        *dimension = row ? 1 - output : output;
        *left = row ? parameter->shape[*dimension] / cut->tensor
                    : columns(cut, layer, parameter->shape[*dimension]);
        return TRUE;
    }
    /* A bias goes with its module's matrix, which is registered before it. */
    if (parameter->n_dims != 1 || index == 0 || parameter->expert)
        return FALSE;
    const ZpModelParameter *before = zp_model_parameter(model, index - 1);
    if (before->module != parameter->module || !is_matrix(model, before) ||
        is_row_cut(model, index - 1))
        return FALSE;
    *dimension = 0;
    *left = columns(cut, layer, parameter->shape[0]);
    return TRUE;
}

static gboolean
check_divides(const char *what, gint64 count, gint32 tensor, GError **error)
{
    if (count % tensor == 0)
        return TRUE;
    g_set_error(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_TENSOR,
                "%d tensor parallel ranks do not divide %" G_GINT64_FORMAT " %s", tensor, count,
                what);
    return FALSE;
}

static gboolean
check_model(const ZpModel *model, gint32 tensor, gboolean sequence, GError **error)
{
    if (model->modules->len == 0 || model->heads == 0 || model->hidden == 0) {
        g_set_error_literal(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_TENSOR,
                            "only a model described by its dimensions, config or catalogue name "
                            "can be cut");
        return FALSE;
    }
    if (!check_divides("heads", model->heads, tensor, error))
        return FALSE;
    if (model->kv_heads % tensor != 0 && tensor % model->kv_heads != 0) {
        g_set_error(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_TENSOR,
                    "%d tensor parallel ranks and %" G_GINT64_FORMAT
                    " key heads do not divide each other",
                    tensor, model->kv_heads);
        return FALSE;
    }
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        if (parameter->expert && !sequence) {
            g_set_error_literal(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_SEQUENCE,
                                "a mixture of experts needs sequence parallelism beside tensor "
                                "parallelism: its experts stay whole");
            return FALSE;
        }
        if (!is_matrix(model, parameter) ||
            zp_model_layer(model, parameter->layer)->kind != ZP_LAYER_MLP)
            continue;
        int inner = is_row_cut(model, (gint32)p) ? 1 - output_of(model, parameter)
                                                 : output_of(model, parameter);
        if (!check_divides("columns of an MLP (ffn)", parameter->shape[inner], tensor, error))
            return FALSE;
    }
    /* An image model has none. */
    if (model->vocabulary > 0 && zp_parallel_padded_vocabulary(model->vocabulary, tensor) == 0) {
        g_set_error(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_TENSOR,
                    "the vocabulary of %" G_GINT64_FORMAT
                    " cannot be padded to a multiple of 128 x %d",
                    model->vocabulary, tensor);
        return FALSE;
    }
    return TRUE;
}

/* Products of a layer with a matrix that shrank. */
static void
spend_less(ZpModelLayer *layer, gint64 elements)
{
    layer->tensor_cut = TRUE;
    if (layer->kind == ZP_LAYER_EMBEDDING)
        return; /* a look-up */
    gint64 before = layer->flops_per_token, left = MAX(0, before - 2 * elements);
    layer->flops_per_token = left;
    if (layer->selective_flops_per_token > 0)
        layer->selective_flops_per_token =
            (gint64)((double)layer->selective_flops_per_token / (double)before * (double)left);
}

static void
cut_parameter(Cut *cut, gint32 index, int dimension, gint64 left)
{
    ZpModel *model = cut->model;
    ZpModelParameter *parameter = &g_array_index(model->parameters, ZpModelParameter, (guint)index);
    ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, (guint)parameter->layer);
    gint64 whole = parameter->elements;
    parameter->shape[dimension] = left;
    parameter->elements = 1;
    for (gint32 d = 0; d < parameter->n_dims; d++)
        parameter->elements *= parameter->shape[d];
    gint64 less = whole - parameter->elements;
    if (parameter->tied_to != ZP_MODEL_NONE) {
        layer->tied_elements -= less;
    } else {
        layer->elements -= less;
        model->n_active_elements -= less;
        if (layer->kind == ZP_LAYER_EMBEDDING)
            model->n_embedding_elements -= less;
    }
    if (parameter->n_dims == 2)
        spend_less(layer, less);
}

static void
cut_parameters(Cut *cut)
{
    guint n = cut->model->parameters->len;
    g_autofree int *dimensions = g_new(int, n + 1);
    g_autofree gint64 *left = g_new0(gint64, n + 1);
    for (guint p = 0; p < n; p++) { /* rules look at whole neighbours: find all, then cut */
        if (!find_cut(cut, (gint32)p, &dimensions[p], &left[p]))
            dimensions[p] = -1;
    }
    for (guint p = 0; p < n; p++) {
        if (dimensions[p] >= 0)
            cut_parameter(cut, (gint32)p, dimensions[p], left[p]);
    }
}

/* Experts stay whole: with sequence parallelism each rank brings its own tokens to them, so that it
 * computes for a part of the tokens. */
static void
cut_expert_tokens(ZpModelLayer *layer, gint64 dense_elements, gint32 tensor)
{
    gint64 dense = 2 * dense_elements;
    layer->flops_per_token = dense + (layer->flops_per_token - dense) / tensor;
    if (layer->tensor_cut)
        return;
    layer->traffic_bytes_per_token /= tensor;
    layer->stream_traffic_bytes_per_token /= tensor;
}

static void
cut_experts(ZpModel *model, gint32 tensor)
{
    g_autofree gint64 *dense = g_new0(gint64, model->layers->len + 1);
    g_autofree gboolean *experts = g_new0(gboolean, model->layers->len + 1);
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        if (parameter->layer == ZP_MODEL_NONE)
            continue;
        experts[parameter->layer] |= parameter->expert;
        if (is_matrix(model, parameter))
            dense[parameter->layer] += parameter->elements;
    }
    for (guint l = 0; l < model->layers->len; l++) {
        if (experts[l])
            cut_expert_tokens(&g_array_index(model->layers, ZpModelLayer, l), dense[l], tensor);
    }
}

/* Memory traffic of a layer is that of the residual stream, of the products' input and output (as
 * wide as the stream on every rank), and of what lies between, which is cut. */
static void
cut_traffic(ZpModelLayer *layer, const ZpModel *model, const ZpParallel *parallel, gint64 bytes)
{
    gint64 stream = layer->stream_traffic_bytes_per_token;
    gint64 left = zp_parallel_sequence(parallel) ? stream / parallel->tensor : stream;
    if (layer->tensor_cut && layer->kind != ZP_LAYER_EMBEDDING) {
        gint64 ends = layer->kind == ZP_LAYER_HEAD ? 0 : 2 * bytes * model->hidden;
        gint64 inner = layer->traffic_bytes_per_token - stream - ends;
        layer->traffic_bytes_per_token = left + ends + MAX(0, inner) / parallel->tensor;
    } else {
        layer->traffic_bytes_per_token += left - stream;
    }
    layer->stream_traffic_bytes_per_token = left;
}

static void
cut_tensor(ZpModel *model, const ZpParallel *parallel, ZpDtype compute)
{
    gint32 tensor = parallel->tensor;
    Cut cut = {
        .model = model,
        .tensor = tensor,
        .vocabulary = zp_parallel_padded_vocabulary(model->vocabulary, tensor),
        .kv_heads = MAX(1, model->kv_heads / tensor),
    };
    gboolean dense = FALSE;
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        dense |= is_matrix(model, parameter) &&
                 zp_model_layer(model, parameter->layer)->kind == ZP_LAYER_MLP;
    }
    cut_parameters(&cut);
    cut_experts(model, tensor);
    gint64 bytes = MAX(16, zp_dtype_bits(compute)) / 8;
    for (guint l = 0; l < model->layers->len; l++) {
        ZpModelLayer *layer = &g_array_index(model->layers, ZpModelLayer, l);
        if (layer->tensor_cut || layer->kind == ZP_LAYER_NORM)
            cut_traffic(layer, model, parallel, bytes);
        if (layer->kind != ZP_LAYER_ATTENTION)
            continue;
        layer->flops_per_pair /= tensor;
        layer->selective_flops_per_pair /= tensor;
    }
    model->heads /= tensor;
    model->kv_heads = cut.kv_heads;
    if (dense) /* else the width of an expert */
        model->ffn /= tensor;
    model->vocabulary = cut.vocabulary / tensor;
}

gboolean
zp_parallel_cut(ZpModel *model, const ZpParallel *parallel, ZpDtype compute, GError **error)
{
    gint32 tensor = zp_parallel_tensor(parallel), context = zp_parallel_context(parallel);
    if (tensor == 1 && context == 1)
        return TRUE;
    if (tensor > 1 && !check_model(model, tensor, parallel->sequence, error))
        return FALSE;
    if (tensor > 1)
        cut_tensor(model, parallel, compute);
    for (guint l = 0; l < model->layers->len; l++)
        g_array_index(model->layers, ZpModelLayer, l).flops_per_pair *= context;
    zp_model_finish(model);
    return TRUE;
}
