/* zp_play_live_set(): plays once more with an observer, then replays the changes it saw. */
#include "sim/players/play.h"

#include "sim/players/player.h"

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
