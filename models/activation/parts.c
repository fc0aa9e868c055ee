/* From the lives of storages to what each part of a block keeps, brings back and peaks at. */
#include "models/activation/program_internal.h"
#include "models/activation/script_internal.h"

typedef struct {
    gint16 part, pass;
    ZpForm form;
} Storage;

/* A walk along a script: what lives, and what of it each part made in forward or recomputation. */
typedef struct {
    const ZpScript *script;
    Storage *storages; /* by number */
    ZpForm live, own[ZP_ACTIVATION_PARTS];
    /* Found by the first walk. */
    ZpForm kept[ZP_ACTIVATION_PARTS], recomputed[ZP_ACTIVATION_PARTS];
    /* Made by the second: undominated forms, of ZpForm, above what the layers' order accounts. */
    GArray *peaks[ZP_TRACE_PASSES][ZP_ACTIVATION_PARTS];
} Walk;

static void
step(Walk *walk, const ZpScriptEvent *event)
{
    Storage *storage = &walk->storages[event->storage];
    if (!event->dies)
        *storage = (Storage){event->part, event->pass, event->form};
    walk->live = zp_form_add(&walk->live, &event->form, event->dies ? -1 : 1);
    if (storage->pass != ZP_TRACE_BACKWARD)
        walk->own[storage->part] =
            zp_form_add(&walk->own[storage->part], &event->form, event->dies ? -1 : 1);
}

static void
restart(Walk *walk)
{
    walk->live = (ZpForm){0};
    memset(walk->own, 0, sizeof walk->own);
}

/* Whole bytes a unit, since these are what others add up. */
static ZpForm
whole(const ZpForm *form, gint64 scale)
{
    ZpForm result;
    for (int t = 0; t < ZP_TERMS; t++)
        result.of[t] = zp_round_up(form->of[t], scale) * scale;
    return result;
}

/* Whether a is nowhere above b, with b = fewest + x sequences and s = 1 + y tokens: no coefficient
 * in x and y of the difference is negative. */
static gboolean
is_below(const ZpForm *a, const ZpForm *b, gboolean alone)
{
    ZpForm above = zp_form_add(b, a, -1);
    const gint64 *of = above.of;
    gint64 fewest = alone ? 1 : 2, slope = of[ZP_TERM_TOKEN] + 2 * of[ZP_TERM_PAIR];
    gboolean along = zp_form_at(&above, fewest, 1) >= 0 &&
                     of[ZP_TERM_POSITION] + 2 * of[ZP_TERM_POSITION_PAIR] + fewest * slope >= 0 &&
                     of[ZP_TERM_POSITION_PAIR] + fewest * of[ZP_TERM_PAIR] >= 0;
    gint64 across = of[ZP_TERM_SEQUENCE] + of[ZP_TERM_TOKEN] + of[ZP_TERM_PAIR];
    return along && (alone || (across >= 0 && slope >= 0 && of[ZP_TERM_PAIR] >= 0));
}

/* What lives of a part after the recomputation, above what it kept.  That can be less where whole
 * products are kept whose successors are shares of them: then nothing is brought back, and the
 * peaks above are smaller. */
static ZpForm
brought_back(const Walk *walk, int part)
{
    const ZpForm nothing = {0};
    ZpForm more = zp_form_add(&walk->own[part], &walk->kept[part], -1);
    for (int t = 0; t < ZP_TERMS && !is_below(&nothing, &more, walk->script->alone); t++)
        more.of[t] = MAX(more.of[t], 0);
    return whole(&more, walk->script->scale);
}

static void
find_kept(Walk *walk)
{
    int pass = ZP_TRACE_FORWARD;
    restart(walk);
    for (guint i = 0; i < walk->script->events->len; i++) {
        const ZpScriptEvent *event = &g_array_index(walk->script->events, ZpScriptEvent, i);
        if (!zp_script_is_activation(event))
            continue;
        if (event->pass != pass) {
            for (int p = 0; p < walk->script->n_parts && pass == ZP_TRACE_FORWARD; p++)
                walk->kept[p] = whole(&walk->own[p], walk->script->scale);
            for (int p = 0; p < walk->script->n_parts && pass == ZP_TRACE_RECOMPUTE; p++)
                walk->recomputed[p] = brought_back(walk, p);
            pass = event->pass;
        }
        step(walk, event);
    }
}

/* What ZpModelPolicyBytes counts beside a peak of this part and pass. */
static ZpForm
accounted(const Walk *walk, int part, int pass)
{
    ZpForm sum = {0};
    for (int p = 0; p < walk->script->n_parts; p++) {
        if (p <= part || pass == ZP_TRACE_RECOMPUTE)
            sum = zp_form_add(&sum, &walk->kept[p], 1);
        if (p <= part && pass != ZP_TRACE_FORWARD)
            sum = zp_form_add(&sum, &walk->recomputed[p], 1);
    }
    return sum;
}

