#include "models/prices/layer.h"

#include <math.h>

#include "models/parallel/parallel.h"

/* Backward of fused attention runs five products where forward runs two (arXiv 2307.08691). */
#define ATTENTION_BACKWARD 2.5
/* Eager attention reads and writes scores, mask, softmax and probabilities: bytes per head, pair.
 */
#define EAGER_BYTES_PER_PAIR 20.0
#define MAX_PRODUCTS 4
/* Kernels of a sublayer, forward: fused norms and no rotary embedding, or norms and rotary
 * embedding spelt out in eager code, which shows in the bytes they move for each number of the
 * residual stream.  Backward takes the host four times as long (autograd; a 1.2B Llama of 512
 * tokens on B200: 8.1 ms forward, 48.8 ms forward, recomputed forward and backward;
 * stas00/ml-engineering). */
#define KERNELS_FUSED 8
#define KERNELS_EAGER 22
#define EAGER_BYTES_PER_NUMBER 30.0
#define HOST_BACKWARD 4.0

/* Products of a layer in forward, tokens x n x k each. */
typedef struct {
    double n[MAX_PRODUCTS], k[MAX_PRODUCTS], times[MAX_PRODUCTS];
    int count;
    double scale;    /* the layer's FLOPs over those of these products */
    double io_bytes; /* they read and write, per token */
} Products;

static const ZpCalibration *
constants(const ZpJob *job)
{
    return job->device.calibration;
}

double
zp_cost_gemm_seconds(const ZpDevice *device, double m, double n, double k)
{
    const ZpCalibration *c = device->calibration;
    if (m <= 0.0 || n <= 0.0 || k <= 0.0)
        return 0.0;
    double tiles = ceil(m / 128.0) * ceil(n / 256.0);
    double cold = 2.0 * m * n * k / (device->flops_per_s * c->gemm_efficiency) *
                  (1.0 + c->gemm_tile * c->multiprocessors / tiles) * (1.0 + c->gemm_depth / k);
    double warmth = cold / (cold + zp_time_to_seconds(c->gemm_heat_ps));
    return zp_time_to_seconds(c->gemm_latency_ps) +
           cold * (1.0 + (1.0 / c->gemm_sustained - 1.0) * warmth);
}

static void
add(Products *products, double n, double k, double times)
{
    if (n <= 0.0 || k <= 0.0 || times <= 0.0)
        return;
    products->n[products->count] = n;
    products->k[products->count] = k;
    products->times[products->count++] = times;
}

static double
number_bytes(const ZpJob *job)
{
    return MAX(16, zp_dtype_bits(job->precision.gathered)) / 8.0;
}

static Products
attention_products(const ZpJob *job)
{
    const ZpModel *model = job->model;
    double h = (double)model->hidden, q = (double)(model->heads * model->head_size);
    double kv = (double)(model->kv_heads * model->head_size);
    Products products = {.count = 0};
    add(&products, q + 2.0 * kv, h, 1.0);
    add(&products, h, q, 1.0);
    /* The attention kernel reads what the first product wrote and writes what the second reads. */
    products.io_bytes = number_bytes(job) * (2.0 * (2.0 * q + 2.0 * kv) + 2.0 * h);
    return products;
}

static Products
mlp_products(const ZpJob *job, const ZpModelLayer *layer)
{
    double h = (double)job->model->hidden, f = (double)job->model->ffn;
    Products products = {.count = 0};
    if (h <= 0.0 || f <= 0.0)
        return products;
    double matrices = MAX(2.0, round((double)layer->flops_per_token / (2.0 * h * f)));
    add(&products, f, h, matrices > 2.0 ? round(matrices * 2.0 / 3.0) : 1.0);
    add(&products, h, f, matrices > 2.0 ? round(matrices / 3.0) : 1.0);
    products.io_bytes = number_bytes(job) * (2.0 * h + matrices * f);
    return products;
}

/* What is no attention, MLP or head: one square product of its FLOPs, if it has any. */
static Products
other_products(const ZpModelLayer *layer)
{
    Products products = {.count = 0};
    double side = sqrt((double)layer->flops_per_token / 2.0);
    if (layer->kind != ZP_LAYER_EMBEDDING)
        add(&products, side, side, 1.0);
    return products;
}

static Products
find_products(const ZpJob *job, const ZpModelLayer *layer)
{
    Products products = {.count = 0};
    if (layer->kind == ZP_LAYER_ATTENTION)
        products = attention_products(job);
    else if (layer->kind == ZP_LAYER_MLP)
        products = mlp_products(job, layer);
    else if (layer->kind == ZP_LAYER_HEAD)
        add(&products, (double)job->model->vocabulary, (double)job->model->hidden, 1.0);
    if (products.count == 0)
        products = other_products(layer);
    double flops = 0.0;
    for (int p = 0; p < products.count; p++)
        flops += 2.0 * products.n[p] * products.k[p] * products.times[p];
    products.scale = flops > 0.0 ? (double)layer->flops_per_token / flops : 0.0;
    return products;
}

