/* What a key means and what it accepts, in words. */
#include "scenarios/language/schema.h"

static void
append_range(GString *out, const ZpSchemaKey *key)
{
    ZpSchemaValue low = {.integer = key->min, .real = key->low};
    ZpSchemaValue high = {.integer = key->max, .real = key->high};
    g_autofree char *from = zp_schema_print(key, &low);
    g_autofree char *to = zp_schema_print(key, &high);
    g_string_append_printf(out, " from %s to %s", from, to);
}

static void
append_choices(GString *out, const ZpSchemaKey *key)
{
    for (const ZpSchemaChoice *choice = key->choices; choice && choice->name; choice++)
        g_string_append_printf(out, "%s%s", choice == key->choices ? " " : ", ", choice->name);
    const char *separator = " ";
    for (int d = 0; d < ZP_N_DTYPES; d++) {
        if ((key->dtypes & 1u << d) == 0)
            continue;
        g_string_append_printf(out, "%s%s", separator, zp_dtype_name((ZpDtype)d));
        separator = ", ";
    }
}

char *
zp_schema_legal(const ZpSchemaKey *key)
{
    static const char *const kinds[ZP_N_SCHEMA_KINDS] = {
        [ZP_SCHEMA_COUNT] = "count",
        [ZP_SCHEMA_BYTES] = "bytes",
        [ZP_SCHEMA_BANDWIDTH] = "bandwidth",
        [ZP_SCHEMA_FLOPS] = "rate of operations",
        [ZP_SCHEMA_TIME] = "time",
        [ZP_SCHEMA_RATIO] = "ratio",
        [ZP_SCHEMA_ENUM] = "one of",
        [ZP_SCHEMA_BOOL] = "true or false",
        [ZP_SCHEMA_DTYPE] = "number format:",
        [ZP_SCHEMA_TEXT] = "text",
    };
    g_autoptr(GString) out = g_string_new(kinds[key->kind]);
    if (key->kind <= ZP_SCHEMA_RATIO)
        append_range(out, key);
    append_choices(out, key);
    if (key->word != NULL)
        g_string_append_printf(out, ", or %s", key->word);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

char *
zp_schema_explain(const ZpSchemaKey *key)
{
    g_autofree char *legal = zp_schema_legal(key);
    g_autoptr(GString) out = g_string_new(NULL);
    g_string_append_printf(out, "%s.\nType: %s.\n", key->help, legal);
    for (const ZpSchemaChoice *choice = key->choices; choice && choice->name; choice++)
        g_string_append_printf(out, "  %s: %s\n", choice->name, choice->help);
    if (key->fallback == NULL)
        g_string_append(out, "Default: none.\n");
    else if (key->rule != NULL)
        g_string_append_printf(out, "Default: auto (%s).\n", key->rule);
    else
        g_string_append_printf(out, "Default: %s.\n", *key->fallback ? key->fallback : "empty");
    g_string_append_printf(out, "Example: %s = %s\n", key->key, key->example);
    return g_string_free(g_steal_pointer(&out), FALSE);
}
