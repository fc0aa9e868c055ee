/* Simulated time: integer picoseconds.
 *
 * int64 picoseconds reach 106 days, and integers make "the same input gives the same
 * output" true on every machine.  Seconds as double exist only inside cost formulas
 * and printers. */
#pragma once

#include <glib.h>

typedef gint64 ZpTime; /* picoseconds */

#define ZP_TIME_PER_US G_GINT64_CONSTANT(1000000)
#define ZP_TIME_PER_MS G_GINT64_CONSTANT(1000000000)
#define ZP_TIME_PER_S G_GINT64_CONSTANT(1000000000000)
#define ZP_TIME_MAX G_MAXINT64

/* Rounds up to the next picosecond; saturates at ZP_TIME_MAX (also for +inf and NaN)
 * and at 0 from below, so that a cost formula can never produce a time in the past. */
static inline ZpTime
zp_time_from_seconds(double seconds)
{
    double ps = seconds * 1e12;
    if (!(ps < 9.2e18))
        return ZP_TIME_MAX;
    if (ps <= 0.0)
        return 0;
    ZpTime floor_ps = (ZpTime)ps;
    return (double)floor_ps < ps ? floor_ps + 1 : floor_ps;
}

static inline double
zp_time_to_seconds(ZpTime time)
{
    return (double)time / 1e12;
}

/* a + b for non-negative values, saturating at ZP_TIME_MAX. */
static inline ZpTime
zp_time_add(ZpTime a, ZpTime b)
{
    return a > ZP_TIME_MAX - b ? ZP_TIME_MAX : a + b;
}
