#include "scenarios/settings/problems.h"

#include "scenarios/language/errors.h"
#include "scenarios/readers/readers.h"

/* More would only push the first ones off the screen. */
#define MAX_MESSAGES 50

G_DEFINE_QUARK(zp_scenario_error_quark, zp_scenario_error)

void
zp_problems_init(ZpProblems *problems, const char *name)
{
    *problems = (ZpProblems){
        .name = zp_import_message_clean(name),
        .messages = g_ptr_array_new_with_free_func(g_free),
    };
}

void
zp_problems_clear(ZpProblems *problems)
{
    g_clear_pointer(&problems->name, g_free);
    g_clear_pointer(&problems->messages, g_ptr_array_unref);
}

void
zp_problems_add(ZpProblems *problems, ZpScenarioError code, const char *where, const char *format,
                ...)
{
    if (problems->messages->len == MAX_MESSAGES) {
        problems->dropped = TRUE;
        return;
    }
    if (problems->messages->len == 0)
        problems->first = code;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *line = g_strconcat(where ? where : problems->name, ": ", what, NULL);
    g_ptr_array_add(problems->messages, zp_import_message_clean(line));
}

void
zp_problems_add_key(ZpProblems *problems, ZpScenarioError code, const char *where,
                    const char *section, const char *key, const char *what)
{
    zp_problems_add(problems, code, where, "[%s] %s: %s", section, key, what);
}

gboolean
zp_problems_full(const ZpProblems *problems)
{
    return problems->dropped;
}

gboolean
zp_problems_any(const ZpProblems *problems)
{
    return problems->messages->len > 0;
}

gboolean
zp_problems_raise(const ZpProblems *problems, GError **error)
{
    if (problems->messages->len == 0)
        return TRUE;
    g_autoptr(GString) all = g_string_new(NULL);
    for (guint i = 0; i < problems->messages->len; i++)
        g_string_append_printf(all, "%s%s", i > 0 ? "\n" : "",
                               (const char *)g_ptr_array_index(problems->messages, i));
    if (problems->dropped)
        g_string_append_printf(all, "\n%s: and more", problems->name);
    g_set_error_literal(error, ZP_SCENARIO_ERROR, (int)problems->first, all->str);
    return FALSE;
}

ZpScenarioError
zp_problems_reason(const GError *error)
{
    if (error->domain == ZP_SCENARIO_ERROR)
        return (ZpScenarioError)error->code;
    if (g_error_matches(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_UNKNOWN) ||
        g_error_matches(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_AMBIGUOUS))
        return ZP_SCENARIO_ERROR_UNKNOWN;
    if (g_error_matches(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_RANGE))
        return ZP_SCENARIO_ERROR_RANGE;
    if (g_error_matches(error, ZP_QUANTITY_ERROR, ZP_QUANTITY_ERROR_RANGE))
        return ZP_SCENARIO_ERROR_OVERFLOW;
    return ZP_SCENARIO_ERROR_TYPE;
}
