#include "tests/check_cases/figures.h"
#include "models/ledger/vendor_estimate.h"
#include "models/step/step.h"
#include "tests/check_cases/case.h"
#include "tests/check_cases/outcome.h"

#include <math.h>
#include <string.h>

struct _Figures {
    const char *path;
    GHashTable *outcomes; /* settings -> Outcome */
};

Figures *
figures_new(const char *path)
{
    Figures *figures = g_new0(Figures, 1);
    figures->path = path;
    figures->outcomes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, outcome_free);
    return figures;
}

void
figures_free(Figures *figures)
{
    g_hash_table_unref(figures->outcomes);
    g_free(figures);
}

static const Outcome *
outcome(Figures *figures, const char *sets)
{
    Outcome *known = g_hash_table_lookup(figures->outcomes, sets);
    if (known == NULL) {
        known = outcome_new(figures->path, sets);
        g_hash_table_insert(figures->outcomes, g_strdup(sets), known);
    }
    return known;
}

/* The largest micro batch that fits, 0 if none does. */
static gint64
max_batch(Figures *figures, const char *sets)
{
    gint64 fits = 0, fails = 0;
    while (fails == 0 || fails - fits > 1) {
        gint64 batch = fails ? (fits + fails) / 2 : MAX(1, 2 * fits);
        g_autofree char *with = g_strdup_printf("%s%straining.micro_batch=%" G_GINT64_FORMAT, sets,
                                                *sets ? ", " : "", batch);
        g_autoptr(Outcome) point = outcome_new(figures->path, with);
        if (point->refusal == NULL && point->summary.fits && batch < 1 << 20)
            fits = batch;
        else
            fails = batch;
    }
    return fits;
}

static void
set(Figure *figure, FigureKind kind, double number)
{
    *figure = (Figure){.kind = kind, .number = number};
}

static void
set_word(Figure *figure, const char *word)
{
    *figure = (Figure){.kind = FIGURE_WORD, .word = g_strdup(word)};
}

static gboolean
whole_step(const Outcome *o, const char *name, Figure *figure)
{
    const ZpStepSummary *s = &o->summary;
    const ZpJob *job = &o->scenario->job;
    gint32 on_node = MIN(job->world.ranks, job->network.gpus_per_node);
    const struct {
        const char *name;
        FigureKind kind;
        double value;
    } figures[] = {
        {"peak", FIGURE_BYTES, (double)s->peak_bytes},
        {"persistent", FIGURE_BYTES, (double)s->persistent_bytes},
        {"capacity", FIGURE_BYTES, (double)s->capacity_bytes},
        {"overhead", FIGURE_BYTES, (double)job->device.overhead_bytes},
        {"active", FIGURE_BYTES, s->has_allocator ? (double)s->allocator.peak.active_bytes : NAN},
        {"over_bytes", FIGURE_BYTES, (double)o->over_bytes},
        {"over_live", FIGURE_BYTES, (double)o->over_live_bytes},
        {"host_peak", FIGURE_BYTES, (double)s->host_peak_bytes},
        {"host_node", FIGURE_BYTES, (double)(s->host_peak_bytes * on_node)},
        {"step", FIGURE_TIME, zp_time_to_seconds(s->step_ps)},
        {"exposed", FIGURE_TIME, zp_time_to_seconds(s->exposed_ps)},
        {"host_compute", FIGURE_TIME, zp_time_to_seconds(s->busy_ps[ZP_TAPE_HOST_COMPUTE])},
        {"tokens_per_s", FIGURE_NUMBER,
         (double)s->tokens_per_step / zp_time_to_seconds(s->step_ps) / job->world.ranks},
        {"mfu", FIGURE_NUMBER, s->mfu},
        {"parameters", FIGURE_NUMBER, (double)job->model->n_elements},
        {"ranks", FIGURE_NUMBER, job->world.ranks},
        {"accumulation", FIGURE_NUMBER, (double)job->training.accumulation},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(figures); i++)
        if (g_str_equal(figures[i].name, name)) {
            set(figure, figures[i].kind, figures[i].value);
            return TRUE;
        }
    return FALSE;
}

