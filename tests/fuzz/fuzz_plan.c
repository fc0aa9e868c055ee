/* Bytes become a plan for PyTorch's runtimes; what they write must be a sound tape that plays. */
#include "sim/players/player.h"
#include "tests/random_plan.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check(const ZpTape *tape)
{
    g_autoptr(GError) error = NULL;
    zp_tape_check(tape, FALSE, 0, &error);
    g_assert_no_error(error);
    ZpPlayConfig config = {.n_ranks = 1};
    g_auto(ZpPlayResult) result = {0};
    g_assert_true(zp_player_play(tape, &config, &result, &error));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    RandomBytes bytes = {data, data + size};
    g_autoptr(ZpFsdpPlan) plan = random_plan(&bytes);
    for (int runtime = 0; runtime < 4; runtime++) {
        g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
        if (runtime < 2)
            zp_ddp_compile(plan, NULL, runtime == 1, 3, tape);
        else if (runtime == 2)
            zp_fsdp1_compile(plan, NULL, 3, tape);
        else
            zp_fsdp2_compile(plan, NULL, 3, tape);
        check(tape);
    }
    return 0;
}
