/* One key while a scenario is resolved: its value, where it comes from, and complaints about it. */
#include "models/words/nearest.h"
#include "scenarios/load/resolve_internal.h"

void
zp_scenario_resolve_complain(ZpScenarioResolve *resolve, ZpSchemaId id, ZpScenarioError code,
                             const char *format, ...)
{
    const ZpSchemaKey *key = zp_schema_key(id);
    const ZpSetting *setting = &resolve->state->settings->keys[id];
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    zp_problems_add_key(resolve->problems, code, setting->given ? setting->origin : NULL,
                        key->section, key->key, what);
}

void
zp_scenario_resolve_warn(ZpScenarioResolve *resolve, ZpSchemaId id, const char *format, ...)
{
    const ZpSchemaKey *key = zp_schema_key(id);
    const ZpSetting *setting = &resolve->state->settings->keys[id];
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_ptr_array_add(resolve->scenario->warnings,
                    g_strdup_printf("%s: [%s] %s: %s",
                                    setting->given ? setting->origin : resolve->problems->name,
                                    key->section, key->key, what));
}

gboolean
zp_scenario_resolve_is_default(const ZpScenarioResolve *resolve, ZpSchemaId id)
{
    const ZpSchemaKey *key = zp_schema_key(id);
    ZpSchemaValue fallback = {0};
    return zp_schema_default(key, &fallback) &&
           zp_schema_value_equal(key, &fallback, &resolve->state->effective[id].value);
}

gboolean
zp_scenario_resolve_says(const ZpScenarioResolve *resolve, ZpSchemaId id)
{
    return zp_scenario_resolve_written(resolve, id) && !zp_scenario_resolve_is_default(resolve, id);
}

static void
put(ZpScenarioResolve *resolve, ZpSchemaId id, const ZpSchemaValue *value, const char *catalogue)
{
    ZpScenarioEffective *effective = &resolve->state->effective[id];
    effective->present = TRUE;
    if (resolve->state->settings->keys[id].given || resolve->own[id])
        return;
    effective->value = *value;
    effective->source = catalogue ? ZP_SCENARIO_CATALOGUE : ZP_SCENARIO_AUTO;
    effective->origin = catalogue;
}

void
zp_scenario_resolve_put_own(ZpScenarioResolve *resolve, ZpSchemaId id, const ZpSchemaValue *value,
                            const char *file)
{
    put(resolve, id, value, file);
    resolve->own[id] = TRUE;
}

void
zp_scenario_resolve_put(ZpScenarioResolve *resolve, ZpSchemaId id, gint64 integer,
                        const char *catalogue)
{
    put(resolve, id, &(ZpSchemaValue){.integer = integer}, catalogue);
}

void
zp_scenario_resolve_put_real(ZpScenarioResolve *resolve, ZpSchemaId id, double real,
                             const char *catalogue)
{
    resolve->nominal[id] = real;
    put(resolve, id, &(ZpSchemaValue){.real = real}, catalogue);
}

double
zp_scenario_resolve_stated(const ZpScenarioResolve *resolve, ZpSchemaId id)
{
    const ZpSchemaKey *key = zp_schema_key(id);
    ZpSchemaValue fallback = {0};
    gboolean whole = key->kind == ZP_SCHEMA_TIME;
    double nominal = resolve->nominal[id];
    if (nominal <= 0.0 && zp_schema_default(key, &fallback))
        nominal = whole ? (double)fallback.integer : fallback.real;
    const ZpSchemaValue *value = &resolve->state->effective[id].value;
    double stated = whole ? (double)value->integer : value->real;
    gboolean says = zp_scenario_resolve_given(resolve, id) || resolve->own[id];
    return says && nominal > 0.0 && stated > 0.0 ? stated / nominal : 1.0;
}

void
zp_scenario_resolve_put_text(ZpScenarioResolve *resolve, ZpSchemaId id, const char *text,
                             const char *catalogue)
{
    put(resolve, id, &(ZpSchemaValue){.text = (char *)(gpointer)text}, catalogue);
}

void
zp_scenario_resolve_unknown(ZpScenarioResolve *resolve, ZpSchemaId id, const char *what,
                            const char *const *names, const char *more)
{
    const char *name = zp_scenario_key_text(resolve, id);
    g_autofree char *hint = zp_nearest_hint(name, names);
    g_autofree char *list = g_strjoinv(", ", (char **)(gpointer)names);
    g_autofree char *legal = g_strconcat("legal are ", list, NULL);
    zp_scenario_resolve_complain(resolve, id, ZP_SCENARIO_ERROR_UNKNOWN, "unknown %s '%s'%s; %s",
                                 what, name, hint, more ? more : legal);
}