static gboolean
word(const Outcome *o, const char *name, Figure *figure)
{
    if (g_str_equal(name, "fits"))
        set_word(figure, o->summary.fits ? "yes" : "no");
    else if (g_str_equal(name, "peak_phase"))
        set_word(figure, outcome_phase(o, o->summary.peak_instr));
    else if (g_str_equal(name, "over_phase"))
        set_word(figure, outcome_phase(o, o->summary.first_over_instr));
    else
        return FALSE;
    return TRUE;
}

static gboolean
vendor(const Outcome *o, const char *part, Figure *figure)
{
    ZpVendorQuestion question;
    if (!zp_vendor_estimate_ask(&o->scenario->job, &question, NULL))
        return FALSE;
    ZpVendorEstimate estimate = zp_vendor_estimate_stage(o->scenario->job.zero.stage, &question);
    if (g_str_equal(part, "device"))
        set(figure, FIGURE_BYTES, (double)estimate.device_bytes);
    else if (g_str_equal(part, "host"))
        set(figure, FIGURE_BYTES, (double)estimate.host_bytes);
    else if (g_str_equal(part, "largest"))
        set(figure, FIGURE_BYTES, (double)estimate.largest_layer_bytes);
    else
        return FALSE;
    return TRUE;
}

/* "GROUP.MEMBER" */
static gboolean
part_of_step(const Outcome *o, const char *group, const char *member, Figure *figure)
{
    const ZpPlayRank *rank = &zp_step_result(o->step)->ranks[0];
    int class_id = outcome_class(member);
    double value;
    if (g_str_equal(group, "vendor"))
        return vendor(o, member, figure);
    if (g_str_equal(group, "count") || g_str_equal(group, "bytes") || g_str_equal(group, "wire")) {
        if (!outcome_traffic(o, group, member, &value))
            return FALSE;
        set(figure, group[0] == 'c' ? FIGURE_NUMBER : FIGURE_BYTES, value);
        return TRUE;
    }
    if (g_str_equal(group, "role")) {
        int role = outcome_role(member);
        set(figure, FIGURE_BYTES, role < 0 ? NAN : outcome_made(o, role));
        return role >= 0;
    }
    if (outcome_life(o, group, member, &value)) {
        set(figure, FIGURE_BYTES, value);
        return TRUE;
    }
    if (class_id < 0)
        return FALSE;
    if (g_str_equal(group, "peak"))
        value = (double)o->summary.peak_by_class[class_id];
    else if (g_str_equal(group, "persistent"))
        value = (double)o->summary.persistent_by_class[class_id];
    else if (g_str_equal(group, "most"))
        value = (double)rank->memory[ZP_TAPE_SPACE_DEVICE].class_peak_bytes[class_id];
    else if (g_str_equal(group, "host"))
        value = (double)rank->memory[ZP_TAPE_SPACE_HOST].class_peak_bytes[class_id];
    else if (g_str_equal(group, "largest"))
        value = outcome_largest(o, class_id);
    else
        return FALSE;
    set(figure, FIGURE_BYTES, value);
    return TRUE;
}

gboolean
figures_get(Figures *figures, const char *name, const char *sets, Figure *figure, GError **error)
{
    if (g_str_equal(name, "max_batch")) {
        set(figure, FIGURE_NUMBER, (double)max_batch(figures, sets));
        return TRUE;
    }
    const Outcome *o = outcome(figures, sets);
    if (g_str_equal(name, "refusal")) {
        set_word(figure, o->refusal ? o->refusal : "none");
        return TRUE;
    }
    if (o->refusal != NULL) {
        g_set_error(error, CASE_ERROR, 0, "%s (%s): %s", figures->path, sets, o->refusal);
        return FALSE;
    }
    const char *point = strchr(name, '.');
    g_autofree char *group = point ? g_strndup(name, (gsize)(point - name)) : NULL;
    gboolean known = point ? part_of_step(o, group, point + 1, figure)
                           : whole_step(o, name, figure) || word(o, name, figure);
    if (!known)
        g_set_error(error, CASE_ERROR, 0, "there is no figure '%s'", name);
    return known;
}
