/* Cuts of a model: what one rank holds, by sums done by hand. */
#include "models/families/architecture.h"
#include "models/families/catalog.h"
#include "models/parallel/parallel.h"
#include "models/prices/cost.h"
#include "tests/unit/fixtures/job_fixture.h"

static ZpModel *
whole_model(const char *name)
{
    const ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_catalog_build(name, &options, &error);
    g_assert_no_error(error);
    return model;
}

static ZpModel *
cut_model(const char *name, ZpParallel parallel)
{
    ZpModel *model = whole_model(name);
    g_autoptr(GError) error = NULL;
    zp_parallel_cut(model, &parallel, ZP_DTYPE_BF16, &error);
    g_assert_no_error(error);
    return model;
}

/* Layers own the model's parameters. */
static void
assert_consistent(const ZpModel *model)
{
    gint64 sum = 0;
    for (guint l = 0; l < model->layers->len; l++)
        sum += zp_model_layer(model, (gint32)l)->elements;
    g_assert_cmpint(sum, ==, model->n_elements);
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        gint64 product = 1;
        for (gint32 d = 0; d < parameter->n_dims; d++)
            product *= parameter->shape[d];
        g_assert_cmpint(product, ==, parameter->elements);
    }
}

static gint64
elements_of(const ZpModel *model, const char *name)
{
    for (guint p = 0; p < model->parameters->len; p++) {
        if (g_str_has_suffix(zp_model_parameter(model, (gint32)p)->name, name))
            return zp_model_parameter(model, (gint32)p)->elements;
    }
    g_error("no parameter %s", name);
}

/* 32 blocks, h 4096, 32 heads of 128, 8 key heads, ffn 14336, vocabulary 128256 = 1002 x 128. */
static void
test_llama(void)
{
    g_autoptr(ZpModel) whole = whole_model("Llama-3-8B");
    g_autoptr(ZpModel) model = cut_model("Llama-3-8B", (ZpParallel){.tensor = 8});
    gint64 block = (4096LL * 4096 * 2 + 2 * 1024 * 4096 + 3 * 14336LL * 4096) / 8 + 2 * 4096;
    gint64 table = 1008 * 128 / 8 * 4096LL; /* the next multiple of 1024 rows */
    g_assert_cmpint(model->n_elements, ==, 32 * block + 2 * table + 4096);
    assert_consistent(model);
    g_assert_cmpint(model->heads, ==, 4);
    g_assert_cmpint(model->kv_heads, ==, 1);
    g_assert_cmpint(model->ffn, ==, 14336 / 8);
    g_assert_cmpint(model->vocabulary, ==, 1008 * 128 / 8);
    for (guint l = 0; l < model->layers->len; l++) {
        const ZpModelLayer *own = zp_model_layer(model, (gint32)l);
        const ZpModelLayer *all = zp_model_layer(whole, (gint32)l);
        if (own->kind == ZP_LAYER_ATTENTION || own->kind == ZP_LAYER_MLP) {
            g_assert_cmpint(own->flops_per_token * 8, ==, all->flops_per_token);
            g_assert_cmpint(own->flops_per_pair * 8, ==, all->flops_per_pair);
        }
    }
}

/* Norms are whole, and with sequence parallelism their traffic and that of the residual is not. */
static void
test_traffic(void)
{
    g_autoptr(ZpModel) whole = whole_model("Llama-3-8B");
    g_autoptr(ZpModel) plain = cut_model("Llama-3-8B", (ZpParallel){.tensor = 4});
    g_autoptr(ZpModel) sequence =
        cut_model("Llama-3-8B", (ZpParallel){.tensor = 4, .sequence = TRUE});
    g_assert_cmpint(plain->n_elements, ==, sequence->n_elements);
    gint64 ends = 2 * 2 * 4096; /* input and output of the products */
    for (guint l = 0; l < whole->layers->len; l++) {
        const ZpModelLayer *a = zp_model_layer(whole, (gint32)l);
        const ZpModelLayer *b = zp_model_layer(plain, (gint32)l);
        const ZpModelLayer *c = zp_model_layer(sequence, (gint32)l);
        gint64 stream = a->stream_traffic_bytes_per_token;
        if (a->kind == ZP_LAYER_NORM) {
            g_assert_cmpint(b->traffic_bytes_per_token, ==, stream);
            g_assert_cmpint(c->traffic_bytes_per_token, ==, stream / 4);
        }
        if (a->kind != ZP_LAYER_MLP)
            continue;
        gint64 inner = a->traffic_bytes_per_token - stream - ends;
        g_assert_cmpint(stream, >, 0);
        g_assert_cmpint(b->traffic_bytes_per_token, ==, stream + ends + inner / 4);
        g_assert_cmpint(c->traffic_bytes_per_token, ==, stream / 4 + ends + inner / 4);
    }
}

