/* Memory and observers.  Both follow from the times that the play found: changes of one rank are
 * merged in order of time, ties in tape order. */
#include "sim/players/player_state_internal.h"

typedef struct {
    ZpPlayer *player;
    gint32 rank;
    ZpMemory *memory; /* by space */
    gint8 *class_now; /* buffer: its class while live, or ZP_TAPE_NONE */
    gboolean observed;
} Count;

static void
observe_change(Count *count, gint32 i, ZpTime time, guint8 class_id, guint8 space, gint64 bytes)
{
    const ZpMemory *memory = &count->memory[space];
    gboolean is_retag = count->player->tape->instrs[i].op == ZP_TAPE_RETAG;
    ZpObserverChange change = {
        .time = time,
        .delta_bytes = is_retag ? 0 : bytes,
        .total_bytes = memory->total_bytes,
        .class_bytes = memory->bytes[class_id],
        .instr = i,
        .rank = count->rank,
        .class_id = class_id,
        .space = space,
    };
    g_array_append_val(count->player->scratch->observed, change);
}

static gboolean
apply(Count *count, gint32 i, ZpTime time, GError **error)
{
    const ZpTapeInstr *instr = &count->player->tape->instrs[i];
    const ZpTapeBuffer *buffer = &count->player->tape->buffers[instr->a];
    ZpMemory *memory = &count->memory[buffer->space];
    gint8 *class_now = &count->class_now[instr->a];
    if ((instr->op == ZP_TAPE_ALLOC) != (*class_now == ZP_TAPE_NONE)) {
        g_set_error(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_RACE,
                    "instruction %d: on the clock of rank %d buffer %d is %s", i, count->rank,
                    instr->a, instr->op == ZP_TAPE_ALLOC ? "live already" : "not live");
        return FALSE;
    }
    if (instr->op == ZP_TAPE_RETAG) {
        guint8 from = (guint8)*class_now, to = (guint8)(instr->b & 0xff);
        zp_memory_retag(memory, from, to, buffer->bytes, time, i);
        *class_now = (gint8)to;
        if (count->observed) {
            observe_change(count, i, time, from, buffer->space, 0);
            observe_change(count, i, time, to, buffer->space, 0);
        }
        return TRUE;
    }
    gboolean is_alloc = instr->op == ZP_TAPE_ALLOC;
    guint8 class_id = is_alloc ? buffer->class_id : (guint8)*class_now;
    gint64 bytes = is_alloc ? buffer->bytes : -buffer->bytes;
    zp_memory_change(memory, class_id, bytes, time, i);
    *class_now = is_alloc ? (gint8)class_id : ZP_TAPE_NONE;
    if (count->observed)
        observe_change(count, i, time, class_id, buffer->space, bytes);
    return TRUE;
}

/* Where the merge stands in the changes of the host or of one stream. */
typedef struct {
    const ZpPlayerChange *next, *end;
    ZpTime time; /* of next */
} Source;

static inline void
look(const ZpPlayer *player, const gint64 *known, Source *source)
{
    const ZpPlayerChange *change = source->next;
    if (change == source->end)
        source->time = ZP_TIME_MAX;
    else if (change->device == ZP_TAPE_NONE)
        source->time = change->cost_ps + known[player->shifts_at + change->block];
    else
        source->time = known[player->changes_at + change->device];
}

static gboolean
count_rank(Count *count, GError **error)
{
    const ZpPlayer *player = count->player;
    const ZpPlayerProgram *program = &player->program;
    const gint64 *known = zp_player_times(player, count->rank);
    Source sources[ZP_PLAYER_MAX_SOURCES];
    int n = 0;
    for (int k = 0; k < ZP_PLAYER_MAX_SOURCES; k++) {
        sources[n] = (Source){.next = program->changes + program->source_begin[k],
                              .end = program->changes + program->source_begin[k + 1]};
        if (sources[n].next < sources[n].end)
            look(player, known, &sources[n++]);
    }
    while (n > 0) {
        Source *least = &sources[0];
        for (int k = 1; k < n; k++)
            if (sources[k].time < least->time ||
                (sources[k].time == least->time && sources[k].next->instr < least->next->instr))
                least = &sources[k];
        if (!apply(count, least->next->instr, least->time, error))
            return FALSE;
        if (++least->next < least->end)
            look(player, known, least);
        else
            *least = sources[--n];
    }
    return TRUE;
}

