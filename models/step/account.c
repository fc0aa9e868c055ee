#include "models/step/account.h"

const char *
zp_step_part_name(ZpStepPartKind part)
{
    static const char *const names[] = {"compute", "slowed", "waiting", "host", "idle"};
    return names[part];
}

/* A work that begins or ends within the step. */
typedef struct {
    ZpTime time;
    gint32 work; /* index in works */
    gboolean begins;
} Edge;

typedef struct {
    const ZpTapeWork *work;
    ZpTime time_ps, alone_ps; /* that was given to it; that it takes undisturbed */
} Share;

typedef struct {
    GArray *edges, *works, *active; /* Edge, Share, gint32: indices in works */
    ZpTime idle_ps;
} Account;

static int
by_time(gconstpointer a, gconstpointer b)
{
    const Edge *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return x->work != y->work ? (x->work < y->work ? -1 : 1) : y->begins - x->begins;
}

static void
collect(Account *account, const ZpTape *tape, const ZpPlayResult *result, ZpTime from, ZpTime to)
{
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        ZpTime start = result->op_start[i], end = result->op_end[i];
        if (tape->instrs[i].op != ZP_TAPE_LAUNCH || end <= from || start >= to || end <= start)
            continue;
        const ZpTapeWork *work = &tape->works[tape->instrs[i].a];
        gint32 index = (gint32)account->works->len;
        Share share = {.work = work, .alone_ps = zp_time_add(work->fixed_ps, work->solo_ps)};
        Edge edges[] = {{MAX(start, from), index, TRUE}, {MIN(end, to), index, FALSE}};
        g_array_append_val(account->works, share);
        g_array_append_vals(account->edges, edges, 2);
    }
    g_array_sort(account->edges, by_time);
}

/* Whose an instant is, of works of several categories that run then: the least. */
enum { COMPUTES, COMMUNICATES, COPIES, ON_HOST };

static int
order_of(const ZpTapeWork *work)
{
    static const int orders[ZP_TAPE_N_CATEGORIES] = {
        [ZP_TAPE_COMPUTE] = COMPUTES,
        [ZP_TAPE_COMMUNICATION] = COMMUNICATES,
        [ZP_TAPE_COPY] = COPIES,
        [ZP_TAPE_HOST_COMPUTE] = ON_HOST,
    };
    return orders[work->category];
}

/* Who an interval belongs to among the works that run in it; NULL: nobody. */
static Share *
owner(const Account *account)
{
    Share *best = NULL;
    for (guint k = 0; k < account->active->len; k++) {
        gint32 index = g_array_index(account->active, gint32, k);
        Share *share = &g_array_index(account->works, Share, index);
        if (best == NULL || order_of(share->work) < order_of(best->work) ||
            (order_of(share->work) == order_of(best->work) && share->work->kind < best->work->kind))
            best = share;
    }
    return best;
}

static void
divide(Account *account, ZpTime from, ZpTime to)
{
    ZpTime now = from;
    for (guint e = 0; e <= account->edges->len; e++) {
        const Edge *edge = e < account->edges->len ? &g_array_index(account->edges, Edge, e) : NULL;
        ZpTime next = edge != NULL ? edge->time : to;
        Share *share = owner(account);
        if (share != NULL)
            share->time_ps += next - now;
        else
            account->idle_ps += next - now;
        now = next;
        if (edge == NULL)
            return;
        if (edge->begins) {
            g_array_append_val(account->active, edge->work);
            continue;
        }
        for (guint k = 0; k < account->active->len; k++)
            if (g_array_index(account->active, gint32, k) == edge->work) {
                g_array_remove_index_fast(account->active, k);
                break;
            }
    }
}

static void
add(GArray *parts, ZpStepPartKind what, ZpKind kind, ZpTime time_ps)
{
    if (time_ps == 0)
        return;
    guint at = 0;
    for (; at < parts->len; at++) {
        ZpStepPart *part = &g_array_index(parts, ZpStepPart, at);
        if (part->part == what && part->kind == kind) {
            part->time_ps += time_ps;
            return;
        }
        if (part->part > what || (part->part == what && part->kind > kind))
            break;
    }
    ZpStepPart fresh = {what, kind, time_ps};
    g_array_insert_val(parts, at, fresh);
}

static GArray *
sum(const Account *account)
{
    GArray *parts = g_array_new(FALSE, FALSE, sizeof(ZpStepPart));
    for (guint w = 0; w < account->works->len; w++) {
        const Share *share = &g_array_index(account->works, Share, w);
        ZpKind kind = (ZpKind)share->work->kind;
        ZpTime alone_ps = MIN(share->time_ps, share->alone_ps);
        switch (order_of(share->work)) {
        case COMPUTES:
            add(parts, ZP_STEP_PART_COMPUTE, kind, alone_ps);
            add(parts, ZP_STEP_PART_SLOWED, (ZpKind)0, share->time_ps - alone_ps);
            break;
        case ON_HOST:
            add(parts, ZP_STEP_PART_HOST, kind, share->time_ps);
            break;
        default:
            add(parts, ZP_STEP_PART_WAITING, kind, share->time_ps);
        }
    }
    add(parts, ZP_STEP_PART_IDLE, (ZpKind)0, account->idle_ps);
    return parts;
}

GArray *
zp_step_account(const ZpStep *step, const ZpJob *job)
{
    const ZpTape *tape = zp_step_tape(step);
    g_auto(ZpPlayResult) result = {0};
    zp_step_replay(step, job, &result);
    gint32 last = result.n_steps - 1;
    ZpTime from = last > 0 ? result.step_end[last - 1] : 0, to = result.step_end[last];
    Account account = {.edges = g_array_new(FALSE, FALSE, sizeof(Edge)),
                       .works = g_array_new(FALSE, FALSE, sizeof(Share)),
                       .active = g_array_new(FALSE, FALSE, sizeof(gint32))};
    collect(&account, tape, &result, from, to);
    divide(&account, from, to);
    GArray *parts = sum(&account);
    g_array_unref(account.edges);
    g_array_unref(account.works);
    g_array_unref(account.active);
    return parts;
}

ZpTime
zp_step_peak_time(const ZpStep *step, const ZpJob *job, const ZpStepSummary *summary)
{
    const ZpTape *tape = zp_step_tape(step);
    gint32 peak = summary->peak_instr;
    if (peak == ZP_TAPE_NONE || tape->instrs[peak].clock == ZP_TAPE_CLOCK_DEVICE)
        return summary->peak_time;
    g_auto(ZpPlayResult) result = {0};
    zp_step_replay(step, job, &result);
    ZpTime done = summary->peak_time;
    for (gint32 i = 0; i < peak; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op == ZP_TAPE_LAUNCH && tape->works[instr->a].category == ZP_TAPE_COMPUTE)
            done = MAX(done, result.op_end[i]);
    }
    return done;
}