static void
add_form(GArray *forms, const ZpForm *form, gboolean alone)
{
    for (guint i = 0; i < forms->len; i++)
        if (is_below(form, &g_array_index(forms, ZpForm, i), alone))
            return;
    for (guint i = forms->len; i > 0; i--)
        if (is_below(&g_array_index(forms, ZpForm, i - 1), form, alone))
            g_array_remove_index_fast(forms, i - 1);
    g_array_append_val(forms, *form);
}

static void
note_peak(Walk *walk, int part, int pass)
{
    ZpForm counted = accounted(walk, part, pass);
    ZpForm above = zp_form_add(&walk->live, &counted, -1);
    add_form(walk->peaks[pass][part], &above, walk->script->alone);
}

/* The worst instants come before something dies, or when another part takes over. */
static void
find_peaks(Walk *walk)
{
    const GArray *events = walk->script->events;
    int part = 0, pass = ZP_TRACE_FORWARD;
    gboolean grown = FALSE;
    restart(walk);
    for (guint i = 0; i < events->len; i++) {
        const ZpScriptEvent *event = &g_array_index(events, ZpScriptEvent, i);
        if (!zp_script_is_activation(event))
            continue;
        gboolean moves = event->part != part || event->pass != pass;
        if (grown && (moves || event->dies))
            note_peak(walk, part, pass);
        part = event->part;
        pass = event->pass;
        if (moves)
            note_peak(walk, part, pass);
        step(walk, event);
        grown = !event->dies;
    }
    if (grown)
        note_peak(walk, part, pass);
}

/* Joins the two forms whose largest terms together are least above both. */
static void
join_two(GArray *forms)
{
    enum { TYPICAL_TOKENS = 4096 };
    guint best[2] = {0, 1};
    ZpForm joined = {0};
    gint64 least = G_MAXINT64;
    for (guint i = 0; i < forms->len; i++)
        for (guint j = i + 1; j < forms->len; j++) {
            const ZpForm *a = &g_array_index(forms, ZpForm, i);
            const ZpForm *b = &g_array_index(forms, ZpForm, j);
            ZpForm most;
            for (int t = 0; t < ZP_TERMS; t++)
                most.of[t] = MAX(a->of[t], b->of[t]);
            gint64 above = zp_form_at(&most, 1, TYPICAL_TOKENS) -
                           MAX(zp_form_at(a, 1, TYPICAL_TOKENS), zp_form_at(b, 1, TYPICAL_TOKENS));
            if (above >= least)
                continue;
            least = above;
            joined = most;
            best[0] = i;
            best[1] = j;
        }
    g_array_index(forms, ZpForm, best[0]) = joined;
    g_array_remove_index_fast(forms, best[1]);
}

static int
set_peak(GArray *forms, gint64 scale, ZpModelPeak *peak)
{
    int joins = 0;
    for (; forms->len > ZP_MODEL_PEAK_FORMS; joins++)
        join_two(forms);
    peak->n_forms = (gint32)forms->len;
    for (guint i = 0; i < forms->len; i++)
        peak->forms[i] = zp_form_bytes(&g_array_index(forms, ZpForm, i), scale);
    return joins;
}

int
zp_script_policy_bytes(const ZpScript *script, ZpModelPolicyBytes **parts)
{
    Walk walk = {.script = script, .storages = g_new0(Storage, (gsize)script->n_storages)};
    int joins = 0;
    for (int pass = 0; pass < ZP_TRACE_PASSES; pass++)
        for (int p = 0; p < ZP_ACTIVATION_PARTS; p++)
            walk.peaks[pass][p] = g_array_new(FALSE, FALSE, sizeof(ZpForm));
    find_kept(&walk);
    find_peaks(&walk);
    for (int p = 0; p < script->n_parts; p++) {
        ZpModelPeak *peaks[] = {&parts[p]->forward, &parts[p]->recompute, &parts[p]->backward};
        parts[p]->kept = zp_form_bytes(&walk.kept[p], script->scale);
        parts[p]->recomputed = zp_form_bytes(&walk.recomputed[p], script->scale);
        for (int pass = 0; pass < ZP_TRACE_PASSES; pass++)
            joins += set_peak(walk.peaks[pass][p], script->scale, peaks[pass]);
    }
    for (int pass = 0; pass < ZP_TRACE_PASSES; pass++)
        for (int p = 0; p < ZP_ACTIVATION_PARTS; p++)
            g_array_unref(walk.peaks[pass][p]);
    g_free(walk.storages);
    return joins;
}