/* The first `n_products`, forward. */
static double
products_seconds(const ZpJob *job, const Products *products, double tokens, int n_products)
{
    double sum = 0.0;
    for (int p = 0; p < n_products; p++)
        sum += products->times[p] *
               zp_cost_gemm_seconds(&job->device, tokens, products->n[p], products->k[p]);
    return sum * products->scale;
}

/* Gradients of their inputs, and of the weights that are trained. */
static double
products_backward_seconds(const ZpJob *job, const ZpModelLayer *layer, const Products *products,
                          double tokens)
{
    double trained = 1.0 - zp_model_frozen_share(layer), sum = 0.0;
    for (int p = 0; p < products->count; p++) {
        double n = products->n[p], k = products->k[p];
        sum += products->times[p] * (zp_cost_gemm_seconds(&job->device, tokens, k, n) +
                                     trained * zp_cost_gemm_seconds(&job->device, k, n, tokens));
    }
    return sum * products->scale;
}

static double
memory_rate(const ZpJob *job)
{
    return job->device.memory_bytes_per_s * constants(job)->memory_efficiency;
}

/* Are the scores in memory?  Then what is kept grows with pairs. */
static gboolean
is_eager(const ZpJob *job, const ZpModelLayer *layer)
{
    if (layer->activation == ZP_MODEL_NONE)
        return FALSE;
    const ZpModelActivation *activation = zp_model_activation(job->model, layer->activation);
    return activation->policies[ZP_CHECKPOINTING_NONE].kept.bytes_per_pair > 0;
}

/* The attention core, forward. */
static double
attention_seconds(const ZpJob *job, const ZpModelLayer *layer, double pairs)
{
    const ZpModel *model = job->model;
    double flops = (double)layer->flops_per_pair * pairs;
    if (flops <= 0.0)
        return 0.0;
    /* A context parallel rank has pairs with the tokens of the whole sequence. */
    double full =
        4.0 * (double)(model->heads * model->head_size) * zp_parallel_context(&job->world.parallel);
    gboolean causal = (double)layer->flops_per_pair < 0.75 * full;
    double rate = zp_calibration_attention(constants(job), causal, (double)job->training.sequence,
                                           (double)model->head_size);
    /* Kernels were measured in 16 bits: in wider formats they are bound by the products' speed. */
    rate = MIN(rate, job->device.flops_per_s * constants(job)->gemm_efficiency);
    if (is_eager(job, layer)) /* two products and the scores in memory */
        return flops / (job->device.flops_per_s * constants(job)->gemm_efficiency * 0.7) +
               EAGER_BYTES_PER_PAIR * (double)model->heads * pairs / memory_rate(job);
    return flops / rate;
}

static double
elementwise_seconds(const ZpJob *job, const ZpModelLayer *layer, const Products *products,
                    double tokens, gboolean backward)
{
    const ZpCalibration *c = constants(job);
    double bytes = (double)layer->traffic_bytes_per_token - products->io_bytes;
    double factor = backward ? c->elementwise_backward : 1.0;
    if (layer->kind == ZP_LAYER_HEAD && layer->flops_per_token > 0) {
        bytes = c->loss_bytes_per_logit * (double)job->model->vocabulary;
        factor = backward ? 2.0 / 3.0 : 1.0 / 3.0;
    }
    return MAX(bytes, 0.0) * factor * tokens / memory_rate(job);
}

/* Is it the layer whose last product ends a checkpointed block? */
static gboolean
ends_block(const ZpJob *job, const ZpModelLayer *layer)
{
    const ZpModelLayer *first = zp_model_layer(job->model, 0);
    gint32 next = (gint32)(layer - first) + 1;
    return next >= (gint32)job->model->layers->len ||
           zp_model_layer(job->model, next)->block != layer->block;
}

/* The products that recomputation of a whole layer runs. */
static int
count_repeated(const ZpJob *job, const ZpModelLayer *layer, int count)
{
    return constants(job)->recompute_stops_early && count > 1 && ends_block(job, layer) ? count - 1
                                                                                        : count;
}

static double
share_of(gint64 part, gint64 whole)
{
    return whole > 0 ? (double)part / (double)whole : 0.0;
}

/* What a selective policy repeats: its share of the products, the core or not, and elementwise
 * kernels where anything but the core's scores is brought back. */
static ZpCostParts
selective_parts(const ZpJob *job, const ZpModelLayer *layer, const Products *products,
                double tokens, double pairs)
{
    if (layer->activation == ZP_MODEL_NONE)
        return (ZpCostParts){0};
    const ZpModelBytes *back = &zp_model_activation(job->model, layer->activation)
                                    ->policies[ZP_CHECKPOINTING_SELECTIVE]
                                    .recomputed;
    double all = products_seconds(job, products, tokens, products->count);
    double unneeded =
        all - products_seconds(job, products, tokens, count_repeated(job, layer, products->count));
    double share = share_of(layer->selective_flops_per_token, layer->flops_per_token);
    ZpCostParts parts = {
        .products = MAX(0.0, share * all - (layer->selective_last ? unneeded : 0.0)),
        .attention = share_of(layer->selective_flops_per_pair, layer->flops_per_pair) *
                     attention_seconds(job, layer, pairs),
    };
    if (back->bytes_per_token > 0)
        parts.elementwise = elementwise_seconds(job, layer, products, tokens, FALSE);
    return parts;
}

