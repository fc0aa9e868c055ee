#include "fsdp_events.h"

#include <string.h>

#include "models/words/vocabulary.h"

static const char *
buffer_name(ZpClass class_id, ZpRole role)
{
    static const char *const names[ZP_N_ROLES] = {
        [ZP_ROLE_SHARD] = "params",
        [ZP_ROLE_CAST] = "cast",
        [ZP_ROLE_ALL_GATHER] = "all_gather",
        [ZP_ROLE_UNSHARDED] = "unsharded",
        [ZP_ROLE_POST_FORWARD_SHARD] = "post_forward_shard",
        [ZP_ROLE_GRADIENT] = "grad",
        [ZP_ROLE_GRADIENT_TEMPORARY] = "grad_temp",
        [ZP_ROLE_GRADIENT_ACCUMULATOR] = "grad_accum",
        [ZP_ROLE_REDUCE_INPUT] = "rs_input",
        [ZP_ROLE_REDUCE_OUTPUT] = "rs_output",
        [ZP_ROLE_ALL_REDUCE_INPUT] = "ar_input",
        [ZP_ROLE_SHARDED_GRADIENT] = "sharded_grad",
        [ZP_ROLE_OPTIMIZER_STATE] = "optimizer_state",
        [ZP_ROLE_BUCKET] = "bucket",
    };
    if (class_id == ZP_CLASS_OPTIMIZER_TEMPORARY)
        return "optimizer_temp";
    g_assert(names[role] != NULL);
    return names[role];
}

/* Buffers that the recordings do not attribute to a unit. */
static gboolean
has_unit(const char *buffer)
{
    return strcmp(buffer, "grad_temp") != 0 && strcmp(buffer, "optimizer_temp") != 0 &&
           strcmp(buffer, "optimizer_state") != 0;
}

static gboolean
is_ignored(const char *buffer)
{
    return strcmp(buffer, "activation") == 0 || strcmp(buffer, "host_scalar") == 0 ||
           strcmp(buffer, "ddp_index") == 0;
}

static void
composition_free(gpointer data)
{
    FsdpComposition *composition = data;
    g_hash_table_unref(composition->by_buffer);
    g_free(composition);
}

static FsdpHistory *
history_new(void)
{
    FsdpHistory *history = g_new0(FsdpHistory, 1);
    history->events = g_array_new(FALSE, TRUE, sizeof(FsdpEvent));
    history->start = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    history->peaks = g_array_new(FALSE, TRUE, sizeof(FsdpPeak));
    history->worst = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, composition_free);
    return history;
}

void
fsdp_history_free(FsdpHistory *history)
{
    if (history == NULL)
        return;
    g_array_unref(history->events);
    g_hash_table_unref(history->start);
    g_array_unref(history->peaks);
    g_hash_table_unref(history->worst);
    g_free(history);
}

FsdpPeak *
fsdp_history_find_peak(const FsdpHistory *history, const char *phase, gint32 micro_batch)
{
    for (guint i = 0; i < history->peaks->len; i++) {
        FsdpPeak *peak = &g_array_index(history->peaks, FsdpPeak, i);
        if (peak->micro_batch == micro_batch && strcmp(peak->phase, phase) == 0)
            return peak;
    }
    return NULL;
}

/* The phase an event belongs to, begun when it is the first. */
static FsdpPeak *
enter_phase(FsdpHistory *history, const char *phase, gint32 micro_batch, gint64 entry_bytes)
{
    FsdpPeak *peak = fsdp_history_find_peak(history, phase, micro_batch);
    if (peak)
        return peak;
    FsdpPeak fresh = {
        .phase = phase,
        .micro_batch = micro_batch,
        .entry_bytes = entry_bytes,
        .after_bytes = -1,
    };
    g_array_append_val(history->peaks, fresh);
    return &g_array_index(history->peaks, FsdpPeak, history->peaks->len - 1);
}

static void
raise_peak(FsdpHistory *history, const char *phase, gint32 micro_batch, gint64 before, gint64 after)
{
    FsdpPeak *peak = enter_phase(history, phase, micro_batch, before);
    peak->after_bytes = MAX(peak->after_bytes, after);
    history->peak_bytes = MAX(history->peak_bytes, MAX(before, after));
}

static gboolean
merges(const FsdpEvent *a, const FsdpEvent *b)
{
    return !a->collective && !b->collective && a->sign == b->sign && a->phase == b->phase &&
           a->micro_batch == b->micro_batch && a->kind == b->kind && a->unit == b->unit &&
           a->from == b->from;
}

static void
push(FsdpHistory *history, FsdpEvent event)
{
    FsdpEvent *last = history->events->len
                          ? &g_array_index(history->events, FsdpEvent, history->events->len - 1)
                          : NULL;
    if (last && merges(last, &event)) {
        last->bytes += event.bytes;
        last->after_bytes = event.after_bytes;
        return;
    }
    g_array_append_val(history->events, event);
}