/* Fills one policy's bytes of every part; returns whether they hold for one sequence. */
static gboolean
fill(const ZpScriptSource *source, gboolean alone, int slot, ZpActivationParts *parts,
     ZpModelScripts *scripts)
{
    ZpModelPolicyBytes *bytes[ZP_ACTIVATION_PARTS];
    ZpScript script = zp_script_new(source, alone);
    for (int p = 0; p < ZP_ACTIVATION_PARTS; p++)
        bytes[p] = alone ? &parts->parts[p].alone[slot] : &parts->parts[p].policies[slot];
    zp_script_policy_bytes(&script, bytes);
    parts->n_parts = script.n_parts;
    gboolean holds = alone || zp_script_holds_alone(&script);
    if (scripts) {
        scripts->of[slot][alone] = zp_script_for_model(&script);
        if (holds && !alone)
            scripts->of[slot][TRUE] = zp_model_script_ref(scripts->of[slot][FALSE]);
    }
    zp_script_clear(&script);
    return holds;
}

static void
copy_slot(ZpActivationParts *parts, ZpModelScripts *scripts, int from, int to)
{
    for (int alone = 0; scripts && alone <= 1; alone++)
        if (!scripts->of[to][alone])
            scripts->of[to][alone] = zp_model_script_ref(scripts->of[from][alone]);
    for (int p = 0; p < parts->n_parts; p++) {
        parts->parts[p].policies[to] = parts->parts[p].policies[from];
        parts->parts[p].alone[to] = parts->parts[p].alone[from];
    }
}

static gboolean
peaks_equal(const ZpModelPeak *a, const ZpModelPeak *b)
{
    return a->n_forms == b->n_forms &&
           memcmp(a->forms, b->forms, (gsize)a->n_forms * sizeof *a->forms) == 0;
}

static gboolean
bytes_equal(const ZpModelPolicyBytes *a, const ZpModelPolicyBytes *b)
{
    return memcmp(&a->kept, &b->kept, sizeof a->kept) == 0 &&
           memcmp(&a->recomputed, &b->recomputed, sizeof a->recomputed) == 0 &&
           peaks_equal(&a->forward, &b->forward) && peaks_equal(&a->recompute, &b->recompute) &&
           peaks_equal(&a->backward, &b->backward);
}

/* Policies that are one block policy are walked once; those of one sequence only where one of
 * them differs, which may still come to the same bytes. */
static ZpActivationParts
parts_of(ZpScriptSource *source, const ZpBlockPolicy *policies, ZpModelScripts *scripts)
{
    ZpActivationParts parts = {0};
    gboolean differs = FALSE;
    for (int alone = FALSE; alone <= differs; alone++)
        for (int slot = 0; slot < ZP_MODEL_POLICIES; slot++) {
            int same = 0;
            while (policies[same] != policies[slot])
                same++;
            source->block.policy = policies[slot];
            gboolean known = scripts && scripts->of[slot][alone];
            if (same == slot)
                differs = !fill(source, alone, slot, &parts, known ? NULL : scripts) || differs;
            else
                copy_slot(&parts, scripts, same, slot);
        }
    for (int p = 0; p < parts.n_parts; p++)
        for (int slot = 0; slot < ZP_MODEL_POLICIES && differs; slot++)
            parts.parts[p].differs_alone |=
                !bytes_equal(&parts.parts[p].alone[slot], &parts.parts[p].policies[slot]);
    return parts;
}

ZpActivationParts
zp_activation_parts(const ZpActivationBlock *block, ZpModelScripts *scripts)
{
    gboolean reentrant = block->reentrant || block->policy == ZP_KEEP_INPUT_REENTRANT;
    const ZpBlockPolicy policies[ZP_MODEL_POLICIES] = {
        ZP_KEEP_ALL, block->policy, reentrant ? ZP_KEEP_INPUT_REENTRANT : ZP_KEEP_INPUT};
    ZpScriptSource source = {.block = *block};
    return parts_of(&source, policies, scripts);
}

ZpModelActivation
zp_activation_norm_part(const ZpActivationBlock *block)
{
    const ZpBlockPolicy policies[ZP_MODEL_POLICIES] = {ZP_KEEP_ALL};
    ZpScriptSource source = {.kind = ZP_SCRIPT_LAST_NORM, .block = *block};
    return parts_of(&source, policies, NULL).parts[0];
}

ZpModelActivation
zp_activation_loss_part(const ZpActivationLoss *loss)
{
    const ZpBlockPolicy policies[ZP_MODEL_POLICIES] = {ZP_KEEP_ALL};
    ZpScriptSource source = {.kind = ZP_SCRIPT_LOSS, .loss = *loss};
    source.loss.without_norm = TRUE;
    return parts_of(&source, policies, NULL).parts[0];
}
