#include "scenarios/language/quantity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios/language/quantity_number_internal.h"

/* The nearest double text that reads back as `value`. */
static const char *
shortest(double value, char *buffer, gsize size)
{
    for (int digits = 6; digits <= 17; digits++) {
        char format[8];
        g_snprintf(format, sizeof format, "%%.%dg", digits);
        g_ascii_formatd(buffer, (int)size, format, value);
        if (g_ascii_strtod(buffer, NULL) == value)
            break;
    }
    return buffer;
}

/* --- counts --- */

gboolean
zp_quantity_parse_count(const char *text, const char *unit, gint64 *value, GError **error)
{
    ZpQuantityNumber number;
    g_autofree char *word = zp_quantity_number_scan(text, &number, error);
    if (word == NULL)
        return FALSE;
    if (*word != '\0' && g_strcmp0(word, unit) != 0) {
        g_set_error(
            error, ZP_QUANTITY_ERROR, ZP_QUANTITY_ERROR_UNIT, "'%s': a count takes %s%s; write %s",
            text, unit ? "no unit but the word " : "no unit", unit ? unit : "", "8, 7e9 or 1_000");
        return FALSE;
    }
    return zp_quantity_number_integer(&number, 0, 0, FALSE, text, "a whole number", value, error);
}

/* Short numbers with many zeros read better as 7.5e9. */
char *
zp_quantity_print_count(gint64 value, const char *unit)
{
    char digits[24], text[32];
    gint64 mantissa = value;
    int zeros = 0;
    for (; mantissa != 0 && mantissa % 10 == 0; mantissa /= 10)
        zeros++;
    g_snprintf(digits, sizeof digits, "%" G_GINT64_FORMAT, mantissa);
    int n = (int)strlen(digits);
    if (n <= 4 && zeros + n > 6)
        g_snprintf(text, sizeof text, "%c%s%se%d", digits[0], n > 1 ? "." : "", digits + 1,
                   zeros + n - 1);
    else
        g_snprintf(text, sizeof text, "%" G_GINT64_FORMAT, value);
    return g_strconcat(text, unit ? " " : NULL, unit, NULL);
}

/* --- units --- */

typedef struct {
    const char *name;
    int power10, power2;
} Unit;

static const Unit byte_units[] = {
    {"B", 0, 0},  {"KiB", 0, 10}, {"kB", 3, 0},  {"MiB", 0, 20}, {"MB", 6, 0},  {"GiB", 0, 30},
    {"GB", 9, 0}, {"TiB", 0, 40}, {"TB", 12, 0}, {"PiB", 0, 50}, {"PB", 15, 0}, {0},
};
static const Unit bandwidth_units[] = {
    {"B/s", 0, 0},     {"kB/s", 3, 0},    {"MB/s", 6, 0},    {"GB/s", 9, 0},     {"TB/s", 12, 0},
    {"KiB/s", 0, 10},  {"MiB/s", 0, 20},  {"GiB/s", 0, 30},  {"TiB/s", 0, 40},   {"bit/s", 0, -3},
    {"kbit/s", 3, -3}, {"Mbit/s", 6, -3}, {"Gbit/s", 9, -3}, {"Tbit/s", 12, -3}, {0},
};
static const Unit flops_units[] = {
    {"FLOP/s", 0, 0},   {"kFLOP/s", 3, 0},  {"MFLOP/s", 6, 0},  {"GFLOP/s", 9, 0},
    {"TFLOP/s", 12, 0}, {"PFLOP/s", 15, 0}, {"EFLOP/s", 18, 0}, {0},
};
static const Unit time_units[] = {
    {"ps", 0, 0}, {"ns", 3, 0}, {"us", 6, 0}, {"ms", 9, 0}, {"s", 12, 0}, {0},
};

/* What to write instead, from the prefix letter of what was written; "" if it has none. */
typedef struct {
    const Unit *units;
    const char *kind;       /* "a number of bytes" */
    const char *legal;      /* list for the message */
    const char *forms[2];   /* printf-like: number, prefix */
    const char *meaning[2]; /* of the forms */
} Family;

