/* Values of keys: text to typed value. */
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
    g_autofree char *hint = zp_nearest_hint(text, names);
    g_autofree char *legal = zp_schema_legal(key);
    g_set_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_CHOICE, "'%s': legal is %s%s", text, legal,
                hint);
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

gboolean
zp_schema_default(const ZpSchemaKey *key, ZpSchemaValue *value)
{
    if (key->fallback == NULL || key->rule != NULL)
        return FALSE;
    if (key->kind == ZP_SCHEMA_TEXT) {
        *value = (ZpSchemaValue){.text = (char *)(gpointer)key->fallback};
        return TRUE;
    }
    gboolean ok = zp_schema_parse(key, key->fallback, value, NULL);
    g_assert(ok);
    return TRUE;
}