/* More ranks than key heads: each keeps one. */
static void
test_key_heads(void)
{
    g_autoptr(ZpModel) model = cut_model("Llama-3-8B", (ZpParallel){.tensor = 16});
    g_assert_cmpint(model->kv_heads, ==, 1);
    g_assert_cmpint(elements_of(model, "0.self_attn.k_proj.weight"), ==, 128 * 4096);
    g_assert_cmpint(elements_of(model, "0.self_attn.q_proj.weight"), ==, 2 * 128 * 4096);
    g_assert_cmpint(elements_of(model, "0.self_attn.o_proj.weight"), ==, 2 * 128 * 4096);
    assert_consistent(model);
}

/* GPT-2 stores input x output, with biases: of columns they are cut, of rows not.  Its head is its
 * embedding. */
static void
test_gpt2(void)
{
    g_autoptr(ZpModel) model = cut_model("GPT-2", (ZpParallel){.tensor = 4});
    gint64 h = 768;
    g_assert_cmpint(elements_of(model, "h.0.attn.c_attn.weight"), ==, h * 3 * h / 4);
    g_assert_cmpint(elements_of(model, "h.0.attn.c_attn.bias"), ==, 3 * h / 4);
    g_assert_cmpint(elements_of(model, "h.0.attn.c_proj.weight"), ==, h / 4 * h);
    g_assert_cmpint(elements_of(model, "h.0.attn.c_proj.bias"), ==, h);
    g_assert_cmpint(elements_of(model, "h.0.mlp.c_fc.bias"), ==, h);
    g_assert_cmpint(elements_of(model, "h.0.mlp.c_proj.bias"), ==, h);
    g_assert_cmpint(elements_of(model, "h.0.ln_1.weight"), ==, h);
    g_assert_cmpint(elements_of(model, "wpe.weight"), ==, 1024 * h);
    /* 50257 rows: the next multiple of 512 is 50688 */
    g_assert_cmpint(elements_of(model, "wte.weight"), ==, 50688 / 4 * h);
    g_assert_true(model->tied);
    assert_consistent(model);
    const ZpModelLayer *head = zp_model_layer(model, (gint32)model->layers->len - 1);
    g_assert_cmpint(head->tied_elements, ==, 50688 / 4 * h);
    g_assert_cmpint(head->flops_per_token, ==, 2 * (50688 / 4) * h);
}

/* Every family that a catalogue names: one of two ranks has between half and all. */
static void
test_families(void)
{
    gsize n = 0;
    const ZpCatalogEntry *entries = zp_catalog_entries(&n);
    int cut = 0;
    for (gsize i = 0; i < n; i++) {
        const ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
        g_autoptr(ZpModel) whole = zp_catalog_build(entries[i].name, &options, NULL);
        g_autoptr(ZpModel) model = zp_catalog_build(entries[i].name, &options, NULL);
        ZpParallel parallel = {.tensor = 2, .sequence = TRUE};
        if (model == NULL || !zp_parallel_cut(model, &parallel, ZP_DTYPE_BF16, NULL))
            continue;
        cut++;
        assert_consistent(model);
        g_assert_cmpint(2 * model->n_elements, >=, whole->n_elements);
        g_assert_cmpint(model->n_elements, <, whole->n_elements);
        g_assert_cmpint(model->n_active_elements, >, 0);
        for (guint l = 0; l < model->layers->len; l++)
            g_assert_cmpint(2 * zp_model_layer(model, (gint32)l)->flops_per_token, >=,
                            zp_model_layer(whole, (gint32)l)->flops_per_token);
    }
    g_assert_cmpint(cut, >=, 10);
}

static void
assert_refused(ZpModel *model, ZpParallel parallel, ZpParallelError code, const char *words)
{
    g_autoptr(GError) error = NULL;
    gint64 before = model->n_elements;
    g_assert_false(zp_parallel_cut(model, &parallel, ZP_DTYPE_BF16, &error));
    g_assert_error(error, ZP_PARALLEL_ERROR, (gint)code);
    if (strstr(error->message, words) == NULL)
        g_error("%s", error->message);
    g_assert_cmpint(model->n_elements, ==, before);
}

