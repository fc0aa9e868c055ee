/* Compiled blocks and losses: what PyTorch's partitioner kept, and what is known about peaks. */
#include "models/activation/activation.h"
#include "models/published/csv.h"

#include <string.h>

enum { RANDOM_STATE_BYTES = 24 /* of the kernel on CUDA, which the recorded CPU kernel has not */ };

static gint64
number(const ZpValidateCsv *csv, guint r, const char *column)
{
    gint64 value = 0;
    g_assert_true(g_ascii_string_to_signed(zp_validate_csv_get(csv, r, column), 10, 0, G_MAXINT32,
                                           &value, NULL));
    return value;
}

static ZpBlockPolicy
policy_of(const char *name)
{
    static const struct {
        const char *name;
        ZpBlockPolicy policy;
    } policies[] = {{"all", ZP_KEEP_ALL},
                    {"input", ZP_KEEP_INPUT},
                    {"attention", ZP_KEEP_ATTENTION},
                    {"products", ZP_KEEP_PRODUCTS},
                    {"products_attention", ZP_KEEP_PRODUCTS_AND_ATTENTION},
                    {"every_second", ZP_KEEP_EVERY_SECOND_PRODUCT}};
    guint i = 0;
    while (strcmp(policies[i].name, name) != 0)
        g_assert_cmpuint(++i, <, G_N_ELEMENTS(policies));
    return policies[i].policy;
}

static ZpBlockRegime
regime_of(const ZpValidateCsv *csv, guint r)
{
    return strcmp(zp_validate_csv_get(csv, r, "dtype"), "fp32") == 0 ? ZP_REGIME_FP32
                                                                     : ZP_REGIME_BF16;
}

static ZpActivationBlock
block_of(const ZpValidateCsv *csv, guint r)
{
    return (ZpActivationBlock){
        .attention = ZP_BLOCK_FLASH_REPEATED,
        .compiled = TRUE,
        .regime = regime_of(csv, r),
        .policy = policy_of(zp_validate_csv_get(csv, r, "policy")),
        .batch = number(csv, r, "batch"),
        .tokens = number(csv, r, "tokens"),
        .hidden = number(csv, r, "hidden"),
        .heads = number(csv, r, "heads"),
        .kv_heads = number(csv, r, "kv_heads"),
        .head_size = number(csv, r, "head_size"),
        .ffn = number(csv, r, "ffn"),
    };
}

static void
check_block(const ZpValidateCsv *csv, guint r)
{
    ZpActivationBlock block = block_of(csv, r);
    g_assert_true(zp_activation_check(&block, NULL));
    gboolean attention_kept = block.policy != ZP_KEEP_INPUT && block.policy != ZP_KEEP_PRODUCTS;
    ZpActivationBytes bytes = zp_activation_measure_block(&block);
    g_assert_cmpint(bytes.kept_bytes - (attention_kept ? RANDOM_STATE_BYTES : 0), ==,
                    number(csv, r, "kept_bytes"));
}

/* What the head's product keeps beside: its input, and the loss itself. */
static void
check_loss(const ZpValidateCsv *csv, guint r)
{
    enum { HIDDEN = 48, SCALAR_BYTES = 4 };
    gboolean rebind = strcmp(zp_validate_csv_get(csv, r, "policy"), "rebind") == 0;
    ZpActivationLoss loss = {
        .kind = rebind ? ZP_LOSS_FLOAT_REBIND : ZP_LOSS_FLOAT,
        .compiled = TRUE,
        .without_norm = TRUE,
        .batch = number(csv, r, "batch"),
        .tokens = number(csv, r, "tokens"),
        .hidden = HIDDEN,
        .vocabulary = number(csv, r, "vocabulary"),
    };
    ZpActivationBytes bytes = zp_activation_measure_loss(&loss);
    g_assert_cmpint(bytes.kept_bytes - bytes.input_bytes - SCALAR_BYTES, ==,
                    number(csv, r, "kept_bytes"));
}

static void
test_recorded(void)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    g_file_get_contents(ZP_SOURCE_DIR "/tests/reference/activations_compiled.csv", &text, NULL,
                        &error);
    g_assert_no_error(error);
    const char *table = text;
    while (*table == '#')
        table = strchr(table, '\n') + 1;
    g_autoptr(ZpValidateCsv) csv = zp_validate_csv_parse(table, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(csv->records->len, ==, 28);
    for (guint r = 0; r < csv->records->len; r++) {
        if (strcmp(zp_validate_csv_get(csv, r, "what"), "loss") == 0)
            check_loss(csv, r);
        else
            check_block(csv, r);
    }
}