/* Names as the recordings write them. */
static const char *
phase_name(ZpPhase phase)
{
    return phase == ZP_PHASE_ZERO_GRAD ? g_intern_static_string("zero_grad")
                                       : g_intern_string(zp_vocabulary_phase_name(phase));
}

static const char *
kind_name(ZpKind kind)
{
    g_autofree char *name = g_strdelimit(g_strdup(zp_vocabulary_kind_name(kind)), "-", '_');
    return g_intern_string(name);
}

static const char *
unit_name(const ZpTape *tape, gint32 unit)
{
    return unit == ZP_TAPE_NONE ? g_intern_static_string("")
                                : g_intern_string(g_ptr_array_index(tape->unit_names, unit));
}

/* DDP's one group holds the replicas. */
static const char *
group_name(ZpKind kind, gint8 group)
{
    static const char *const names[] = {"shard", "replicate"};
    if (group < 2)
        return g_intern_string(names[group]);
    return g_intern_string(kind == ZP_KIND_ALL_GATHER ? "post_forward_shard" : "replicate");
}

typedef struct {
    const ZpTape *tape;
    FsdpHistory *history;
    const char **names; /* by buffer: what it is now; NULL: not live */
    GHashTable *now;    /* by name: bytes */
    gint64 bytes;
    gint32 n_gradients; /* of this micro-batch, since the last collective */
    gint32 micro_batch;
    gboolean recording;
} Replay;

static void
add_bytes(GHashTable *sums, const char *name, gint64 bytes)
{
    gint64 *sum = g_hash_table_lookup(sums, name);
    if (sum == NULL) {
        sum = g_new0(gint64, 1);
        g_hash_table_insert(sums, (gpointer)g_intern_string(name), sum);
    }
    *sum += bytes;
}

static GHashTable *
new_sums(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
}

/* The first instant that reaches the most. */
static void
consider(Replay *replay, const char *key)
{
    FsdpComposition *worst = g_hash_table_lookup(replay->history->worst, key);
    if (worst != NULL && worst->bytes >= replay->bytes)
        return;
    FsdpComposition *fresh = g_new0(FsdpComposition, 1);
    fresh->bytes = replay->bytes;
    fresh->by_buffer = new_sums();
    GHashTableIter iter;
    gpointer name, sum;
    g_hash_table_iter_init(&iter, replay->now);
    while (g_hash_table_iter_next(&iter, &name, &sum))
        if (*(const gint64 *)sum != 0)
            add_bytes(fresh->by_buffer, name, *(const gint64 *)sum);
    g_hash_table_replace(replay->history->worst, (gpointer)g_intern_string(key), fresh);
}

static void
replay_change(Replay *replay, const ZpTapeInstr *instr)
{
    const ZpTapeBuffer *buffer = &replay->tape->buffers[instr->a];
    const char *old = replay->names[instr->a];
    const char *name = old;
    int sign = 0;
    if (instr->op == ZP_TAPE_ALLOC) {
        name = g_intern_string(buffer_name(buffer->class_id, buffer->role));
        sign = 1;
    } else if (instr->op == ZP_TAPE_FREE) {
        sign = -1;
    } else {
        name = g_intern_string(buffer_name((ZpClass)(instr->b & 0xff), (ZpRole)(instr->b >> 8)));
    }
    replay->names[instr->a] = instr->op == ZP_TAPE_FREE ? NULL : name;
    gint64 before = replay->bytes;
    replay->bytes += sign * buffer->bytes;
    if (old != NULL)
        add_bytes(replay->now, old, -buffer->bytes);
    if (sign >= 0)
        add_bytes(replay->now, name, buffer->bytes);
    if (!replay->recording)
        return;
    if (instr->micro_batch != replay->micro_batch)
        replay->n_gradients = 0;
    replay->micro_batch = instr->micro_batch;
    replay->n_gradients += instr->op == ZP_TAPE_ALLOC && buffer->class_id == ZP_CLASS_GRADIENT;
    consider(replay, phase_name(instr->phase));
    consider(replay, "all");
    raise_peak(replay->history, phase_name(instr->phase), instr->micro_batch, before,
               replay->bytes);
    FsdpEvent event = {
        .phase = phase_name(instr->phase),
        .micro_batch = instr->micro_batch,
        .kind = name,
        .unit = has_unit(name) ? unit_name(replay->tape, buffer->unit) : g_intern_string(""),
        .from = g_intern_string(sign == 0 ? old : ""),
        .group = "",
        .bytes = sign == 0 ? buffer->bytes : sign * buffer->bytes,
        .after_bytes = replay->bytes,
        .sign = sign,
    };
    push(replay->history, event);
}

