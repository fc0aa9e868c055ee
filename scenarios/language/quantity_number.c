#include "scenarios/language/quantity_number_internal.h"

#include <math.h>
#include <string.h>

#include "scenarios/language/errors.h"

#define MAX_DIGITS 19
#define MAX_EXPONENT 400

static gboolean
fail(GError **error, ZpQuantityError code, const char *text, const char *what)
{
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)strnlen(text, ZP_QUANTITY_MAX_TEXT));
    g_set_error(error, ZP_QUANTITY_ERROR, (gint)code, "'%s': %s", valid, what);
    return FALSE;
}

/* One more decimal digit; zeros wait until a digit behind them shows that they count. */
static gboolean
push_digit(ZpQuantityNumber *number, int *zeros, char digit)
{
    if (digit == '0') {
        *zeros += number->mantissa != 0;
        return TRUE;
    }
    for (; *zeros >= 0; (*zeros)--) {
        guint64 add = *zeros == 0 ? (guint64)(digit - '0') : 0;
        if (number->mantissa > (G_MAXUINT64 - add) / 10)
            return FALSE;
        number->mantissa = number->mantissa * 10 + add;
    }
    *zeros = 0;
    return TRUE;
}

/* Digits up to something else; underscores only between digits. */
static const char *
scan_digits(const char *c, gboolean underscores, ZpQuantityNumber *number, int *zeros,
            gboolean *too_many)
{
    const char *start = c;
    for (;; c++) {
        if (g_ascii_isdigit(*c))
            *too_many |= !push_digit(number, zeros, *c);
        else if (!(underscores && *c == '_' && c > start && g_ascii_isdigit(c[-1]) &&
                   g_ascii_isdigit(c[1])))
            return c;
    }
}

static const char *
scan_exponent(const char *c, int *exponent)
{
    if (*c != 'e' && *c != 'E')
        return c;
    const char *digits = c + 1 + (c[1] == '+' || c[1] == '-');
    if (!g_ascii_isdigit(*digits))
        return c;
    int value = 0;
    const char *end = digits;
    for (; g_ascii_isdigit(*end); end++)
        value = MIN(value * 10 + (*end - '0'), 10 * MAX_EXPONENT);
    *exponent += c[1] == '-' ? -value : value;
    return end;
}

char *
zp_quantity_number_scan(const char *text, ZpQuantityNumber *number, GError **error)
{
    *number = (ZpQuantityNumber){0};
    const char *c = text + strspn(text, " \t");
    if (strnlen(text, ZP_QUANTITY_MAX_TEXT + 1) > ZP_QUANTITY_MAX_TEXT) {
        fail(error, ZP_QUANTITY_ERROR_SYNTAX, text, "too long for a quantity");
        return NULL;
    }
    if (!g_utf8_validate(text, -1, NULL)) {
        fail(error, ZP_QUANTITY_ERROR_SYNTAX, text, "not UTF-8 text");
        return NULL;
    }
    if (*c == '-' || *c == '+') {
        fail(error, ZP_QUANTITY_ERROR_SYNTAX, text, "quantities have no sign and are not negative");
        return NULL;
    }
    if (!g_ascii_isdigit(*c)) {
        fail(error, ZP_QUANTITY_ERROR_SYNTAX, text,
             "not a number; write decimal digits first, as in 8, 0.5 or 7e9");
        return NULL;
    }
    if (c[0] == '0' && c[1] != '\0' && strchr("0123456789_xX", c[1]) != NULL) {
        fail(error, ZP_QUANTITY_ERROR_SYNTAX, text,
             "only decimal numbers without leading zeros are read");
        return NULL;
    }
    int zeros = 0;
    gboolean too_many = FALSE;
    c = scan_digits(c, TRUE, number, &zeros, &too_many);
    if (*c == '.') {
        const char *fraction = c + 1;
        c = scan_digits(fraction, FALSE, number, &zeros, &too_many);
        if (c == fraction) {
            fail(error, ZP_QUANTITY_ERROR_SYNTAX, text, "digits must follow the point");
            return NULL;
        }
        number->exponent = -(int)(c - fraction);
    }
    number->exponent += zeros;
    if (number->mantissa == 0)
        number->exponent = 0;
    c = scan_exponent(c, &number->exponent);
    if (too_many || (number->mantissa != 0 && ABS(number->exponent) > MAX_EXPONENT)) {
        fail(error, ZP_QUANTITY_ERROR_RANGE, text,
             too_many ? "more digits than can be kept (19)" : "exponent too large");
        return NULL;
    }
    return g_strstrip(g_strdup(c));
}

gboolean
zp_quantity_number_integer(const ZpQuantityNumber *number, int power10, int power2, gboolean rounds,
                           const char *text, const char *whole, gint64 *value, GError **error)
{
    /* A mantissa of 64 bits times 2^50 leaves room in 128 bits. */
    unsigned __int128 x = (unsigned __int128)number->mantissa << power2;
    int power = number->exponent + power10;
    for (; power > 0 && x != 0 && x <= G_MAXINT64; power--)
        x *= 10;
    unsigned __int128 divisor = 1;
    for (; power < 0 && divisor <= x * 10; power++)
        divisor *= 10;
    if (x % divisor != 0 && !rounds) {
        g_autofree char *what = g_strconcat("not ", whole, NULL);
        return fail(error, ZP_QUANTITY_ERROR_WHOLE, text, what);
    }
    x = (x + (divisor > 1 ? divisor / 2 : 0)) / divisor;
    if (x > G_MAXINT64)
        return fail(error, ZP_QUANTITY_ERROR_RANGE, text, "too large (the limit is 2^63 - 1)");
    *value = (gint64)x;
    return TRUE;
}

gboolean
zp_quantity_number_real(const ZpQuantityNumber *number, int power10, int power2, const char *text,
                        double *value, GError **error)
{
    char digits[48];
    g_snprintf(digits, sizeof digits, "%" G_GUINT64_FORMAT "e%d", number->mantissa,
               number->exponent + power10);
    *value = ldexp(g_ascii_strtod(digits, NULL), power2);
    if (!isfinite(*value))
        return fail(error, ZP_QUANTITY_ERROR_RANGE, text, "too large");
    return TRUE;
}
