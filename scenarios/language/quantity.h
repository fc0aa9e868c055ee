/* Quantities: a number and its unit, read strictly and printed back exactly.
 *
 * Numbers are decimal: "8", "1_000_000", "7e9", "12.5".  Refused: signs, hexadecimal, "nan", "inf",
 * leading zeros, a bare point (".5"), more than 19 significant digits, anything that does not fit.
 * Between number and unit any blanks are optional.  Units are case-sensitive, for case tells bit
 * from byte and milli from mega; what could be read in two ways ("80 G", "400 Gb/s", "64 KB") is
 * refused with the spellings that cannot.
 *
 * For every kind parse(print(x)) == x, exactly.  Messages state what is wrong and what is legal;
 * the caller prefixes where. */
#pragma once

#include <glib.h>

#include "scenarios/language/errors.h"
#include "sim/events/time.h"

/* "8", "7e9", "5e8 elements".  Whole numbers only ("1.5" is refused, "1.5e3" is 1500).  `unit`:
 * the one word that may follow, or NULL. */
gboolean zp_quantity_parse_count(const char *text, const char *unit, gint64 *value, GError **error);
char *zp_quantity_print_count(gint64 value, const char *unit);

/* "80 GiB" (2^30), "80 GB" (10^9), "512 MiB", "4096 B".  A fraction of a larger unit is rounded to
 * the nearest byte ("79.15 GiB"), a fraction of a byte is refused. */
gboolean zp_quantity_parse_bytes(const char *text, gint64 *value, GError **error);
char *zp_quantity_print_bytes(gint64 value);

/* Bytes per second: "300 GB/s", "25 GiB/s", "400 Gbit/s". */
gboolean zp_quantity_parse_bandwidth(const char *text, double *bytes_per_s, GError **error);
char *zp_quantity_print_bandwidth(double bytes_per_s);

/* Floating-point operations per second: "312 TFLOP/s". */
gboolean zp_quantity_parse_flops(const char *text, double *flops_per_s, GError **error);
char *zp_quantity_print_flops(double flops_per_s);

/* "5 us", "12.5 ms", "3 ns", "1 s", "250 ps": whole picoseconds. */
gboolean zp_quantity_parse_time(const char *text, ZpTime *time_ps, GError **error);
char *zp_quantity_print_time(ZpTime time_ps);

/* "0.7" or "70 %". */
gboolean zp_quantity_parse_ratio(const char *text, double *ratio, GError **error);
char *zp_quantity_print_ratio(double ratio);

/* "true", "yes", "on"; "false", "no", "off". */
gboolean zp_quantity_parse_bool(const char *text, gboolean *value, GError **error);

/* Items between commas, blanks around them removed; an empty item is an error.  At most `n_max`
 * items. */
char **zp_quantity_split_list(const char *text, gsize n_max, GError **error);
