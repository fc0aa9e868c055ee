#include "sim/players/play.h"

#include "sim/players/player_state_internal.h"

G_DEFINE_QUARK(zp_play_error_quark, zp_play_error)

ZpPlayScratch *
zp_play_scratch_new(void)
{
    ZpPlayScratch *scratch = g_new0(ZpPlayScratch, 1);
    zp_queue_init(&scratch->queue);
    scratch->spans = g_array_new(FALSE, FALSE, sizeof(ZpPlayerSpan));
    scratch->intervals = g_array_new(FALSE, FALSE, sizeof(ZpPlayerInterval));
    scratch->observed = g_array_new(FALSE, FALSE, sizeof(ZpObserverChange));
    return scratch;
}

void
zp_play_scratch_free(ZpPlayScratch *scratch)
{
    if (scratch == NULL)
        return;
    for (int a = 0; a < ZP_PLAYER_N_ARENAS; a++)
        g_free(scratch->arenas[a].data);
    zp_queue_clear(&scratch->queue);
    g_array_unref(scratch->spans);
    g_array_unref(scratch->intervals);
    g_array_unref(scratch->observed);
    g_free(scratch);
}

gpointer
zp_play_scratch_get(ZpPlayScratch *scratch, ZpPlayerArenaId id, gsize n, gsize size)
{
    ZpPlayerArena *arena = &scratch->arenas[id];
    if (arena->data == NULL || n * size > arena->bytes) {
        g_free(arena->data);
        /* Half as much again only where it is cheap: big plays state what they need. */
        arena->bytes = n * size + CLAMP(n * size / 2, 64u, 1u << 20);
        arena->data = g_malloc(arena->bytes);
    }
    return arena->data;
}

void
zp_play_result_clear(ZpPlayResult *result)
{
    g_free(result->ranks);
    g_free(result->step_end);
    g_free(result->step_exposed);
    g_free(result->times);
    *result = (ZpPlayResult){0};
}

void
zp_play_result_prepare(ZpPlayResult *result, const ZpTape *tape, gint32 n_ranks,
                       gboolean keep_times)
{
    if (n_ranks > result->cap_ranks) {
        g_free(result->ranks);
        result->ranks = g_new(ZpPlayRank, (gsize)n_ranks);
        result->cap_ranks = n_ranks;
    }
    if (tape->n_steps > result->cap_steps) {
        g_free(result->step_end);
        g_free(result->step_exposed);
        result->step_end = g_new(ZpTime, (gsize)tape->n_steps);
        result->step_exposed = g_new(ZpTime, (gsize)tape->n_steps);
        result->cap_steps = tape->n_steps;
    }
    if (keep_times && tape->n_instrs > result->cap_instrs) {
        g_free(result->times);
        result->times = g_new(ZpTime, 2 * (gsize)tape->n_instrs);
        result->cap_instrs = tape->n_instrs;
    }
    memset(result->ranks, 0, (gsize)n_ranks * sizeof *result->ranks);
    for (gint32 k = 0; k < tape->n_steps; k++)
        result->step_end[k] = result->step_exposed[k] = 0;
    result->op_start = result->op_end = NULL;
    if (keep_times && result->times) {
        memset(result->times, 0, 2 * (gsize)tape->n_instrs * sizeof *result->times);
        result->op_start = result->times;
        result->op_end = result->times + tape->n_instrs;
    }
    result->n_ranks = n_ranks;
    result->n_steps = tape->n_steps;
    result->end = 0;
    result->n_events = 0;
    result->cancelled = FALSE;
}

gboolean
zp_play_check_config(const ZpTape *tape, const ZpPlayConfig *config, GError **error)
{
    const char *what = NULL;
    if (config->n_ranks < 1)
        what = "n_ranks must be positive";
    if (config->launch_overhead_ps < 0 || config->instr_overhead_ps < 0)
        what = "host overheads must not be negative";
    if (config->run_ahead < 0 || config->jitter_ppm < 0)
        what = "run_ahead and jitter_ppm must not be negative";
    for (int i = 0; i < ZP_TAPE_N_CATEGORIES * ZP_TAPE_N_CATEGORIES; i++) {
        gint32 ppm = config->interference_ppm[i / ZP_TAPE_N_CATEGORIES][i % ZP_TAPE_N_CATEGORIES];
        if (ppm < 0 || ppm > 1000000)
            what = "interference_ppm must be within 0 and 1000000";
    }
    for (gint32 r = 0; config->speed_ppm && r < config->n_ranks; r++)
        if (config->speed_ppm[r] < 0)
            what = "speed_ppm must not be negative";
    if (what) {
        g_set_error_literal(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_CONFIG, what);
        return FALSE;
    }
    for (int g = 0; config->n_ranks > 1 && g < tape->n_groups; g++) {
        gint64 span = (gint64)tape->groups[g].size * tape->groups[g].stride;
        if (span <= 0 || config->n_ranks % span != 0) {
            g_set_error(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_GROUP,
                        "group %d: size %d times stride %d does not divide %d ranks", g,
                        tape->groups[g].size, tape->groups[g].stride, config->n_ranks);
            return FALSE;
        }
    }
    return TRUE;
}
