/* The largest value of a key with which a run still fits its device.
 *
 * The value is doubled from the key's least one (but at least 1) until it fits and then no longer
 * does, and the gap is halved until it is closed; a value that is refused counts as one that does
 * not fit.  That finds the answer where more never fits better.  Whether it is so is looked at, not
 * assumed: at all values tried, and at ZP_FIT_PROBES more on either side of the answer. */
#pragma once

#include "models/step/step.h"
#include "scenarios/load/scenario.h"

#define ZP_FIT_PROBES 8

typedef struct {
    gint64 value;
    char *refusal; /* why it cannot be simulated; NULL: it was */
    gboolean fits; /* headroom is not negative; it and what follows are valid when not refused */
    ZpVerdict verdict;
    gint64 needed_bytes; /* peak, or reserved with an allocator */
    gint64 headroom_bytes;
    ZpTime step_ps;
} ZpFitTrial;

typedef struct {
    const char *key; /* full name; static */
    GArray *trials;  /* ZpFitTrial, in order of value */
    gint32 best;     /* index in trials of the largest value that fits; -1: none does */
    gint32 above;    /* of one above it; -1 where the key has no such value */
    gint64 bound;    /* values beyond were not asked for */
    gboolean
        monotone; /* among the values tried more never needs less, or fits where less does not */
    gint64 odd_value; /* else the value that needs less, or fits, beside the one before */
} ZpFit;

void zp_fit_clear(ZpFit *fit);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpFit, zp_fit_clear)

/* `base` is varied with the settings given to load it and `key` (an integer key, by its full name
 * or the part that only one section has).  Fails on other keys, where the device has no capacity,
 * and where the least value is refused. */
gboolean zp_fit_find(const ZpScenario *base, const char *key, const volatile gint *cancelled,
                     ZpFit *fit, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* JSON, "zeropeak-fit/1": {schema, key, value (null: none fits), bound, monotone, odd_value (null),
 * trials [{value, fits, verdict (null: refused), needed_bytes, headroom_bytes, step_ps, refusal}]};
 * free with g_free(). */
char *zp_fit_json(const ZpFit *fit);

typedef enum {
    ZP_FIT_ERROR_KEY,      /* not an integer key */
    ZP_FIT_ERROR_CAPACITY, /* device.memory = unlimited */
} ZpFitError;
#define ZP_FIT_ERROR (zp_fit_error_quark())
GQuark zp_fit_error_quark(void);
