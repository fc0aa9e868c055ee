#include "models/activation_script.h"

#include "models/activation_program.h"

/* Three sizes: one to find a form, one to tell it from others, one to verify it. */
enum { PROBES = 3 };

typedef struct {
    gint64 batch, tokens;
    gint64 terms[ZP_TERMS];
    GArray *events; /* ZpTraceEvent */
} Probe;

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
probes_init(Probe *probes, gint64 divisor, gboolean alone)
{
    static const gint64 batches[PROBES] = {11, 13, 17}, tokens[PROBES] = {103, 101, 107};
    for (int i = 0; i < PROBES; i++) {
        probes[i].batch = alone ? 1 : batches[i];
        probes[i].tokens = tokens[i] * divisor;
        probes[i].events = g_array_sized_new(FALSE, FALSE, sizeof(ZpTraceEvent), 1024);
        terms_at(probes[i].batch, probes[i].tokens, probes[i].terms);
    }
}

static gboolean
fit_one_term(const Probe *probes, const gint64 *bytes, int term, ZpForm *form)
{
    gint64 units = bytes[0] / probes[0].terms[term];
    for (int i = 0; i < PROBES; i++)
        if (units * probes[i].terms[term] != bytes[i])
            return FALSE;
    form->of[term] = units;
    return TRUE;
}

/* What shifted labels leave: b (x s + y). */
static gboolean
fit_per_sequence(const Probe *probes, const gint64 *bytes, ZpForm *form)
{
    gint64 rows[PROBES];
    for (int i = 0; i < PROBES; i++) {
        if (bytes[i] % probes[i].batch != 0)
            return FALSE;
        rows[i] = bytes[i] / probes[i].batch;
    }
    gint64 slope = (rows[1] - rows[0]) / (probes[1].tokens - probes[0].tokens);
    gint64 rest = rows[0] - slope * probes[0].tokens;
    for (int i = 0; i < PROBES; i++)
        if (slope * probes[i].tokens + rest != rows[i])
            return FALSE;
    form->of[ZP_TERM_TOKEN] = slope;
    form->of[ZP_TERM_SEQUENCE] = rest;
    return TRUE;
}

static ZpForm
fit(const Probe *probes, const gint64 *bytes)
{
    static const ZpTerm order[] = {ZP_TERM_TOKEN,    ZP_TERM_PAIR,          ZP_TERM_ONE,
                                   ZP_TERM_POSITION, ZP_TERM_POSITION_PAIR, ZP_TERM_SEQUENCE};
    ZpForm form = {0};
    gboolean fits = FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(order) && !fits; i++)
        fits = fit_one_term(probes, bytes, (int)order[i], &form);
    fits = fits || fit_per_sequence(probes, bytes, &form);
    g_assert(fits);
    return form;
}

static ZpScriptEvent
join_event(const Probe *probes, guint index, gint64 scale)
{
    const ZpTraceEvent *first = &g_array_index(probes[0].events, ZpTraceEvent, index);
    gint64 bytes[PROBES];
    for (int p = 0; p < PROBES; p++) {
        const ZpTraceEvent *event = &g_array_index(probes[p].events, ZpTraceEvent, index);
        g_assert(event->storage == first->storage && event->part == first->part &&
                 event->pass == first->pass);
        bytes[p] = ABS(event->bytes) * scale;
    }
    return (ZpScriptEvent){first->storage, first->part, first->pass, first->bytes < 0,
                           fit(probes, bytes)};
}

/* Puts the probes' events together and clears them. */
static ZpScript
join(Probe *probes, gint64 scale, gboolean alone)
{
    guint count = probes[0].events->len;
    ZpScript script = {
        .events = g_array_sized_new(FALSE, FALSE, sizeof(ZpScriptEvent), count),
        .n_parts = 1,
        .scale = scale,
        .alone = alone,
    };
    for (int p = 1; p < PROBES; p++)
        g_assert_cmpuint(probes[p].events->len, ==, count);
    for (guint i = 0; i < count; i++) {
        ZpScriptEvent event = join_event(probes, i, scale);
        script.n_storages = MAX(script.n_storages, event.storage + 1);
        g_array_append_val(script.events, event);
    }
    for (int p = 0; p < PROBES; p++)
        g_array_unref(probes[p].events);
    return script;
}

ZpScript
zp_script_block(const ZpActivationBlock *block, gboolean alone)
{
    enum { EFFICIENT_ROWS = 32 }; /* that the kernel rounds its statistics to */
    gint64 ways = block->sequence_parallel ? MAX(block->tensor_parallel, 1) : 1;
    gint64 experts = block->family == ZP_BLOCK_MOE ? MAX(block->expert_count, 1) : 1;
    gint64 rows = block->attention == ZP_BLOCK_EFFICIENT ? EFFICIENT_ROWS : 1;
    gint64 scale = common_multiple(ways, experts);
    Probe probes[PROBES];
    ZpActivationBlock varied = *block;
    probes_init(probes, common_multiple(scale, rows), alone);
    for (int i = 0; i < PROBES; i++) {
        varied.batch = probes[i].batch;
        varied.tokens = probes[i].tokens;
        zp_program_measure_block(&varied, probes[i].events);
    }
    ZpScript script = join(probes, scale, alone);
    script.n_parts = zp_program_parts(block->family);
    return script;
}

ZpScript
zp_script_loss(const ZpActivationLoss *loss, gboolean alone)
{
    gint64 scale = loss->kind >= ZP_LOSS_CHUNKS ? MAX(loss->chunks, 1) : 1;
    Probe probes[PROBES];
    ZpActivationLoss varied = *loss;
    probes_init(probes, scale, alone);
    for (int i = 0; i < PROBES; i++) {
        varied.batch = probes[i].batch;
        varied.tokens = probes[i].tokens;
        zp_program_measure_loss(&varied, probes[i].events);
    }
    ZpScript script = join(probes, scale, alone);
    for (guint i = 0; i < script.events->len; i++) {
        ZpScriptEvent *event = &g_array_index(script.events, ZpScriptEvent, i);
        if (event->pass == ZP_TRACE_RECOMPUTE)
            event->pass = ZP_TRACE_BACKWARD;
    }
    return script;
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
