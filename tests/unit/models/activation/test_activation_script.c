/* A block's script, replayed, against its parts and against measuring. */
#include "models/activation/activation.h"

enum { SCALAR_BYTES = 4 };

typedef struct {
    const ZpActivationScript *script;
    gint64 batch, tokens;
    gint64 live;
    gboolean *lives, *born; /* by storage */
    guint next;             /* event */
} Replay;

static void
come_to_life(Replay *replay, gint32 storage, const ZpModelBytes *bytes)
{
    g_assert_false(replay->born[storage]);
    replay->born[storage] = replay->lives[storage] = TRUE;
    replay->live += zp_model_bytes_at(bytes, replay->batch, replay->tokens);
}

/* Replays a part of a pass; returns the most that lives. */
static gint64
run(Replay *replay, ZpActivationPass pass, int part)
{
    guint end = zp_activation_script_end(replay->script, pass, part);
    gint64 most = replay->live;
    g_assert_cmpuint(end, >=, replay->next);
    for (; replay->next < end; replay->next++) {
        const ZpActivationEvent *event =
            &g_array_index(replay->script->events, ZpActivationEvent, replay->next);
        g_assert_true(event->pass == pass || pass == ZP_ACTIVATION_RECOMPUTE);
        g_assert_true(event->part == part || event->pass != pass);
        if (event->frees) {
            g_assert_true(replay->lives[event->storage]);
            replay->lives[event->storage] = FALSE;
            replay->live -= zp_model_bytes_at(&event->bytes, replay->batch, replay->tokens);
        } else {
            come_to_life(replay, event->storage, &event->bytes);
        }
        most = MAX(most, replay->live);
    }
    return most;
}

typedef struct {
    gint64 kept, brought;
} Sums;

static gint64
at(const Replay *replay, const ZpModelBytes *bytes)
{
    return zp_model_bytes_at(bytes, replay->batch, replay->tokens);
}

/* Each part's peak is what ZpModelPolicyBytes makes of it. */
static gint64
replay_forward(Replay *replay, const ZpModelPolicyBytes **parts, Sums *sums)
{
    gint64 most = 0;
    come_to_life(replay, replay->script->input, &replay->script->input_bytes);
    for (int p = 0; p < replay->script->n_parts; p++) {
        gint64 own = run(replay, ZP_ACTIVATION_FORWARD, p);
        sums->kept += at(replay, &parts[p]->kept);
        gint64 told = zp_model_peak_at(&parts[p]->forward, replay->batch, replay->tokens);
        g_assert_cmpint(own, ==, sums->kept + told);
        most = MAX(most, own);
    }
    return most;
}

static gint64
replay_backward(Replay *replay, const ZpModelPolicyBytes **parts, Sums *sums)
{
    gint64 most = 0;
    come_to_life(replay, replay->script->output_gradient, &replay->script->output_gradient_bytes);
    for (int p = 0; p < replay->script->n_parts; p++) {
        gint64 own = run(replay, ZP_ACTIVATION_RECOMPUTE, p);
        sums->brought += at(replay, &parts[p]->recomputed);
        gint64 told = zp_model_peak_at(&parts[p]->recompute, replay->batch, replay->tokens);
        if (parts[p]->recompute.n_forms > 0)
            g_assert_cmpint(own, ==, sums->kept + sums->brought + told);
        most = MAX(most, own);
    }
    for (int p = replay->script->n_parts - 1; p >= 0; p--) {
        gint64 own = run(replay, ZP_ACTIVATION_BACKWARD, p);
        gint64 told = zp_model_peak_at(&parts[p]->backward, replay->batch, replay->tokens);
        g_assert_cmpint(own, ==, sums->kept + sums->brought + told);
        most = MAX(most, own);
        sums->kept -= at(replay, &parts[p]->kept);
        sums->brought -= at(replay, &parts[p]->recomputed);
    }
    return most;
}

static void
check(const ZpActivationBlock *block, const ZpActivationParts *parts)
{
    gboolean alone = block->batch == 1;
    ZpActivationBytes bytes = zp_activation_measure_block(block);
    g_autoptr(ZpActivationScript) script = zp_activation_script(block, block->policy, alone);
    const ZpModelPolicyBytes *own[ZP_ACTIVATION_PARTS] = {NULL};
    g_autofree gboolean *lives = g_new0(gboolean, (gsize)script->n_storages);
    g_autofree gboolean *born = g_new0(gboolean, (gsize)script->n_storages);
    Replay replay = {script, block->batch, block->tokens, 0, lives, born, 0};
    Sums sums = {0};
    for (int p = 0; p < ZP_ACTIVATION_PARTS; p++)
        own[p] = zp_model_policy_bytes(&parts->parts[p], 1, block->batch);
    gint64 forward = replay_forward(&replay, own, &sums);
    g_assert_cmpint(forward, ==, bytes.forward_peak_bytes + bytes.input_bytes);
    g_assert_true(lives[script->output]);
    g_assert_cmpint(replay.live, ==, bytes.kept_bytes + bytes.output_bytes);
    g_assert_true(lives[script->input] == bytes.input_kept);
    replay.live -= bytes.output_bytes; /* the next block's now */
    gint64 backward = replay_backward(&replay, own, &sums);
    g_assert_cmpint(backward, ==, bytes.backward_peak_bytes - SCALAR_BYTES);
    g_assert_cmpuint(replay.next, ==, script->events->len);
    g_assert_cmpint(replay.live, ==, bytes.input_bytes); /* its gradient */
    for (gint32 s = 0; s < script->n_storages; s++)
        g_assert_true(lives[s] == (s == script->output || s == script->input_gradient));
}

static void
test_replay(void)
{
    for (int family = ZP_BLOCK_LLAMA; family <= ZP_BLOCK_MOE; family++)
        for (int policy = ZP_KEEP_ALL; policy <= ZP_KEEP_EVERY_SECOND_PRODUCT; policy++)
            for (int bits = 0; bits < 24; bits++) {
                ZpActivationBlock block = {
                    .family = (ZpBlockFamily)family,
                    .policy = (ZpBlockPolicy)policy,
                    .norm = (ZpBlockNorm)(bits % 4),
                    .attention = bits & 1 ? ZP_BLOCK_EAGER : ZP_BLOCK_FLASH,
                    .regime = (ZpBlockRegime)(bits % 3),
                    .dropout = (bits & 4) != 0,
                    .tensor_parallel = bits & 8 ? 2 : 1,
                    .sequence_parallel = family != ZP_BLOCK_MOE,
                    .batch = 1 + bits % 3,
                    .tokens = 32,
                    .hidden = 96,
                    .heads = 6,
                    .kv_heads = family == ZP_BLOCK_GPT2 ? 6 : 2,
                    .head_size = 16,
                    .ffn = 352,
                    .expert_count = 4,
                    .chosen_experts = 2,
                };
                ZpActivationParts parts = zp_activation_parts(&block, NULL);
                check(&block, &parts);
            }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/activation-script/replay", test_replay);
    return g_test_run();
}
