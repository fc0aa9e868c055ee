#include "models/families/architecture.h"

#include "models/families/build.h"

static void complain(GString *list, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
complain(GString *list, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (list->len > 0)
        g_string_append(list, "; ");
    g_string_append_vprintf(list, format, arguments);
    va_end(arguments);
}

typedef struct {
    const char *key;
    gint64 value;
} Needed;

/* Missing keys (0) are named together, so that one run tells all. */
static gboolean
check_needed(const ZpArchitecture *a, GError **error)
{
    const Needed needed[] = {
        {"layers", a->layers}, {"hidden", a->hidden},         {"heads", a->heads},
        {"ffn", a->ffn},       {"vocabulary", a->vocabulary},
    };
    g_autoptr(GString) missing = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(needed); i++)
        if (needed[i].value == 0)
            g_string_append_printf(missing, "%s%s", missing->len ? ", " : "", needed[i].key);
    if (missing->len == 0)
        return TRUE;
    g_set_error(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_MISSING, "missing: %s",
                missing->str);
    return FALSE;
}

gboolean
zp_architecture_check(const ZpArchitecture *a, GError **error)
{
    if (!check_needed(a, error))
        return FALSE;
    g_autoptr(GString) wrong = g_string_new(NULL);
    const Needed dimensions[] = {
        {"layers", a->layers},         {"hidden", a->hidden},       {"heads", a->heads},
        {"kv_heads", a->kv_heads},     {"head_size", a->head_size}, {"ffn", a->ffn},
        {"vocabulary", a->vocabulary}, {"positions", a->positions},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(dimensions); i++)
        if (dimensions[i].value < 0 || dimensions[i].value > ZP_ARCHITECTURE_MAX_DIMENSION)
            complain(wrong, "%s = %" G_GINT64_FORMAT " is not between 1 and %" G_GINT64_FORMAT,
                     dimensions[i].key, dimensions[i].value, ZP_ARCHITECTURE_MAX_DIMENSION);
    if (wrong->len == 0) {
        if (a->head_size == 0 && a->hidden % a->heads != 0)
            complain(wrong,
                     "hidden = %" G_GINT64_FORMAT " is not a multiple of heads = %" G_GINT64_FORMAT
                     " and no head_size is given",
                     a->hidden, a->heads);
        if (a->kv_heads > 0 && a->heads % a->kv_heads != 0)
            complain(wrong,
                     "heads = %" G_GINT64_FORMAT
                     " is not a multiple of kv_heads = %" G_GINT64_FORMAT,
                     a->heads, a->kv_heads);
        if (a->norms_per_block < 0 || a->norms_per_block > 4 || a->norms_per_block == 3)
            complain(wrong, "norms_per_block = %d is not 1, 2 or 4", a->norms_per_block);
    }
    if (wrong->len == 0)
        return TRUE;
    g_set_error_literal(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_RANGE, wrong->str);
    return FALSE;
}

static void
set_symbols(const ZpArchitecture *a, ZpSymbols *symbols)
{
    const Needed values[] = {
        {"L", a->layers},
        {"h", a->hidden},
        {"heads", a->heads},
        {"kv_heads", a->kv_heads ? a->kv_heads : a->heads},
        {"d", a->head_size ? a->head_size : a->hidden / a->heads},
        {"f", a->ffn},
        {"V", a->vocabulary},
        {"positions", a->positions},
        {"gated", a->gated},
        {"tied", a->tied},
        {"qb", a->attention_bias || a->qkv_bias},
        {"ob", a->attention_bias},
        {"mb", a->mlp_bias},
        {"hb", a->head_bias},
        {"nb", a->norm_bias},
        {"ln", a->norm_bias},
        {"final_norm", a->final_norm},
        {"norms", a->norms_per_block ? a->norms_per_block : 2},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(values); i++)
        zp_symbols_set(symbols, values[i].key, values[i].value);
}

ZpModel *
zp_architecture_build(const ZpArchitecture *architecture, const ZpArchitectureOptions *options,
                      const char *name, GError **error)
{
    if (!zp_architecture_check(architecture, error))
        return NULL;
    const char *wanted = architecture->family ? architecture->family : "";
    g_autoptr(ZpFamily) family = zp_family_load(*wanted ? wanted : "generic");
    if (family == NULL) {
        g_set_error(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_UNSUPPORTED,
                    "family '%s' is not known", wanted);
        return NULL;
    }
    g_autoptr(ZpSymbols) symbols = zp_symbols_new();
    set_symbols(architecture, symbols);
    return zp_architecture_build_family(family, symbols, NULL, options, name, NULL, error);
}
