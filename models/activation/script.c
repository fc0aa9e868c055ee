#include "models/activation/script_internal.h"

#include "models/activation/program_internal.h"

/* A storage of a block is a multiple of one term: one size finds it, a second one verifies it.  A
 * loss whose labels are shifted has two terms, and needs a third. */
enum { BLOCK_PROBES = 2, PROBES = 3, ALONE_TOKENS = 103 };

typedef struct {
    gint64 batch, tokens;
    gint64 terms[ZP_TERMS];
    GArray *events; /* ZpTraceEvent */
} Probe;

typedef struct {
    int count;
    Probe of[PROBES];
} Probes;

static void
terms_at(gint64 batch, gint64 tokens, gint64 *terms)
{
    terms[ZP_TERM_ONE] = 1;
    terms[ZP_TERM_SEQUENCE] = batch;
    terms[ZP_TERM_POSITION] = tokens;
    terms[ZP_TERM_TOKEN] = batch * tokens;
    terms[ZP_TERM_PAIR] = batch * tokens * tokens;
    terms[ZP_TERM_POSITION_PAIR] = tokens * tokens;
}

static gint64
common_multiple(gint64 a, gint64 b)
{
    gint64 x = a, y = b;
    while (y != 0) {
        gint64 rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* Sizes that no width of a model is a multiple of, so that no shape of one is taken for another's;
 * tokens that every divisor divides. */
static void
probes_init(Probes *probes, int count, gint64 divisor, gboolean alone)
{
    static const gint64 batches[PROBES] = {11, 13, 17}, tokens[PROBES] = {103, 101, 107};
    probes->count = count;
    for (int i = 0; i < count; i++) {
        Probe *probe = &probes->of[i];
        probe->batch = alone ? 1 : batches[i];
        probe->tokens = tokens[i] * divisor;
        probe->events = g_array_sized_new(FALSE, FALSE, sizeof(ZpTraceEvent), 1024);
        terms_at(probe->batch, probe->tokens, probe->terms);
    }
}

static gboolean
fit_one_term(const Probes *probes, const gint64 *bytes, int term, ZpForm *form)
{
    gint64 units = bytes[0] / probes->of[0].terms[term];
    for (int i = 0; i < probes->count; i++)
        if (units * probes->of[i].terms[term] != bytes[i])
            return FALSE;
    form->of[term] = units;
    return TRUE;
}

/* What shifted labels leave: b (x s + y). */
static gboolean
fit_per_sequence(const Probes *probes, const gint64 *bytes, ZpForm *form)
{
    gint64 rows[PROBES] = {0};
    for (int i = 0; i < probes->count; i++) {
        if (bytes[i] % probes->of[i].batch != 0)
            return FALSE;
        rows[i] = bytes[i] / probes->of[i].batch;
    }
    gint64 slope = (rows[1] - rows[0]) / (probes->of[1].tokens - probes->of[0].tokens);
    gint64 rest = rows[0] - slope * probes->of[0].tokens;
    for (int i = 0; i < probes->count; i++)
        if (slope * probes->of[i].tokens + rest != rows[i])
            return FALSE;
    form->of[ZP_TERM_TOKEN] = slope;
    form->of[ZP_TERM_SEQUENCE] = rest;
    return TRUE;
}

static ZpForm
fit(const Probes *probes, const gint64 *bytes)
{
    static const ZpTerm order[] = {ZP_TERM_TOKEN,    ZP_TERM_PAIR,          ZP_TERM_ONE,
                                   ZP_TERM_POSITION, ZP_TERM_POSITION_PAIR, ZP_TERM_SEQUENCE};
    ZpForm form = {0};
    gboolean fits = FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(order) && !fits; i++)
        fits = fit_one_term(probes, bytes, (int)order[i], &form);
    fits = fits || (probes->count == PROBES && fit_per_sequence(probes, bytes, &form));
    g_assert(fits);
    return form;
}

static ZpScriptEvent
join_event(const Probes *probes, guint index, gint64 scale)
{
    const ZpTraceEvent *first = &g_array_index(probes->of[0].events, ZpTraceEvent, index);
    gint64 bytes[PROBES];
    for (int p = 0; p < probes->count; p++) {
        const ZpTraceEvent *event = &g_array_index(probes->of[p].events, ZpTraceEvent, index);
        g_assert(event->storage == first->storage && event->part == first->part &&
                 event->pass == first->pass && event->class == first->class &&
                 event->parameter == first->parameter);
        bytes[p] = ABS(event->bytes) * scale;
    }
    return (ZpScriptEvent){.storage = first->storage,
                           .part = first->part,
                           .pass = first->pass,
                           .class = first->class,
                           .parameter = first->parameter,
                           .dies = first->bytes < 0,
                           .form = fit(probes, bytes)};
}

/* Puts the probes' events together and clears them. */
static GArray *
join(Probes *probes, gint64 scale)
{
    guint count = probes->of[0].events->len;
    GArray *joined = g_array_sized_new(FALSE, FALSE, sizeof(ZpScriptEvent), count);
    for (int p = 1; p < probes->count; p++)
        g_assert_cmpuint(probes->of[p].events->len, ==, count);
    for (guint i = 0; i < count; i++) {
        ZpScriptEvent event = join_event(probes, i, scale);
        g_array_append_val(joined, event);
    }
    for (int p = 0; p < probes->count; p++)
        g_array_unref(probes->of[p].events);
    return joined;
}

/* Everything that is made at these sizes; the batch and the tokens of the source do not matter. */
static void
record(const ZpScriptSource *source, gint64 batch, gint64 tokens, GArray *events)
{
    ZpActivationBlock block = source->block;
    ZpActivationLoss loss = source->loss;
    block.batch = loss.batch = batch;
    block.tokens = loss.tokens = tokens;
    if (source->kind != ZP_SCRIPT_LOSS) {
        gboolean norm = source->kind == ZP_SCRIPT_LAST_NORM;
        zp_program_measure_block(&block, norm ? zp_program_last_norm : zp_program_block, events);
        return;
    }
    zp_program_measure_loss(&loss, events);
    for (guint i = 0; i < events->len; i++) {
        ZpTraceEvent *event = &g_array_index(events, ZpTraceEvent, i);
        if (event->pass == ZP_TRACE_RECOMPUTE)
            event->pass = ZP_TRACE_BACKWARD;
    }
}

static gint64
scale_of(const ZpScriptSource *source)
{
    const ZpActivationBlock *block = &source->block;
    if (source->kind == ZP_SCRIPT_LOSS)
        return source->loss.kind >= ZP_LOSS_CHUNKS ? MAX(source->loss.chunks, 1) : 1;
    gint64 ways = block->sequence_parallel ? MAX(block->tensor_parallel, 1) : 1;
    gboolean shared_out = block->family == ZP_BLOCK_MOE && block->experts != ZP_EXPERTS_GROUPED_MM;
    return common_multiple(ways, shared_out ? MAX(block->expert_count, 1) : 1);
}

/* What the tokens of a probe are a multiple of. */
static gint64
divisor_of(const ZpScriptSource *source)
{
    enum { EFFICIENT_ROWS = 32 }; /* that the kernel rounds its statistics to */
    gboolean rounds =
        source->kind == ZP_SCRIPT_BLOCK && source->block.attention == ZP_BLOCK_EFFICIENT;
    return common_multiple(scale_of(source), rounds ? EFFICIENT_ROWS : 1);
}

ZpScript
zp_script_new(const ZpScriptSource *source, gboolean alone)
{
    Probes probes;
    gint64 scale = scale_of(source);
    probes_init(&probes, source->kind == ZP_SCRIPT_LOSS ? PROBES : BLOCK_PROBES, divisor_of(source),
                alone);
    for (int i = 0; i < probes.count; i++)
        record(source, probes.of[i].batch, probes.of[i].tokens, probes.of[i].events);
    ZpScript script = {
        .source = *source,
        .events = join(&probes, scale),
        .n_parts = source->kind == ZP_SCRIPT_BLOCK ? zp_program_parts(source->block.family) : 1,
        .scale = scale,
        .alone = alone,
    };
    for (guint i = 0; i < script.events->len; i++) {
        ZpScriptEvent *event = &g_array_index(script.events, ZpScriptEvent, i);
        script.n_storages = MAX(script.n_storages, event->storage + 1);
        event->behind = source->kind == ZP_SCRIPT_LOSS && event->part > 0;
        event->part = source->kind == ZP_SCRIPT_BLOCK ? event->part : 0;
    }
    return script;
}

static gboolean
source_is_one_part(const ZpScriptSource *source)
{
    return source->kind != ZP_SCRIPT_BLOCK;
}

gboolean
zp_script_holds_alone(const ZpScript *script)
{
    g_autoptr(GArray) events = g_array_sized_new(FALSE, FALSE, sizeof(ZpTraceEvent), 1024);
    gint64 tokens = ALONE_TOKENS * divisor_of(&script->source);
    record(&script->source, 1, tokens, events);
    gboolean holds = events->len == script->events->len;
    for (guint i = 0; i < events->len && holds; i++) {
        const ZpTraceEvent *one = &g_array_index(events, ZpTraceEvent, i);
        const ZpScriptEvent *event = &g_array_index(script->events, ZpScriptEvent, i);
        gint64 bytes = zp_form_at(&event->form, 1, tokens);
        gboolean same_part = source_is_one_part(&script->source) || one->part == event->part;
        holds = one->storage == event->storage && same_part && one->pass == event->pass &&
                ABS(one->bytes) * script->scale == bytes;
    }
    return holds;
}

void
zp_script_clear(ZpScript *script)
{
    g_clear_pointer(&script->events, g_array_unref);
}

ZpForm
zp_form_add(const ZpForm *a, const ZpForm *b, gint64 times)
{
    ZpForm sum;
    for (int t = 0; t < ZP_TERMS; t++)
        sum.of[t] = a->of[t] + times * b->of[t];
    return sum;
}

gint64
zp_form_at(const ZpForm *form, gint64 batch, gint64 tokens)
{
    gint64 terms[ZP_TERMS], sum = 0;
    terms_at(batch, tokens, terms);
    for (int t = 0; t < ZP_TERMS; t++)
        sum += form->of[t] * terms[t];
    return sum;
}

gint64
zp_round_up(gint64 value, gint64 scale)
{
    gint64 whole = value / scale;
    return whole * scale < value ? whole + 1 : whole;
}

ZpModelBytes
zp_form_bytes(const ZpForm *form, gint64 scale)
{
    return (ZpModelBytes){
        .constant_bytes = zp_round_up(form->of[ZP_TERM_ONE], scale),
        .bytes_per_sequence = zp_round_up(form->of[ZP_TERM_SEQUENCE], scale),
        .bytes_per_position = zp_round_up(form->of[ZP_TERM_POSITION], scale),
        .bytes_per_token = zp_round_up(form->of[ZP_TERM_TOKEN], scale),
        .bytes_per_pair = zp_round_up(form->of[ZP_TERM_PAIR], scale),
        .bytes_per_position_pair = zp_round_up(form->of[ZP_TERM_POSITION_PAIR], scale),
    };
}