static ZpActivationBlock
wide(void)
{
    return (ZpActivationBlock){
        .batch = 2,
        .tokens = 64,
        .hidden = 128,
        .heads = 4,
        .kv_heads = 4,
        .head_size = 32,
        .ffn = 1024,
        .compiled = TRUE,
    };
}

/* The worst instant of a wide MLP's backward: gate and up, the gradient of their product, theirs,
 * and with checkpoints the product that was not kept; beside them what attention keeps, the stream
 * with its norm, and the gradient of the output. */
static void
test_peaks(void)
{
    ZpActivationBlock block = wide();
    gint64 t = 2 * 64, h = 128, f = 1024, nq = 4, scalar = 4;
    gint64 kept = 2 * (2 * h) + 4 + 8 * h + 4 * nq + 2 * (2 * h) + 4;
    ZpActivationBytes bytes = zp_activation_measure_block(&block);
    gint64 rest = t * (kept + 2 * h) + RANDOM_STATE_BYTES + scalar;
    g_assert_cmpint(bytes.backward_peak_bytes, ==, rest + t * 10 * f);
    block.policy = ZP_KEEP_INPUT;
    bytes = zp_activation_measure_block(&block);
    g_assert_cmpint(bytes.backward_peak_bytes, ==, rest + t * 12 * f);
    /* Forward, the product is written over the gate; input, branch of attention, its norm. */
    g_assert_cmpint(bytes.forward_peak_bytes, ==, t * (2 * h + 2 * h + 4 * f));
}

/* A compiled block keeps no more than an eager one with norms as kernels, under any policy. */
static void
test_below_eager(void)
{
    for (ZpBlockPolicy p = ZP_KEEP_ALL; p <= ZP_KEEP_EVERY_SECOND_PRODUCT; p++) {
        ZpActivationBlock block = wide();
        block.policy = p;
        ZpActivationBytes compiled = zp_activation_measure_block(&block);
        block.compiled = FALSE;
        block.norm = ZP_NORM_FUSED;
        ZpActivationBytes eager = zp_activation_measure_block(&block);
        g_assert_cmpint(compiled.kept_bytes, <=, eager.kept_bytes);
        g_assert_cmpint(compiled.forward_peak_bytes, <=, eager.forward_peak_bytes);
        g_assert_cmpint(compiled.backward_peak_bytes, <=, eager.backward_peak_bytes);
        g_assert_cmpint(compiled.parameter_gradient_bytes, ==, eager.parameter_gradient_bytes);
    }
}

static void
test_refused(void)
{
    ZpActivationBlock block = wide();
    block.attention = ZP_BLOCK_EAGER;
    g_assert_false(zp_activation_check(&block, NULL));
    block = wide();
    block.regime = ZP_REGIME_AMP;
    g_assert_false(zp_activation_check(&block, NULL));
    block = wide();
    block.family = ZP_BLOCK_GPT2;
    g_assert_false(zp_activation_check(&block, NULL));
}

/* The storages of a loss, one by one: their running sum has the peaks that the loss has. */
static void
test_loss_events(void)
{
    for (ZpLossKind kind = ZP_LOSS_RAW; kind <= ZP_LOSS_CHUNKS; kind++) {
        ZpActivationLoss loss = {.kind = kind,
                                 .compiled = kind % 2 == 0,
                                 .keep_logits = kind % 3 == 0,
                                 .without_norm = TRUE,
                                 .chunks = 4,
                                 .batch = 2,
                                 .tokens = 64,
                                 .hidden = 48,
                                 .vocabulary = 500};
        ZpActivationBytes bytes = zp_activation_measure_loss(&loss);
        g_autoptr(GArray) events = g_array_new(FALSE, FALSE, sizeof(ZpModelEvent));
        zp_activation_loss_events(&loss, FALSE, events);
        gint64 live = 0, peaks[2] = {0};
        for (guint i = 0; i < events->len; i++) {
            const ZpModelEvent *event = &g_array_index(events, ZpModelEvent, i);
            gint64 size = zp_model_bytes_at(&event->bytes, loss.batch, loss.tokens);
            live += event->frees ? -size : size;
            peaks[event->backward] = MAX(peaks[event->backward], live);
        }
        g_assert_cmpint(peaks[0], ==, bytes.forward_peak_bytes + bytes.input_bytes);
        g_assert_cmpint(peaks[1], ==, bytes.backward_peak_bytes);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/activation-compiled/recorded", test_recorded);
    g_test_add_func("/activation-compiled/peaks", test_peaks);
    g_test_add_func("/activation-compiled/below-eager", test_below_eager);
    g_test_add_func("/activation-compiled/refused", test_refused);
    g_test_add_func("/activation-compiled/loss-events", test_loss_events);
    return g_test_run();
}