static void
test_refusals(void)
{
    g_autoptr(ZpModel) llama = whole_model("Llama-3-8B");
    g_autoptr(ZpModel) mixture = whole_model("Mixtral-8x7B");
    g_autoptr(ZpModel) total = zp_model_new_total(1000000, 4);
    assert_refused(llama, (ZpParallel){.tensor = 3}, ZP_PARALLEL_ERROR_TENSOR, "32 heads");
    assert_refused(mixture, (ZpParallel){.tensor = 2}, ZP_PARALLEL_ERROR_SEQUENCE, "experts");
    assert_refused(total, (ZpParallel){.tensor = 2}, ZP_PARALLEL_ERROR_TENSOR, "dimensions");
    const ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16};
    const ZpArchitecture odd = {.family = "llama",
                                .layers = 2,
                                .hidden = 64,
                                .heads = 12,
                                .kv_heads = 6,
                                .head_size = 8,
                                .ffn = 100,
                                .vocabulary = 7};
    g_autoptr(ZpModel) small = zp_architecture_build(&odd, &options, "odd", NULL);
    g_assert_nonnull(small);
    assert_refused(small, (ZpParallel){.tensor = 4}, ZP_PARALLEL_ERROR_TENSOR, "key heads");
    assert_refused(small, (ZpParallel){.tensor = 3}, ZP_PARALLEL_ERROR_TENSOR, "ffn");
    g_assert_cmpint(zp_parallel_padded_vocabulary(50257, 8), ==, 51200);
    g_assert_cmpint(zp_parallel_padded_vocabulary(50257, 1), ==, 50257);
}

static void
test_places(void)
{
    ZpJob job = {.runtime = "ideal",
                 .training = {.micro_batch = 1, .sequence = 8192, .accumulation = 4},
                 .world.parallel = {.tensor = 4, .context = 2, .pipeline = 2, .sequence = TRUE}};
    g_assert_true(zp_parallel_check(&job, 64, NULL));
    zp_parallel_place(&job, 64);
    g_assert_cmpint(job.world.ranks, ==, 8); /* 4 data x 2 context */
    g_assert_cmpint(job.training.sequence, ==, 4096);
    g_assert_cmpint(job.network.rank_stride, ==, 4);
    g_assert_cmpint(zp_parallel_in_flight(&job), ==, 2);
    /* Data parallel groups share the NICs with those of the tensor ranks between them. */
    JobFixture fixture;
    job_fixture_init(&fixture, 1000, 1);
    ZpNetwork network = fixture.job.network;
    ZpCost by_stride = zp_cost_collective(&network, ZP_KIND_ALL_GATHER, 1 << 20, 4, 8);
    network.rank_stride = 8;
    ZpCost by_places = zp_cost_collective(&network, ZP_KIND_ALL_GATHER, 1 << 20, 4, 1);
    g_assert_cmpint(by_places.solo_ps, ==, by_stride.solo_ps);
    g_assert_cmpint(by_places.link, ==, ZP_LINK_NETWORK);
    job_fixture_clear(&fixture);
}

/* The stages of a real model: the first has the embedding, the last the head. */
static void
test_stages(void)
{
    g_autoptr(ZpModel) whole = whole_model("Llama-3-8B");
    g_autoptr(ZpModel) first = whole_model("Llama-3-8B");
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpModel) last = zp_parallel_cut_stage(first, 4, &error);
    g_assert_no_error(error);
    assert_consistent(first);
    g_assert_cmpint(first->n_blocks, ==, 8);
    gint64 table = 128256LL * 4096;
    g_assert_cmpint(first->n_elements, ==, (whole->n_elements - 2 * table - 4096) / 4 + table);
    gint64 behind = 0;
    for (guint l = 0; l < last->layers->len; l++)
        behind += zp_model_layer(last, (gint32)l)->elements;
    g_assert_cmpint(behind, ==, first->n_elements + 4096);
    for (guint p = 0; p < first->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(first, (gint32)p);
        const ZpModelModule *module = zp_model_module(first, parameter->module);
        g_assert_true(g_str_has_prefix(parameter->name, module->name));
    }
    g_assert_null(zp_parallel_cut_stage(whole, 5, &error));
    g_assert_error(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_PIPELINE);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/parallel/llama", test_llama);
    g_test_add_func("/parallel/traffic", test_traffic);
    g_test_add_func("/parallel/key-heads", test_key_heads);
    g_test_add_func("/parallel/gpt2", test_gpt2);
    g_test_add_func("/parallel/families", test_families);
    g_test_add_func("/parallel/refusals", test_refusals);
    g_test_add_func("/parallel/places", test_places);
    g_test_add_func("/parallel/pipeline/stages", test_stages);
    return g_test_run();
}
