#include "scenarios/language/axis.h"

#include <string.h>

#define MAX_ITEMS 10000

const ZpSchemaKey *
zp_axis_key(const char *name, char **full, GError **error)
{
    const char *last = strrchr(name, '.');
    gboolean layer = g_str_has_prefix(name, "layer.") && last > name + strlen("layer.");
    const ZpSchemaKey *key = NULL;
    if (layer) {
        key = zp_schema_find_in("layer", last + 1);
        if (key == NULL)
            g_set_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_UNKNOWN, "a layer has no key '%s'",
                        last + 1);
    } else {
        key = zp_schema_find(name, error);
    }
    if (key == NULL)
        return NULL;
    if (strcmp(key->section, "sweep") == 0 || (!layer && strcmp(key->section, "layer") == 0)) {
        g_set_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_UNKNOWN,
                    layer ? "'%s' cannot be swept"
                          : "'%s' cannot be swept; a layer's key is layer.NAME.KEY",
                    name);
        return NULL;
    }
    *full = layer ? g_strdup(name) : g_strconcat(key->section, ".", key->key, NULL);
    return key;
}

typedef struct {
    gint64 first, last;
    gint64 step; /* added, or the factor */
    gboolean geometric;
} Range;

static gboolean
fail_range(const char *item, const char *why, GError **error)
{
    g_set_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_RANGE,
                "'%s': %s; a range is 1..8, 8..64 +8 or 1..64 x2", item, why);
    return FALSE;
}

/* Cuts " x2" or " +8" off the end of `text`; FALSE if what is there is no such step. */
static gboolean
cut_step(const ZpSchemaKey *key, char *text, const char *item, Range *range, GError **error)
{
    char *mark = NULL;
    for (char *c = text; *c != '\0'; c++) {
        if ((*c == ' ' || *c == '\t') && (c[1] == 'x' || c[1] == '+'))
            mark = c;
    }
    range->step = 1;
    range->geometric = FALSE;
    if (mark == NULL)
        return key->kind == ZP_SCHEMA_COUNT ||
               fail_range(item, "a range with units needs its step", error);
    range->geometric = mark[1] == 'x';
    *mark = '\0';
    if (range->geometric) {
        if (!zp_quantity_parse_count(mark + 2, NULL, &range->step, error))
            return FALSE;
        return range->step >= 2 || fail_range(item, "a factor is 2 or more", error);
    }
    ZpSchemaKey free_key = *key; /* a step is of the key's kind, but not bound to its range */
    free_key.min = 0;
    ZpSchemaValue step;
    if (!zp_schema_parse(&free_key, g_strstrip(mark + 2), &step, error))
        return FALSE;
    range->step = step.integer;
    return range->step >= 1 || fail_range(item, "a step is 1 or more", error);
}

static gboolean
parse_range(const ZpSchemaKey *key, const char *item, const char *dots, Range *range,
            GError **error)
{
    if (key->kind != ZP_SCHEMA_COUNT && key->kind != ZP_SCHEMA_BYTES && key->kind != ZP_SCHEMA_TIME)
        return fail_range(item, "only counts, bytes and times have ranges", error);
    g_autofree char *first = g_strstrip(g_strndup(item, (gsize)(dots - item)));
    g_autofree char *last = g_strdup(dots + 2);
    ZpSchemaValue from, to;
    if (!cut_step(key, last, item, range, error) || !zp_schema_parse(key, first, &from, error) ||
        !zp_schema_parse(key, g_strstrip(last), &to, error))
        return FALSE;
    range->first = from.integer;
    range->last = to.integer;
    if (from.integer > to.integer)
        return fail_range(item, "it ends before it starts", error);
    if (range->geometric && from.integer < 1)
        return fail_range(item, "a geometric range starts at 1 or more", error);
    return TRUE;
}

/* The value after `value`, or -1. */
static gint64
next_of(const Range *range, gint64 value)
{
    if (range->geometric)
        return value > range->last / range->step ? -1 : value * range->step;
    return value > range->last - range->step ? -1 : value + range->step;
}

static gint64
count_of(const Range *range)
{
    if (!range->geometric)
        return (range->last - range->first) / range->step + 1;
    gint64 n = 0;
    for (gint64 value = range->first; value >= 0; value = next_of(range, value))
        n++;
    return n;
}

gint64
zp_axis_count(const ZpSchemaKey *key, const char *text, GError **error)
{
    g_auto(GStrv) items = zp_quantity_split_list(text, MAX_ITEMS, error);
    gint64 n = 0;
    for (gsize i = 0; items != NULL && items[i] != NULL; i++) {
        const char *dots = strstr(items[i], "..");
        ZpSchemaValue value;
        Range range;
        if (dots != NULL && key->kind != ZP_SCHEMA_TEXT) {
            if (!parse_range(key, items[i], dots, &range, error))
                return -1;
            gint64 more = count_of(&range);
            n = n > G_MAXINT64 - more ? G_MAXINT64 : n + more;
        } else if (strcmp(items[i], "auto") == 0) {
            n++;
        } else {
            if (!zp_schema_parse(key, items[i], &value, error))
                return -1;
            zp_schema_value_clear(&value);
            n++;
        }
    }
    return items != NULL ? n : -1;
}

char **
zp_axis_expand(const ZpSchemaKey *key, const char *text)
{
    g_auto(GStrv) items = zp_quantity_split_list(text, MAX_ITEMS, NULL);
    g_autoptr(GStrvBuilder) values = g_strv_builder_new();
    for (gsize i = 0; items[i] != NULL; i++) {
        const char *dots = strstr(items[i], "..");
        Range range;
        if (dots == NULL || key->kind == ZP_SCHEMA_TEXT) {
            g_strv_builder_add(values, items[i]);
            continue;
        }
        gboolean ok = parse_range(key, items[i], dots, &range, NULL);
        g_assert(ok);
        for (gint64 value = range.first; value >= 0; value = next_of(&range, value)) {
            g_autofree char *one = zp_schema_print(key, &(ZpSchemaValue){.integer = value});
            g_strv_builder_add(values, one);
        }
    }
    return g_strv_builder_end(values);
}
