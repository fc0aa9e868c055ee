#include "sim/players/play.h"

#include "sim/players/player.h"
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

typedef struct {
    GArray *order; /* gint32: ALLOC, FREE and RETAG in order of time */
} Recorder;

static void
record_change(const ZpTape *tape, const ZpObserverChange *change, gpointer data)
{
    GArray *order = ((Recorder *)data)->order;
    /* A RETAG comes twice in a row. */
    gboolean is_second = tape->instrs[change->instr].op == ZP_TAPE_RETAG && order->len > 0 &&
                         g_array_index(order, gint32, order->len - 1) == change->instr;
    if (!is_second)
        g_array_append_val(order, change->instr);
}

static int
order_live(gconstpointer a, gconstpointer b, gpointer data)
{
    const ZpTape *tape = data;
    const ZpPlayLive *x = a, *y = b;
    gint64 x_bytes = tape->buffers[x->buffer].bytes, y_bytes = tape->buffers[y->buffer].bytes;
    if (x_bytes != y_bytes)
        return x_bytes > y_bytes ? -1 : 1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* What is live after the first n changes of the space. */
static GArray *
replay(const ZpTape *tape, const GArray *order, ZpTapeSpace space, gint64 n)
{
    g_autofree gint16 *class_now = g_new(gint16, (gsize)tape->n_buffers + 1);
    for (gint32 b = 0; b < tape->n_buffers; b++)
        class_now[b] = ZP_TAPE_NONE;
    for (guint k = 0; k < order->len && n > 0; k++) {
        const ZpTapeInstr *instr = &tape->instrs[g_array_index(order, gint32, k)];
        const ZpTapeBuffer *buffer = &tape->buffers[instr->a];
        if (buffer->space != space)
            continue;
        if (instr->op == ZP_TAPE_ALLOC)
            class_now[instr->a] = buffer->class_id;
        else if (instr->op == ZP_TAPE_FREE)
            class_now[instr->a] = ZP_TAPE_NONE;
        else
            class_now[instr->a] = instr->b & 0xff;
        n--;
    }
    GArray *live = g_array_new(FALSE, FALSE, sizeof(ZpPlayLive));
    for (gint32 b = 0; b < tape->n_buffers; b++) {
        ZpPlayLive entry = {.buffer = b, .class_id = (guint8)class_now[b]};
        if (class_now[b] != ZP_TAPE_NONE)
            g_array_append_val(live, entry);
    }
    g_array_sort_with_data(live, order_live, (gpointer)tape);
    return live;
}

GArray *
zp_play_live_set(const ZpTape *tape, const ZpPlayConfig *config, ZpTapeSpace space)
{
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(gint32));
    Recorder recorder = {order};
    ZpObserver observer = {.change = record_change, .data = &recorder, .rank = 0};
    ZpPlayConfig copy = *config;
    copy.observer = &observer;
    copy.keep_times = FALSE;
    copy.cancelled = NULL;
    g_auto(ZpPlayResult) result = {0};
    if (!zp_player_play(tape, &copy, &result, NULL))
        return NULL;
    return replay(tape, order, space, result.ranks[0].memory[space].peak_change);
}
