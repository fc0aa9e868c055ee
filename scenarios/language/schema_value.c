/* Values of keys: text to typed value, back, and into the job. */
#include <math.h>
#include <string.h>

#include "models/words/nearest.h"
#include "scenarios/language/schema.h"

static gboolean
check_range(const ZpSchemaKey *key, const char *text, const ZpSchemaValue *value, GError **error)
{
    gboolean whole =
        key->kind == ZP_SCHEMA_COUNT || key->kind == ZP_SCHEMA_BYTES || key->kind == ZP_SCHEMA_TIME;
    if (whole ? value->integer >= key->min && value->integer <= key->max
              : value->real >= key->low && value->real <= key->high)
        return TRUE;
    g_autofree char *legal = zp_schema_legal(key);
    g_set_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_RANGE, "'%s' is out of range: legal is %s",
                text, legal);
    return FALSE;
}

static gboolean
refuse_word(const ZpSchemaKey *key, const char *text, const char *const *names, GError **error)
{
    const char *nearest = zp_nearest_find(text, names);
    g_autofree char *legal = zp_schema_legal(key);
    g_set_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_CHOICE, "'%s': legal is %s%s%s%s", text,
                legal, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                nearest ? "'?" : "");
    return FALSE;
}

static gboolean
parse_enum(const ZpSchemaKey *key, const char *text, ZpSchemaValue *value, GError **error)
{
    const char *names[16] = {0};
    for (gsize i = 0; key->choices[i].name != NULL && i + 1 < G_N_ELEMENTS(names); i++) {
        names[i] = key->choices[i].name;
        if (strcmp(names[i], text) == 0) {
            value->integer = key->choices[i].value;
            return TRUE;
        }
    }
    return refuse_word(key, text, names, error);
}

static gboolean
parse_dtype(const ZpSchemaKey *key, const char *text, ZpSchemaValue *value, GError **error)
{
    const char *names[ZP_N_DTYPES + 1] = {0};
    gsize n = 0;
    for (int d = 0; d < ZP_N_DTYPES; d++) {
        if (key->dtypes & 1u << d)
            names[n++] = zp_dtype_name((ZpDtype)d);
    }
    ZpDtype dtype = ZP_DTYPE_NONE;
    if (!zp_dtype_parse(text, &dtype) || (key->dtypes & 1u << dtype) == 0)
        return refuse_word(key, text, names, error);
    value->integer = dtype;
    return TRUE;
}

static gboolean
parse_number(const ZpSchemaKey *key, const char *text, ZpSchemaValue *value, GError **error)
{
    gboolean ok = FALSE;
    switch (key->kind) {
    case ZP_SCHEMA_COUNT:
        ok = zp_quantity_parse_count(text, key->unit, &value->integer, error);
        break;
    case ZP_SCHEMA_BYTES:
        ok = zp_quantity_parse_bytes(text, &value->integer, error);
        break;
    case ZP_SCHEMA_BANDWIDTH:
        ok = zp_quantity_parse_bandwidth(text, &value->real, error);
        break;
    case ZP_SCHEMA_FLOPS:
        ok = zp_quantity_parse_flops(text, &value->real, error);
        break;
    case ZP_SCHEMA_TIME:
        ok = zp_quantity_parse_time(text, &value->integer, error);
        break;
    case ZP_SCHEMA_RATIO:
        ok = zp_quantity_parse_ratio(text, &value->real, error);
        break;
    case ZP_SCHEMA_ENUM:
    case ZP_SCHEMA_BOOL:
    case ZP_SCHEMA_DTYPE:
    case ZP_SCHEMA_TEXT:
    case ZP_N_SCHEMA_KINDS:
        g_assert_not_reached();
    }
    return ok && check_range(key, text, value, error);
}

gboolean
zp_schema_parse(const ZpSchemaKey *key, const char *text, ZpSchemaValue *value, GError **error)
{
    *value = (ZpSchemaValue){0};
    if (key->word != NULL && key->kind != ZP_SCHEMA_TEXT && strcmp(text, key->word) == 0) {
        value->integer = key->word_value;
        return TRUE;
    }
    if (key->kind == ZP_SCHEMA_TEXT) {
        value->text = g_ref_string_new(text);
        return TRUE;
    }
    if (key->kind == ZP_SCHEMA_ENUM)
        return parse_enum(key, text, value, error);
    if (key->kind == ZP_SCHEMA_DTYPE)
        return parse_dtype(key, text, value, error);
    if (key->kind == ZP_SCHEMA_BOOL) {
        gboolean truth = FALSE;
        if (!zp_quantity_parse_bool(text, &truth, error))
            return FALSE;
        value->integer = truth;
        return TRUE;
    }
    return parse_number(key, text, value, error);
}

