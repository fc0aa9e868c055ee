#include "reports/store/recorder.h"

#include <string.h>

struct _ZpRecorder {
    GArray *spans;   /* ZpObserverSpan */
    GArray *changes; /* ZpObserverChange */
    GArray *pools;   /* ZpObserverPools */
    ZpObserver observer;
};

static void
on_span(const ZpTape *tape G_GNUC_UNUSED, const ZpObserverSpan *span, gpointer data)
{
    ZpRecorder *recorder = data;
    g_array_append_vals(recorder->spans, span, 1);
}

static void
on_change(const ZpTape *tape G_GNUC_UNUSED, const ZpObserverChange *change, gpointer data)
{
    ZpRecorder *recorder = data;
    g_array_append_vals(recorder->changes, change, 1);
}

static void
on_pools(const ZpTape *tape G_GNUC_UNUSED, const ZpObserverPools *pools, gpointer data)
{
    ZpRecorder *recorder = data;
    g_array_append_vals(recorder->pools, pools, 1);
}

ZpRecorder *
zp_recorder_new(void)
{
    ZpRecorder *recorder = g_new0(ZpRecorder, 1);
    recorder->spans = g_array_new(FALSE, FALSE, sizeof(ZpObserverSpan));
    recorder->changes = g_array_new(FALSE, FALSE, sizeof(ZpObserverChange));
    recorder->pools = g_array_new(FALSE, FALSE, sizeof(ZpObserverPools));
    recorder->observer =
        (ZpObserver){.span = on_span, .change = on_change, .data = recorder, .pools = on_pools};
    return recorder;
}

void
zp_recorder_free(ZpRecorder *recorder)
{
    if (recorder == NULL)
        return;
    g_array_unref(recorder->spans);
    g_array_unref(recorder->changes);
    g_array_unref(recorder->pools);
    g_free(recorder);
}

void
zp_recorder_clear(ZpRecorder *recorder)
{
    g_array_set_size(recorder->spans, 0);
    g_array_set_size(recorder->changes, 0);
    g_array_set_size(recorder->pools, 0);
}

const ZpObserver *
zp_recorder_observer(ZpRecorder *recorder)
{
    return &recorder->observer;
}

const ZpObserverSpan *
zp_recorder_spans(const ZpRecorder *recorder, gsize *n)
{
    *n = recorder->spans->len;
    return (const ZpObserverSpan *)(gpointer)recorder->spans->data;
}

const ZpObserverChange *
zp_recorder_changes(const ZpRecorder *recorder, gsize *n)
{
    *n = recorder->changes->len;
    return (const ZpObserverChange *)(gpointer)recorder->changes->data;
}

const ZpObserverPools *
zp_recorder_pools(const ZpRecorder *recorder, gsize *n)
{
    *n = recorder->pools->len;
    return (const ZpObserverPools *)(gpointer)recorder->pools->data;
}

/* By instruction: when all computation that was launched before it is done, on one rank. */
static void
find_done(const ZpRecorder *recorder, const ZpTape *tape, gint32 rank, ZpTime *done)
{
    memset(done, 0, ((gsize)tape->n_instrs + 1) * sizeof *done);
    for (guint i = 0; i < recorder->spans->len; i++) {
        const ZpObserverSpan *span = &g_array_index(recorder->spans, ZpObserverSpan, i);
        const ZpTapeWork *work = &tape->works[tape->instrs[span->instr].a];
        if (span->rank == rank && work->category == ZP_TAPE_COMPUTE)
            done[span->instr + 1] = span->end;
    }
    for (gint32 i = 1; i <= tape->n_instrs; i++)
        done[i] = MAX(done[i], done[i - 1]);
}

static gboolean
is_of_host(const ZpTape *tape, gint32 instr)
{
    return tape->instrs[instr].clock == ZP_TAPE_CLOCK_HOST;
}

void
zp_recorder_settle(ZpRecorder *recorder, const ZpTape *tape)
{
    g_autofree ZpTime *done = g_new(ZpTime, (gsize)tape->n_instrs + 1);
    find_done(recorder, tape, 0, done);
    for (guint i = 0; i < recorder->changes->len; i++) {
        ZpObserverChange *change = &g_array_index(recorder->changes, ZpObserverChange, i);
        if (is_of_host(tape, change->instr))
            change->time = MAX(change->time, done[change->instr]);
    }
    for (guint i = 0; i < recorder->pools->len; i++) {
        ZpObserverPools *pools = &g_array_index(recorder->pools, ZpObserverPools, i);
        if (is_of_host(tape, pools->instr))
            pools->time = MAX(pools->time, done[pools->instr]);
    }
}

/* A span begins or ends. */
typedef struct {
    ZpTime time;
    gint32 rank, instr;
    guint32 span;
    gboolean begins, computes;
} Edge;

static gint
compare_edges(gconstpointer pa, gconstpointer pb)
{
    const Edge *a = pa, *b = pb;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->time != b->time)
        return a->time < b->time ? -1 : 1;
    return (a->instr > b->instr) - (a->instr < b->instr);
}

static GArray *
collect_edges(const ZpRecorder *recorder, const ZpTape *tape)
{
    GArray *edges = g_array_sized_new(FALSE, FALSE, sizeof(Edge), recorder->spans->len * 2);
    for (guint i = 0; i < recorder->spans->len; i++) {
        const ZpObserverSpan *span = &g_array_index(recorder->spans, ZpObserverSpan, i);
        guint8 category = tape->works[tape->instrs[span->instr].a].category;
        if (category == ZP_TAPE_HOST_COMPUTE || span->end <= span->start)
            continue;
        Edge edge = {.time = span->start,
                     .rank = span->rank,
                     .instr = span->instr,
                     .span = i,
                     .begins = TRUE,
                     .computes = category == ZP_TAPE_COMPUTE};
        g_array_append_val(edges, edge);
        edge.time = span->end;
        edge.begins = FALSE;
        g_array_append_val(edges, edge);
    }
    g_array_sort(edges, compare_edges);
    return edges;
}

/* Few transfers run at once (at most one per stream): a short list in order of their start. */
static void
update_running(GArray *running, const Edge *edge)
{
    if (edge->begins) {
        g_array_append_val(running, edge->span);
        return;
    }
    for (guint i = 0; i < running->len; i++) {
        if (g_array_index(running, guint32, i) == edge->span) {
            g_array_remove_index(running, i);
            return;
        }
    }
}

ZpTime *
zp_recorder_exposed(const ZpRecorder *recorder, const ZpTape *tape)
{
    ZpTime *exposed = g_new0(ZpTime, recorder->spans->len + 1);
    g_autoptr(GArray) edges = collect_edges(recorder, tape);
    g_autoptr(GArray) running = g_array_new(FALSE, FALSE, sizeof(guint32));
    int computing = 0;
    for (guint i = 0; i < edges->len; i++) {
        const Edge *edge = &g_array_index(edges, Edge, i);
        if (edge->computes)
            computing += edge->begins ? 1 : -1;
        else
            update_running(running, edge);
        if (i + 1 == edges->len || running->len == 0 || computing > 0)
            continue;
        const Edge *next = &g_array_index(edges, Edge, i + 1);
        exposed[g_array_index(running, guint32, 0)] += next->time - edge->time;
    }
    return exposed;
}

gint32
zp_recorder_step_of(const ZpTape *tape, gint32 instr)
{
    gint32 step = tape->n_steps - 1;
    while (step >= 0 && tape->step_begin[step] > instr)
        step--;
    return step;
}
