/* Values of keys: as text, compared, and into the job and back. */
#include <math.h>
#include <string.h>

#include "scenarios/language/schema.h"

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