static const Family bytes = {
    byte_units,
    "a number of bytes",
    "B, kB, MB, GB, TB, PB (powers of 10) and KiB, MiB, GiB, TiB, PiB (powers of 2)",
    {"B", "iB"},
    {"powers of 10", "powers of 2"},
};
static const Family bandwidth = {
    bandwidth_units,
    "a bandwidth",
    "B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s and bit/s, kbit/s, Mbit/s, Gbit/s, "
    "Tbit/s",
    {"bit/s", "B/s"},
    {"bits", "bytes"},
};
static const Family flops = {
    flops_units,
    "a rate of operations",
    "FLOP/s, kFLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s, EFLOP/s",
    {"FLOP/s", NULL},
    {"operations per second", NULL},
};
static const Family times = {time_units, "a time", "ps, ns, us, ms, s", {NULL, NULL}, {NULL, NULL}};

/* "write '80 GB' (powers of 10) or '80 GiB' (powers of 2)", or the list of units. */
static char *
suggestion(const Family *family, const char *number, const char *unit)
{
    static const char prefixes[] = "kMGTPE";
    const char *prefix = *unit == 'K' ? "k" : strchr(prefixes, *unit);
    if (prefix == NULL)
        prefix = strchr(prefixes, g_ascii_toupper(*unit));
    if (*unit == '\0' || prefix == NULL || family->forms[0] == NULL)
        return g_strdup_printf("legal units are %s", family->legal);
    g_autoptr(GString) out = g_string_new("write");
    for (int i = 0; i < 2 && family->forms[i] != NULL; i++) {
        char letter = *prefix == 'k' && family->forms[i][0] == 'i' ? 'K' : *prefix;
        g_string_append_printf(out, "%s '%s %c%s' (%s)", i > 0 ? " or" : "", number, letter,
                               family->forms[i], family->meaning[i]);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static const Unit *
find_unit(const Family *family, const char *text, const char *word, GError **error)
{
    for (const Unit *unit = family->units; unit->name != NULL; unit++) {
        if (strcmp(unit->name, word) == 0)
            return unit;
    }
    g_autofree char *number = g_strndup(text, strlen(text) - strlen(word));
    g_autofree char *advice = suggestion(family, g_strstrip(number), word);
    if (*word == '\0')
        g_set_error(error, ZP_QUANTITY_ERROR, ZP_QUANTITY_ERROR_UNIT, "'%s': %s needs its unit; %s",
                    text, family->kind, advice);
    else
        g_set_error(error, ZP_QUANTITY_ERROR, ZP_QUANTITY_ERROR_UNIT,
                    "'%s': '%s' is not a unit of %s, or not a clear one; %s", text, word,
                    family->kind, advice);
    return NULL;
}

static const Unit *
scan(const Family *family, const char *text, ZpQuantityNumber *number, GError **error)
{
    g_autofree char *trimmed = g_strstrip(g_strndup(text, ZP_QUANTITY_MAX_TEXT + 1));
    g_autofree char *word = zp_quantity_number_scan(trimmed, number, error);
    return word != NULL ? find_unit(family, trimmed, word, error) : NULL;
}

/* The largest unit in which `value` reads back exactly with few digits. */
static char *
print_real(const Family *family, double value, gboolean (*parse)(const char *, double *, GError **))
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    char *best = NULL;
    for (const Unit *unit = family->units; unit->name != NULL; unit++) {
        if (unit->power2 != 0)
            continue;
        double scaled = value / pow(10, unit->power10);
        double back = 0;
        if (unit->power10 > 0 && scaled < 1)
            continue;
        char *text = g_strconcat(shortest(scaled, buffer, sizeof buffer), " ", unit->name, NULL);
        if (parse(text, &back, NULL) && back == value && (!best || strlen(text) <= strlen(best))) {
            g_free(best);
            best = text;
        } else {
            g_free(text);
        }
    }
    g_assert(best != NULL);
    return best;
}

/* --- the kinds with units --- */

gboolean
zp_quantity_parse_bytes(const char *text, gint64 *value, GError **error)
{
    ZpQuantityNumber number;
    const Unit *unit = scan(&bytes, text, &number, error);
    if (unit == NULL)
        return FALSE;
    gboolean rounds = unit->power10 + unit->power2 > 0;
    return zp_quantity_number_integer(&number, unit->power10, unit->power2, rounds, text,
                                      "a whole number of bytes", value, error);
}

char *
zp_quantity_print_bytes(gint64 value)
{
    const Unit *best = &byte_units[0];
    gint64 least = value;
    for (const Unit *unit = byte_units; value != 0 && unit->name != NULL; unit++) {
        gint64 size = (gint64)1 << unit->power2;
        for (int i = 0; i < unit->power10; i++)
            size *= 10;
        if (value % size == 0 && value / size < least) {
            least = value / size;
            best = unit;
        }
    }
    return g_strdup_printf("%" G_GINT64_FORMAT " %s", least, best->name);
}

gboolean
zp_quantity_parse_bandwidth(const char *text, double *bytes_per_s, GError **error)
{
    ZpQuantityNumber number;
    const Unit *unit = scan(&bandwidth, text, &number, error);
    return unit != NULL &&
           zp_quantity_number_real(&number, unit->power10, unit->power2, text, bytes_per_s, error);
}

char *
zp_quantity_print_bandwidth(double bytes_per_s)
{
    return print_real(&bandwidth, bytes_per_s, zp_quantity_parse_bandwidth);
}

gboolean
zp_quantity_parse_flops(const char *text, double *flops_per_s, GError **error)
{
    ZpQuantityNumber number;
    const Unit *unit = scan(&flops, text, &number, error);
    return unit != NULL &&
           zp_quantity_number_real(&number, unit->power10, 0, text, flops_per_s, error);
}

char *
zp_quantity_print_flops(double flops_per_s)
{
    return print_real(&flops, flops_per_s, zp_quantity_parse_flops);
}

gboolean
zp_quantity_parse_time(const char *text, ZpTime *time_ps, GError **error)
{
    ZpQuantityNumber number;
    const Unit *unit = scan(&times, text, &number, error);
    return unit != NULL &&
           zp_quantity_number_integer(&number, unit->power10, 0, FALSE, text,
                                      "a whole number of picoseconds", time_ps, error);
}

char *
zp_quantity_print_time(ZpTime time_ps)
{
    const Unit *unit = &time_units[0];
    gint64 size = 1;
    for (gint64 next = 1000; unit[1].name != NULL && time_ps >= next; next *= 1000) {
        size = next;
        unit++;
    }
    gint64 rest = time_ps % size;
    int digits = unit->power10;
    for (; rest != 0 && rest % 10 == 0; rest /= 10)
        digits--;
    if (rest != 0)
        return g_strdup_printf("%" G_GINT64_FORMAT ".%0*" G_GINT64_FORMAT " %s", time_ps / size,
                               digits, rest, unit->name);
    return g_strdup_printf("%" G_GINT64_FORMAT " %s", time_ps / size, unit->name);
}

gboolean
zp_quantity_parse_ratio(const char *text, double *ratio, GError **error)
{
    ZpQuantityNumber number;
    g_autofree char *word = zp_quantity_number_scan(text, &number, error);
    if (word == NULL)
        return FALSE;
    if (*word != '\0' && strcmp(word, "%") != 0) {
        g_set_error(error, ZP_QUANTITY_ERROR, ZP_QUANTITY_ERROR_UNIT,
                    "'%s': a ratio has no unit; write 0.7 or 70 %%", text);
        return FALSE;
    }
    return zp_quantity_number_real(&number, *word == '%' ? -2 : 0, 0, text, ratio, error);
}

char *
zp_quantity_print_ratio(double ratio)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];
    return g_strdup(shortest(ratio, buffer, sizeof buffer));
}

/* --- words --- */

gboolean
zp_quantity_parse_bool(const char *text, gboolean *value, GError **error)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on"};
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = i % 2 == 1;
            return TRUE;
        }
    }
    g_set_error(error, ZP_QUANTITY_ERROR, ZP_QUANTITY_ERROR_SYNTAX,
                "'%s': legal are true, yes, on and false, no, off", text);
    return FALSE;
}

char **
zp_quantity_split_list(const char *text, gsize n_max, GError **error)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    gsize n = 0;
    for (const char *start = text;; start++) {
        const char *end = strchr(start, ',');
        g_autofree char *item = end ? g_strndup(start, (gsize)(end - start)) : g_strdup(start);
        if (*g_strstrip(item) == '\0' || ++n > n_max) {
            g_set_error(error, ZP_QUANTITY_ERROR,
                        n > n_max ? ZP_QUANTITY_ERROR_RANGE : ZP_QUANTITY_ERROR_SYNTAX,
                        n > n_max ? "more than %" G_GSIZE_FORMAT " items in a list"
                                  : "an empty item in a list: items stand between commas",
                        n_max);
            return NULL;
        }
        g_strv_builder_add(builder, item);
        if (end == NULL)
            return g_strv_builder_end(builder);
        start = end;
    }
}
