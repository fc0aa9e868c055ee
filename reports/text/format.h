/* Numbers as people read them.  All append to a GString; none depends on the locale. */
#pragma once

#include "sim/events/time.h"

/* "12.34" in 10^9 or 2^30 bytes: two decimals, three below 0.1, "0" for zero. */
void zp_format_gb(GString *out, gint64 bytes);
void zp_format_gib(GString *out, gint64 bytes);
/* "436.21 MB": the largest decimal unit that gives at least 1; whole bytes below 1 kB. */
void zp_format_bytes(GString *out, gint64 bytes);
/* "1.234 s", "12.34 ms", "5.600 us": four significant digits. */
void zp_format_time(GString *out, ZpTime time);
/* "53 123": digits in groups of three, set apart by a space. */
void zp_format_count(GString *out, gint64 count);
/* "12.3 %"; "-" when `whole` is 0. */
void zp_format_share(GString *out, double part, double whole);
/* A double with `decimals` digits and a point. */
void zp_format_double(GString *out, double value, int decimals);