static const char *
choice_name(const ZpSchemaKey *key, gint64 value)
{
    for (const ZpSchemaChoice *choice = key->choices; choice->name != NULL; choice++) {
        if (choice->value == value)
            return choice->name;
    }
    g_assert_not_reached();
}

char *
zp_schema_print(const ZpSchemaKey *key, const ZpSchemaValue *value)
{
    gboolean whole =
        key->kind == ZP_SCHEMA_COUNT || key->kind == ZP_SCHEMA_BYTES || key->kind == ZP_SCHEMA_TIME;
    if (key->word != NULL && whole && value->integer == key->word_value)
        return g_strdup(key->word);
    switch (key->kind) {
    case ZP_SCHEMA_COUNT:
        return zp_quantity_print_count(value->integer, key->unit);
    case ZP_SCHEMA_BYTES:
        return zp_quantity_print_bytes(value->integer);
    case ZP_SCHEMA_BANDWIDTH:
        return zp_quantity_print_bandwidth(value->real);
    case ZP_SCHEMA_FLOPS:
        return zp_quantity_print_flops(value->real);
    case ZP_SCHEMA_TIME:
        return zp_quantity_print_time(value->integer);
    case ZP_SCHEMA_RATIO:
        return zp_quantity_print_ratio(value->real);
    case ZP_SCHEMA_ENUM:
        return g_strdup(choice_name(key, value->integer));
    case ZP_SCHEMA_BOOL:
        return g_strdup(value->integer ? "true" : "false");
    case ZP_SCHEMA_DTYPE:
        return g_strdup(zp_dtype_name((ZpDtype)value->integer));
    case ZP_SCHEMA_TEXT:
        return g_strdup(value->text);
    case ZP_N_SCHEMA_KINDS:
        break;
    }
    g_assert_not_reached();
}

gboolean
zp_schema_value_equal(const ZpSchemaKey *key, const ZpSchemaValue *a, const ZpSchemaValue *b)
{
    if (key->kind == ZP_SCHEMA_TEXT)
        return g_strcmp0(a->text, b->text) == 0;
    return a->integer == b->integer && !(a->real < b->real) && !(a->real > b->real);
}

void
zp_schema_value_copy(ZpSchemaValue *to, const ZpSchemaValue *from)
{
    *to = *from;
    if (from->text != NULL)
        to->text = g_ref_string_acquire(from->text);
}

void
zp_schema_value_clear(ZpSchemaValue *value)
{
    g_clear_pointer(&value->text, g_ref_string_release);
}

static char *
place_of(const ZpSchemaKey *key, const ZpSchemaPlaces *places)
{
    switch (key->place) {
    case ZP_SCHEMA_IN_JOB:
        return (char *)places->job;
    case ZP_SCHEMA_IN_DEEPSPEED:
        return (char *)places->deepspeed;
    case ZP_SCHEMA_IN_FSDP:
        return (char *)places->fsdp;
    }
    g_assert_not_reached();
}

static gboolean
is_real(const ZpSchemaKey *key)
{
    return key->kind == ZP_SCHEMA_BANDWIDTH || key->kind == ZP_SCHEMA_FLOPS ||
           key->kind == ZP_SCHEMA_RATIO;
}

void
zp_schema_fetch(const ZpSchemaKey *key, const ZpSchemaPlaces *places, ZpSchemaValue *value)
{
    g_assert(key->size != 0);
    const char *source = place_of(key, places) + key->offset;
    *value = (ZpSchemaValue){0};
    if (is_real(key) && key->size == sizeof(double)) {
        memcpy(&value->real, source, sizeof(double));
        return;
    }
    if (key->size == sizeof(gint64)) {
        memcpy(&value->integer, source, sizeof(gint64));
    } else {
        gint32 narrow = 0;
        memcpy(&narrow, source, sizeof narrow);
        value->integer = narrow;
    }
    /* A ratio in a 32-bit place is in parts per million. */
    if (is_real(key))
        value->real = (double)value->integer / 1e6;
}

void
zp_schema_store(const ZpSchemaKey *key, const ZpSchemaValue *value, const ZpSchemaPlaces *places)
{
    if (key->size == 0)
        return;
    char *target = place_of(key, places) + key->offset;
    gboolean real = is_real(key);
    if (real && key->size == sizeof(double)) {
        memcpy(target, &value->real, sizeof(double));
        return;
    }
    /* A ratio in a 32-bit place is in parts per million. */
    gint64 integer = real ? llround(value->real * 1e6) : value->integer;
    if (key->size == sizeof(gint64)) {
        memcpy(target, &integer, sizeof(gint64));
    } else {
        gint32 narrow = (gint32)integer;
        g_assert(key->size == sizeof(gint32) && narrow == integer);
        memcpy(target, &narrow, sizeof(gint32));
    }
}