static ZpTime
host_time_of(const ZpPlayer *player, gint32 r, gint32 instr)
{
    gint32 low = 0, high = player->program.n_changes - 1;
    while (low < high) {
        gint32 middle = low + (high - low) / 2;
        if (player->program.changes[middle].instr < instr)
            low = middle + 1;
        else
            high = middle;
    }
    const ZpPlayerChange *change = &player->program.changes[low];
    return zp_player_host_time(player, r, change->cost_ps, change->block);
}

/* On host clocks alone all ranks go through the same changes, at times of their own. */
static void
copy_rank_0(ZpPlayer *player, gint32 r)
{
    for (int space = 0; space < ZP_TAPE_N_SPACES; space++) {
        ZpMemory *memory = &player->result->ranks[r].memory[space];
        *memory = player->result->ranks[0].memory[space];
        if (memory->peak_instr != ZP_TAPE_NONE)
            memory->peak_time = host_time_of(player, r, memory->peak_instr);
        if (memory->first_over_instr != ZP_TAPE_NONE)
            memory->first_over_time = host_time_of(player, r, memory->first_over_instr);
    }
}

gboolean
zp_player_count_memory(ZpPlayer *player, GError **error)
{
    gsize n_buffers = (gsize)player->tape->n_buffers;
    gint8 *class_now = zp_play_scratch_get(player->scratch, ZP_PLAYER_CLASSES, n_buffers, 1);
    for (gint32 r = 0; r < player->config->n_ranks; r++) {
        Count count = {
            .player = player,
            .rank = r,
            .memory = player->result->ranks[r].memory,
            .class_now = class_now,
            .observed = zp_player_observes(player, r) && player->config->observer->change,
        };
        if (r > 0 && player->program.n_device_changes == 0 && !count.observed) {
            copy_rank_0(player, r);
            continue;
        }
        memset(class_now, ZP_TAPE_NONE, n_buffers);
        for (int space = 0; space < ZP_TAPE_N_SPACES; space++)
            zp_memory_init(&count.memory[space], player->config->capacity_bytes[space]);
        if (!count_rank(&count, error))
            return FALSE;
    }
    return TRUE;
}

static int
order_spans(gconstpointer a, gconstpointer b)
{
    const ZpPlayerSpan *x = a, *y = b;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    if (x->instr != y->instr)
        return x->instr < y->instr ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static int
order_changes(gconstpointer a, gconstpointer b)
{
    const ZpObserverChange *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->instr != y->instr)
        return x->instr < y->instr ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static gboolean
is_before(const ZpPlayerSpan *span, const ZpObserverChange *change)
{
    return span->end < change->time || (span->end == change->time && span->instr < change->instr);
}

void
zp_player_observe(ZpPlayer *player)
{
    const ZpObserver *observer = player->config->observer;
    GArray *spans = player->scratch->spans, *changes = player->scratch->observed;
    /* Works that took no time were noted ahead of the present. */
    if (spans->len > 1)
        g_array_sort(spans, order_spans);
    if (observer->rank == ZP_TAPE_NONE && changes->len > 1)
        g_array_sort(changes, order_changes); /* stable: the two halves of a RETAG stay in order */
    guint s = 0, c = 0;
    while (s < spans->len || c < changes->len) {
        const ZpPlayerSpan *span = s < spans->len ? &g_array_index(spans, ZpPlayerSpan, s) : NULL;
        const ZpObserverChange *change =
            c < changes->len ? &g_array_index(changes, ZpObserverChange, c) : NULL;
        if (span && (!change || is_before(span, change))) {
            ZpObserverSpan seen = {
                .start = span->start, .end = span->end, .instr = span->instr, .rank = span->rank};
            observer->span(player->tape, &seen, observer->data);
            s++;
        } else {
            observer->change(player->tape, change, observer->data);
            c++;
        }
    }
}
