/* Compiling and playing one stage-3 step of Llama-2-70B at module granularity. */
#include <stdio.h>

#include "tests/unit/fixtures/deepspeed_fixture.h"

int
main(void)
{
    ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_catalog_build("Llama-2-70B", &options, &error);
    if (model == NULL) {
        fprintf(stderr, "bench_deepspeed: %s\n", error->message);
        return 1;
    }
    DsFixture f;
    ds_fixture_init(&f, model, 64, 3);
    f.owned = model;
    f.job.training.sequence = 4096;
    f.settings.rank = 0;
    f.job.optimizer = &f.optimizer;
    f.job.deepspeed = &f.settings;
    enum { ROUNDS = 20 };
    gint64 compile_us = 0, play_us = 0;
    ZpPlayConfig config = {.n_ranks = 1, .launch_overhead_ps = 5000000};
    for (int i = 0; i < ROUNDS; i++) {
        gint64 start = g_get_monotonic_time();
        zp_tape_clear(f.tape);
        if (!zp_runtime_deepspeed.compile(&f.job, NULL, f.tape, &error))
            g_error("%s", error->message);
        gint64 compiled = g_get_monotonic_time();
        g_auto(ZpPlayResult) result = {0};
        if (!zp_player_play(f.tape, &config, &result, &error))
            g_error("%s", error->message);
        compile_us += compiled - start;
        play_us += g_get_monotonic_time() - compiled;
    }
    printf(
        "Llama-2-70B, stage 3, 64 ranks: %u modules, %d instructions, compile %.2f ms, play %.2f "
        "ms\n",
        model->modules->len, f.tape->n_instrs, (double)compile_us / ROUNDS / 1e3,
        (double)play_us / ROUNDS / 1e3);
    ds_fixture_clear(&f);
    return 0;
}
