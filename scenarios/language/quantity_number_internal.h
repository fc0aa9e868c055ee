/* The number in front of a unit, exactly: quantity.h in parts. */
#pragma once

#include <glib.h>

/* Longest text worth reading; a number has at most 19 significant digits. */
#define ZP_QUANTITY_MAX_TEXT 128

typedef struct {
    guint64 mantissa; /* no trailing zeros */
    int exponent;     /* value = mantissa x 10^exponent */
} ZpQuantityNumber;

/* Reads the number at the start of `text` and returns what follows it without blanks, or NULL. */
char *zp_quantity_number_scan(const char *text, ZpQuantityNumber *number, GError **error);

/* number x 10^power10 x 2^power2 as an integer; a remainder is rounded to nearest if `rounds`,
 * else an error that says `whole` ("a whole number of bytes").  power2 is not negative. */
gboolean zp_quantity_number_integer(const ZpQuantityNumber *number, int power10, int power2,
                                    gboolean rounds, const char *text, const char *whole,
                                    gint64 *value, GError **error);
/* The same, correctly rounded to double (power2 of any sign). */
gboolean zp_quantity_number_real(const ZpQuantityNumber *number, int power10, int power2,
                                 const char *text, double *value, GError **error);