static ZpCostParts
recompute_parts(const ZpJob *job, const ZpModelLayer *layer, const Products *products,
                double tokens, double pairs)
{
    const ZpCalibration *c = constants(job);
    double share = c->recompute_share;
    if (job->training.checkpointing == ZP_CHECKPOINTING_SELECTIVE)
        return selective_parts(job, layer, products, tokens, pairs);
    int n = count_repeated(job, layer, products->count);
    return (ZpCostParts){
        .products = share * products_seconds(job, products, tokens, n),
        .attention = share * attention_seconds(job, layer, pairs),
        .elementwise = share * elementwise_seconds(job, layer, products, tokens, FALSE),
    };
}

static double
host_seconds(const ZpJob *job, const ZpModelLayer *layer, const Products *products,
             gboolean backward)
{
    double elementwise = (double)layer->traffic_bytes_per_token - products->io_bytes;
    double cut = zp_parallel_sequence(&job->world.parallel) ? job->world.parallel.tensor : 1.0;
    gboolean eager = elementwise * cut > EAGER_BYTES_PER_NUMBER * (double)job->model->hidden;
    gboolean whole = layer->kind == ZP_LAYER_ATTENTION || layer->kind == ZP_LAYER_MLP;
    double kernels = whole && eager ? KERNELS_EAGER : whole ? KERNELS_FUSED : products->count + 2;
    return kernels * (backward ? HOST_BACKWARD : 1.0) *
           zp_time_to_seconds(constants(job)->host_kernel_ps);
}

ZpCostParts
zp_cost_layer_parts(const ZpJob *job, const ZpModelLayer *layer, ZpKind pass)
{
    double tokens = (double)job->training.micro_batch * (double)job->training.sequence;
    double pairs = tokens * (double)job->training.sequence;
    gboolean backward = pass == ZP_KIND_BACKWARD;
    Products products = find_products(job, layer);
    ZpCostParts parts;
    if (pass == ZP_KIND_RECOMPUTE)
        parts = recompute_parts(job, layer, &products, tokens, pairs);
    else
        parts = (ZpCostParts){
            .products = backward ? products_backward_seconds(job, layer, &products, tokens)
                                 : products_seconds(job, &products, tokens, products.count),
            .attention =
                attention_seconds(job, layer, pairs) * (backward ? ATTENTION_BACKWARD : 1.0),
            .elementwise = elementwise_seconds(job, layer, &products, tokens, backward),
        };
    if (backward && layer->runs_again) {
        parts.products += products_seconds(job, &products, tokens, products.count);
        parts.elementwise += elementwise_seconds(job, layer, &products, tokens, FALSE);
    }
    parts.host = host_seconds(job, layer, &products, backward);
    return parts;
}

ZpTime
zp_cost_layer(const ZpJob *job, const ZpModelLayer *layer, ZpKind pass)
{
    ZpCostParts parts = zp_cost_layer_parts(job, layer, pass);
    return zp_time_from_seconds(
        MAX(parts.products + parts.attention + parts.elementwise, parts.host));
}

const char *
zp_cost_layer_rule(const ZpJob *job)
{
    return constants(job) != NULL ? constants(job)->rule : ZP_COST_ROOFLINE;
}

void
zp_cost_interference(const ZpJob *job, const ZpTape *tape,
                     gint32 ppm[ZP_TAPE_N_CATEGORIES][ZP_TAPE_N_CATEGORIES])
{
    const ZpCalibration *c = constants(job);
    /* Constants were measured at the speed of the GPU's own links: slower ones lean less. */
    double inside = MAX(zp_cost_inside_bytes_per_s(&job->network),
                        job->device.own_link_bytes_per_s * job->network.link_efficiency);
    if (c == NULL || inside <= 0.0)
        return;
    double wire = 0.0, seconds = 0.0;
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        if (tape->instrs[i].op != ZP_TAPE_LAUNCH)
            continue;
        const ZpTapeWork *work = &tape->works[tape->instrs[i].a];
        if (work->category != ZP_TAPE_COMMUNICATION || work->group == ZP_TAPE_NONE)
            continue; /* the model's own cuts talk while nothing computes */
        wire += (double)work->wire_bytes;
        seconds += zp_time_to_seconds(work->solo_ps);
    }
    if (seconds <= 0.0)
        return;
    double intensity = MIN(1.0, wire / inside / seconds);
    double rate = 1.0 - intensity * (1.0 - c->overlap_rate);
    double compute = MAX(0.01, 1.0 - c->overlap_loss * intensity * rate);
    ppm[ZP_TAPE_COMPUTE][ZP_TAPE_COMMUNICATION] = (gint32)(compute * 1e6);
    ppm[ZP_TAPE_COMMUNICATION][ZP_TAPE_COMPUTE] = (gint32)(rate * 1e6);
}
