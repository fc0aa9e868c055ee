#include "scenarios/sweeps/fit.h"

#include "scenarios/readers/readers.h"

G_DEFINE_QUARK(zp - fit - error - quark, zp_fit_error)

/* No training job has more of anything. */
#define MAX_VALUE ((gint64)1 << 40)

typedef struct {
    const ZpScenario *base;
    const ZpSchemaKey *key;
    const volatile gint *cancelled;
    ZpFit *fit;
    GError *fatal; /* interrupted, or a check failed */
} Search;

static void
clear_trial(gpointer data)
{
    ZpFitTrial *trial = data;
    g_free(trial->refusal);
}

void
zp_fit_clear(ZpFit *fit)
{
    g_clear_pointer(&fit->trials, g_array_unref);
}

static ZpFitTrial *
trial_at(const ZpFit *fit, gint32 index)
{
    return &g_array_index(fit->trials, ZpFitTrial, (guint)index);
}

/* Where `value` is in the trials, or would be. */
static guint
position(const ZpFit *fit, gint64 value)
{
    guint at = 0;
    while (at < fit->trials->len && trial_at(fit, (gint32)at)->value < value)
        at++;
    return at;
}

/* Errors that say nothing about this value end the search. */
static gboolean
is_fatal(const GError *error)
{
    return g_error_matches(error, ZP_STEP_ERROR, ZP_STEP_ERROR_CANCELLED) ||
           g_error_matches(error, ZP_STEP_ERROR, ZP_STEP_ERROR_CHECK);
}

