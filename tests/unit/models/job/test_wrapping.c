/* Which layers share a unit, under every wrapping. */
#include "models/job/wrapping.h"

static void
add(ZpModel *model, const char *name, ZpLayerKind kind, gint32 block, gint64 elements,
    gint64 tied_elements)
{
    ZpModelLayer layer = {
        .name = name,
        .kind = kind,
        .block = block,
        .module = ZP_MODEL_NONE,
        .activation = ZP_MODEL_NONE,
        .elements = elements,
        .tied_elements = tied_elements,
    };
    ZpModelParameter parameter = {
        .name = name,
        .elements = elements,
        .shape = {elements},
        .n_dims = 1,
        .module = ZP_MODEL_NONE,
        .layer = (gint32)model->layers->len,
        .tied_to = ZP_MODEL_NONE,
        .trainable = TRUE,
    };
    g_array_append_val(model->layers, layer);
    if (elements > 0)
        g_array_append_val(model->parameters, parameter);
}

/* embedding 100; four blocks of attention 10 and MLP 20; norm 1; head 100 (or tied). */
static ZpModel *
make_model(gboolean tied)
{
    static const char *const attention[] = {"block.0.attention", "block.1.attention",
                                            "block.2.attention", "block.3.attention"};
    static const char *const mlp[] = {"block.0.mlp", "block.1.mlp", "block.2.mlp", "block.3.mlp"};
    ZpModel *model = zp_model_new("toy");
    add(model, "embedding", ZP_LAYER_EMBEDDING, ZP_MODEL_NONE, 100, 0);
    for (gint32 b = 0; b < 4; b++) {
        add(model, attention[b], ZP_LAYER_ATTENTION, b, 10, 0);
        add(model, mlp[b], ZP_LAYER_MLP, b, 20, 0);
    }
    add(model, "norm", ZP_LAYER_NORM, ZP_MODEL_NONE, 1, 0);
    add(model, "head", ZP_LAYER_HEAD, ZP_MODEL_NONE, tied ? 0 : 100, tied ? 100 : 0);
    model->n_blocks = 4;
    model->tied = tied;
    zp_model_finish(model);
    return model;
}

/* "name:elements:first-last ..." */
static void
assert_units(const ZpModel *model, ZpZero zero, const char *expected)
{
    g_autoptr(ZpUnits) units = zp_wrapping_apply(model, &zero);
    g_autoptr(GString) text = g_string_new(NULL);
    gint64 sum = 0;
    for (gint32 u = 0; u < units->n_units; u++) {
        const ZpUnit *unit = &units->units[u];
        g_string_append_printf(text, "%s%s:%d:%d-%d", u > 0 ? " " : "", unit->name,
                               (int)unit->elements, unit->first_layer, unit->last_layer);
        sum += unit->elements;
        g_assert_cmpint(unit->trainable_elements, ==, unit->elements);
    }
    g_assert_cmpstr(text->str, ==, expected);
    g_assert_cmpint(sum, ==, model->n_elements);
}

static void
test_blocks(void)
{
    g_autoptr(ZpModel) model = make_model(FALSE);
    ZpZero zero = {.wrap = ZP_WRAP_BLOCK, .wrap_blocks = 1, .outer = ZP_OUTER_OWN};
    assert_units(model, zero,
                 "embedding:100:0-0 block.0:30:1-2 block.1:30:3-4 block.2:30:5-6 block.3:30:7-8 "
                 "head:101:9-10");
    zero.wrap_blocks = 3;
    assert_units(model, zero, "embedding:100:0-0 blocks.0:90:1-6 blocks.1:30:7-8 head:101:9-10");
    zero.outer = ZP_OUTER_ROOT;
    assert_units(model, zero, "root:201:0-10 blocks.0:90:1-6 blocks.1:30:7-8");
}

static void
test_sublayers_and_size(void)
{
    g_autoptr(ZpModel) model = make_model(FALSE);
    ZpZero zero = {.wrap = ZP_WRAP_SUBLAYER, .outer = ZP_OUTER_OWN};
    assert_units(model, zero,
                 "embedding:100:0-0 block.0.attention:10:1-1 block.0.mlp:20:2-2 "
                 "block.1.attention:10:3-3 block.1.mlp:20:4-4 block.2.attention:10:5-5 "
                 "block.2.mlp:20:6-6 block.3.attention:10:7-7 block.3.mlp:20:8-8 head:101:9-10");
    zero.wrap = ZP_WRAP_SIZE;
    zero.wrap_elements = 40;
    assert_units(model, zero,
                 "embedding:100:0-0 unit.0:40:1-3 unit.1:50:4-6 unit.2:30:7-8 head:101:9-10");
}

static void
test_whole_model(void)
{
    g_autoptr(ZpModel) model = make_model(FALSE);
    ZpZero zero = {.wrap = ZP_WRAP_MODEL, .outer = ZP_OUTER_OWN};
    assert_units(model, zero, "model:321:0-10");
}

/* One storage, one unit: a tied head lives with the embedding. */
static void
test_tied(void)
{
    g_autoptr(ZpModel) model = make_model(TRUE);
    ZpZero zero = {.wrap = ZP_WRAP_BLOCK, .wrap_blocks = 4, .outer = ZP_OUTER_OWN};
    assert_units(model, zero, "embedding:101:0-10 blocks.0:120:1-8");
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/wrapping/blocks", test_blocks);
    g_test_add_func("/wrapping/sublayers-and-size", test_sublayers_and_size);
    g_test_add_func("/wrapping/whole-model", test_whole_model);
    g_test_add_func("/wrapping/tied", test_tied);
    return g_test_run();
}