static void
replay_launch(Replay *replay, const ZpTapeInstr *instr)
{
    const ZpTapeWork *work = &replay->tape->works[instr->a];
    if (!replay->recording || !zp_vocabulary_kind_is_collective((ZpKind)work->kind))
        return;
    FsdpEvent event = {
        .collective = TRUE,
        .phase = phase_name(instr->phase),
        .micro_batch = instr->micro_batch,
        .kind = kind_name((ZpKind)work->kind),
        .unit = unit_name(replay->tape, instr->unit),
        .from = "",
        .group = group_name((ZpKind)work->kind, work->group),
        .group_size = replay->tape->groups[work->group].size,
        .bytes = work->bytes,
        .tensors = replay->n_gradients,
    };
    replay->n_gradients = 0;
    push(replay->history, event);
}

FsdpHistory *
fsdp_history_of_tape(const ZpTape *tape, gint32 step)
{
    FsdpHistory *history = history_new();
    Replay replay = {
        .tape = tape,
        .history = history,
        .names = g_new0(const char *, (gsize)tape->n_buffers + 1),
        .now = new_sums(),
    };
    gint32 begin = tape->step_begin[step];
    gint32 end = step + 1 < tape->n_steps ? tape->step_begin[step + 1] : tape->n_instrs;
    for (gint32 i = 0; i < end; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (i == begin) {
            replay.recording = TRUE;
            history->start_bytes = history->peak_bytes = replay.bytes;
            consider(&replay, "all");
            for (gint32 b = 0; b < tape->n_buffers; b++) {
                if (replay.names[b])
                    add_bytes(history->start, replay.names[b], tape->buffers[b].bytes);
            }
        }
        if (replay.recording) {
            enter_phase(history, phase_name(instr->phase), instr->micro_batch, replay.bytes);
            if (instr->op != ZP_TAPE_FREE)
                consider(&replay, phase_name(instr->phase));
        }
        if (instr->op == ZP_TAPE_ALLOC || instr->op == ZP_TAPE_FREE || instr->op == ZP_TAPE_RETAG)
            replay_change(&replay, instr);
        else if (instr->op == ZP_TAPE_LAUNCH)
            replay_launch(&replay, instr);
    }
    history->end_bytes = replay.bytes;
    g_hash_table_unref(replay.now);
    g_free(replay.names);
    return history;
}

static const char *
text(JsonObject *object, const char *key)
{
    if (!json_object_has_member(object, key) || json_object_get_null_member(object, key))
        return g_intern_static_string("");
    return g_intern_string(json_object_get_string_member(object, key));
}

static void
push_collective(FsdpHistory *history, JsonObject *object)
{
    FsdpEvent event = {
        .collective = TRUE,
        .phase = text(object, "phase"),
        .micro_batch = (gint32)json_object_get_int_member(object, "mb"),
        .kind = text(object, "kind"),
        .unit = text(object, "unit"),
        .from = "",
        .group = text(object, "group"),
        .group_size = (gint32)json_object_get_int_member(object, "group_size"),
        .bytes = json_object_get_int_member(object, "bytes"),
        .tensors = (gint32)json_object_get_int_member_with_default(object, "tensors", 0),
    };
    push(history, event);
}

static void
push_recorded(FsdpHistory *history, JsonObject *object, gint64 before)
{
    const char *kind = text(object, "buffer");
    gint64 delta = json_object_get_int_member(object, "delta_bytes");
    const char *from = text(object, "from_buffer");
    FsdpEvent event = {
        .phase = text(object, "phase"),
        .micro_batch = (gint32)json_object_get_int_member(object, "mb"),
        .kind = kind,
        .unit = has_unit(kind) ? text(object, "unit") : g_intern_string(""),
        .from = from,
        .group = "",
        .bytes = *from ? json_object_get_int_member(object, "moved_bytes") : delta,
        .after_bytes = json_object_get_int_member(object, "model_bytes"),
        .sign = (delta > 0) - (delta < 0),
    };
    gboolean first = fsdp_history_find_peak(history, event.phase, event.micro_batch) == NULL;
    raise_peak(history, event.phase, event.micro_batch, before, event.after_bytes);
    if (first)
        fsdp_history_find_peak(history, event.phase, event.micro_batch)->begins_apart =
            is_ignored(kind);
    if (!is_ignored(kind))
        push(history, event);
}

FsdpHistory *
fsdp_history_of_case(JsonArray *allocated, JsonArray *collectives, gint64 start_bytes)
{
    FsdpHistory *history = history_new();
    history->start_bytes = history->peak_bytes = start_bytes;
    guint n_collectives = collectives ? json_array_get_length(collectives) : 0;
    guint next = 0;
    gint64 before = start_bytes;
    for (guint i = 0; i <= json_array_get_length(allocated); i++) {
        while (next < n_collectives) {
            JsonObject *object = json_array_get_object_element(collectives, next);
            if (json_object_get_int_member(object, "after_event") != i)
                break;
            push_collective(history, object);
            next++;
        }
        if (i == json_array_get_length(allocated))
            break;
        JsonObject *object = json_array_get_object_element(allocated, i);
        push_recorded(history, object, before);
        before = json_object_get_int_member(object, "model_bytes");
    }
    return history;
}