static void
simulate(Search *search, ZpFitTrial *trial)
{
    g_autofree char *set = g_strdup_printf("%s.%s=%" G_GINT64_FORMAT, search->key->section,
                                           search->key->key, trial->value);
    const char *sets[] = {set, NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = zp_scenario_with(search->base, sets, &error);
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    if (scenario == NULL ||
        !zp_step_simulate(step, &scenario->job, NULL, search->cancelled, &summary, &error)) {
        trial->refusal = g_strdup(error->message);
        if (is_fatal(error))
            search->fatal = g_steal_pointer(&error);
        return;
    }
    trial->fits = summary.fits;
    trial->verdict = summary.verdict;
    trial->needed_bytes = summary.has_allocator ? summary.reserved_bytes : summary.peak_bytes;
    trial->headroom_bytes = summary.headroom_bytes;
    trial->step_ps = summary.step_ps;
}

/* Does this value fit?  Each is simulated once. */
static gboolean
fits(Search *search, gint64 value)
{
    guint at = position(search->fit, value);
    if (at == search->fit->trials->len || trial_at(search->fit, (gint32)at)->value != value) {
        ZpFitTrial trial = {.value = value};
        if (search->fatal == NULL)
            simulate(search, &trial);
        g_array_insert_val(search->fit->trials, at, trial);
    }
    return trial_at(search->fit, (gint32)at)->fits;
}

/* The least value, doubled until one fits; beyond `bound`: none did. */
static gint64
first_that_fits(Search *search, gint64 low, gint64 bound)
{
    gint64 value = low;
    while (!fits(search, value) && search->fatal == NULL) {
        if (value > bound / 2)
            return bound + 1;
        value *= 2;
    }
    return value;
}

/* The answer where more never fits better, from a value that fits. */
static gint64
bisect(Search *search, gint64 good, gint64 bound)
{
    gint64 bad = bound + 1;
    while (good < bound && search->fatal == NULL) {
        gint64 next = good > bound / 2 ? bound : good * 2;
        if (!fits(search, next)) {
            bad = next;
            break;
        }
        good = next;
    }
    while (bad - good > 1 && search->fatal == NULL) {
        gint64 middle = good + (bad - good) / 2;
        if (fits(search, middle))
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* Evenly between the least value and the answer, and as far beyond it. */
static void
probe(Search *search, gint64 low, gint64 good, gint64 bound)
{
    gint64 stride = MAX(1, (good - low) / ZP_FIT_PROBES);
    for (gint64 p = 1; p <= ZP_FIT_PROBES && search->fatal == NULL; p++) {
        if (low + stride * p < good)
            (void)fits(search, low + stride * p);
        if (stride * p <= bound - good)
            (void)fits(search, good + stride * p);
    }
}

static void
conclude(ZpFit *fit)
{
    const ZpFitTrial *before = NULL;
    fit->best = fit->above = -1;
    fit->monotone = TRUE;
    for (gint32 t = 0; t < (gint32)fit->trials->len; t++) {
        const ZpFitTrial *trial = trial_at(fit, t);
        if (trial->refusal != NULL)
            continue;
        if (trial->fits)
            fit->best = t;
        gboolean odd = before != NULL && (trial->needed_bytes < before->needed_bytes ||
                                          (trial->fits && !before->fits));
        if (odd && fit->monotone) {
            fit->monotone = FALSE;
            fit->odd_value = trial->value;
        }
        before = trial;
    }
    if (fit->best >= 0 && fit->best + 1 < (gint32)fit->trials->len &&
        trial_at(fit, fit->best + 1)->value == trial_at(fit, fit->best)->value + 1)
        fit->above = fit->best + 1;
}

static gboolean
check(const ZpScenario *base, const ZpSchemaKey *key, GError **error)
{
    if (key->kind != ZP_SCHEMA_COUNT) {
        g_autofree char *legal = zp_schema_legal(key);
        g_set_error(error, ZP_FIT_ERROR, ZP_FIT_ERROR_KEY,
                    "%s.%s is not a whole number (it is %s); try training.micro_batch, "
                    "training.sequence or model.layers",
                    key->section, key->key, legal);
        return FALSE;
    }
    if (base->job.device.capacity_bytes == 0) {
        g_set_error_literal(error, ZP_FIT_ERROR, ZP_FIT_ERROR_CAPACITY,
                            "device.memory is unlimited: everything fits; give a size");
        return FALSE;
    }
    return TRUE;
}

gboolean
zp_fit_find(const ZpScenario *base, const char *name, const volatile gint *cancelled, ZpFit *fit,
            GError **error)
{
    const ZpSchemaKey *key = zp_schema_find(name, error);
    if (key == NULL || !check(base, key, error))
        return FALSE;
    g_autofree char *full = g_strconcat(key->section, ".", key->key, NULL);
    *fit = (ZpFit){
        .key = g_intern_string(full),
        .trials = g_array_new(FALSE, TRUE, sizeof(ZpFitTrial)),
        .bound = MIN(key->max, MAX_VALUE),
    };
    g_array_set_clear_func(fit->trials, clear_trial);
    Search search = {.base = base, .key = key, .cancelled = cancelled, .fit = fit};
    gint64 low = MAX(key->min, 1);
    gint64 good = first_that_fits(&search, low, fit->bound);
    if (search.fatal == NULL && good > fit->bound && trial_at(fit, 0)->refusal != NULL) {
        g_set_error(error, ZP_FIT_ERROR, ZP_FIT_ERROR_KEY, "%s = %" G_GINT64_FORMAT ": %s",
                    fit->key, low, trial_at(fit, 0)->refusal);
        return FALSE;
    }
    if (search.fatal == NULL && good <= fit->bound)
        probe(&search, low, bisect(&search, good, fit->bound), fit->bound);
    if (search.fatal != NULL) {
        g_propagate_error(error, search.fatal);
        return FALSE;
    }
    conclude(fit);
    /* A probe may have found more: its neighbour is asked for too. */
    if (fit->best >= 0 && fit->above < 0 && trial_at(fit, fit->best)->value < fit->bound) {
        (void)fits(&search, trial_at(fit, fit->best)->value + 1);
        if (search.fatal != NULL) {
            g_propagate_error(error, search.fatal);
            return FALSE;
        }
        conclude(fit);
    }
    return TRUE;
}

static void
add_integer(JsonBuilder *json, const char *name, gint64 value, gboolean known)
{
    json_builder_set_member_name(json, name);
    if (known)
        json_builder_add_int_value(json, value);
    else
        json_builder_add_null_value(json);
}

static void
add_trial(JsonBuilder *json, const ZpFitTrial *trial)
{
    gboolean known = trial->refusal == NULL;
    json_builder_begin_object(json);
    add_integer(json, "value", trial->value, TRUE);
    zp_json_write_bool(json, "fits", trial->fits);
    zp_json_write_text(json, "verdict", known ? zp_verdict_name(trial->verdict) : NULL);
    add_integer(json, "needed_bytes", trial->needed_bytes, known);
    add_integer(json, "headroom_bytes", trial->headroom_bytes, known);
    add_integer(json, "step_ps", trial->step_ps, known);
    zp_json_write_text(json, "refusal", trial->refusal);
    json_builder_end_object(json);
}

char *
zp_fit_json(const ZpFit *fit)
{
    g_autoptr(JsonBuilder) json = json_builder_new();
    json_builder_begin_object(json);
    zp_json_write_text(json, "schema", "zeropeak-fit/1");
    zp_json_write_text(json, "key", fit->key);
    add_integer(json, "value", fit->best >= 0 ? trial_at(fit, fit->best)->value : 0,
                fit->best >= 0);
    add_integer(json, "bound", fit->bound, TRUE);
    zp_json_write_bool(json, "monotone", fit->monotone);
    add_integer(json, "odd_value", fit->odd_value, !fit->monotone);
    zp_json_write_array(json, "trials");
    for (gint32 t = 0; t < (gint32)fit->trials->len; t++)
        add_trial(json, trial_at(fit, t));
    json_builder_end_array(json);
    return zp_json_write_finish(json);
}
