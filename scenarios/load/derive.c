/* The rules behind "auto", in the order in which one needs another. */
#include <string.h>

#include "models/runtimes/registry.h"
#include "scenarios/load/resolve_internal.h"
#include "scenarios/readers/readers.h"

static void
find_optimizer(ZpScenarioResolve *resolve)
{
    resolve->optimizer = zp_optimizer_find(zp_scenario_key_text(resolve, ZP_KEY_OPTIMIZER));
    if (resolve->optimizer != NULL)
        return;
    gsize n = 0;
    const ZpOptimizer *table = zp_optimizer_table(&n);
    g_autofree const char **names = g_new0(const char *, n + 1);
    for (gsize i = 0; i < n; i++)
        names[i] = table[i].name;
    zp_scenario_resolve_unknown(resolve, ZP_KEY_OPTIMIZER, "optimizer", names, NULL);
}

static void
find_runtime(ZpScenarioResolve *resolve)
{
    resolve->runtime = zp_registry_find(zp_scenario_key_text(resolve, ZP_KEY_RUNTIME));
    if (resolve->runtime != NULL) {
        gboolean ideal = strcmp(resolve->runtime->name, "ideal") == 0;
        zp_scenario_resolve_put(resolve, ZP_KEY_ALLOCATOR,
                                ideal ? ZP_ALLOCATOR_NONE : ZP_ALLOCATOR_CACHING, NULL);
        return;
    }
    gsize n = 0;
    const ZpRuntime *const *table = zp_registry_table(&n);
    g_autofree const char **names = g_new0(const char *, n + 1);
    for (gsize i = 0; i < n; i++)
        names[i] = table[i]->name;
    zp_scenario_resolve_unknown(resolve, ZP_KEY_RUNTIME, "runtime", names, NULL);
}

static void
derive_frameworks(ZpScenarioResolve *resolve)
{
    zp_scenario_resolve_put(resolve, ZP_KEY_DS_OVERLAP,
                            zp_scenario_key_integer(resolve, ZP_KEY_STAGE) == 3, NULL);
    zp_scenario_mark_frameworks(resolve);
}

static void
derive_precision(ZpScenarioResolve *resolve)
{
    ZpDtype parameter = (ZpDtype)zp_scenario_key_integer(resolve, ZP_KEY_PARAMETER);
    int bits = zp_dtype_bits(parameter);
    zp_scenario_resolve_put(resolve, ZP_KEY_GRADIENT, bits < 16 ? ZP_DTYPE_BF16 : parameter, NULL);
    zp_scenario_resolve_put(resolve, ZP_KEY_GATHERED, parameter, NULL);
    zp_scenario_resolve_put(resolve, ZP_KEY_REDUCE,
                            zp_scenario_key_integer(resolve, ZP_KEY_GRADIENT), NULL);
    ZpDtype gathered = (ZpDtype)zp_scenario_key_integer(resolve, ZP_KEY_GATHERED);
    gboolean computes = zp_dtype_bits(gathered) >= 16 || gathered == ZP_DTYPE_FP8;
    computes = computes && zp_scenario_key_integer(resolve, ZP_KEY_AUTOCAST) == 0;
    zp_scenario_resolve_put(resolve, ZP_KEY_COMPUTE, computes ? gathered : ZP_DTYPE_BF16, NULL);
    if (resolve->optimizer == NULL)
        return;
    gboolean master = zp_optimizer_keeps_master(resolve->optimizer, parameter, ZP_DTYPE_FP32);
    zp_scenario_resolve_put(resolve, ZP_KEY_MASTER, master ? ZP_DTYPE_FP32 : ZP_DTYPE_NONE, NULL);
    ZpDtype asked = (ZpDtype)zp_scenario_key_integer(resolve, ZP_KEY_MASTER);
    if (asked != ZP_DTYPE_NONE && !zp_optimizer_keeps_master(resolve->optimizer, parameter, asked))
        zp_scenario_resolve_warn(
            resolve, ZP_KEY_MASTER, "has no effect: %s keeps no %s copy beside %s parameters",
            resolve->optimizer->name, zp_dtype_name(asked), zp_dtype_name(parameter));
    /* An optimizer without moments has no format for them; any legal one does. */
    ZpDtype moments = zp_optimizer_moments(resolve->optimizer, parameter);
    if (moments == ZP_DTYPE_NONE)
        moments = ZP_DTYPE_FP32;
    zp_scenario_resolve_put(resolve, ZP_KEY_MOMENTS, moments, NULL);
}

/* A name that can stand in a file: what a path may hold and a value may not is replaced. */
static char *
name_from_path(const char *path)
{
    g_autofree char *base = g_path_get_basename(path);
    if (g_str_has_suffix(base, ".ini"))
        base[strlen(base) - 4] = '\0';
    g_autofree char *valid = zp_import_message_clean(base);
    for (char *c = valid; *c != '\0'; c++) {
        if (*c == '#' || *c == ' ')
            *c = '_';
    }
    return g_strdup(strcmp(valid, "auto") == 0 || *valid == '\0' ? "scenario" : valid);
}

static void
derive_name(ZpScenarioResolve *resolve)
{
    if (zp_scenario_resolve_given(resolve, ZP_KEY_NAME))
        return;
    if (resolve->base != NULL && resolve->base->state->name != NULL) {
        resolve->state->name = g_ref_string_acquire(resolve->base->state->name);
    } else {
        g_autofree char *text = name_from_path(resolve->state->settings->path);
        resolve->state->name = g_ref_string_new(text);
    }
    zp_scenario_resolve_put_text(resolve, ZP_KEY_NAME, resolve->state->name, NULL);
}

void
zp_scenario_derive(ZpScenarioResolve *resolve)
{
    derive_name(resolve);
    find_optimizer(resolve);
    find_runtime(resolve);
    derive_precision(resolve);
    zp_scenario_resolve_put(resolve, ZP_KEY_SHARD_GROUP, zp_scenario_data_ranks(resolve), NULL);
    gint64 prefetch = zp_scenario_key_integer(resolve, ZP_KEY_PREFETCH);
    zp_scenario_resolve_put(resolve, ZP_KEY_PREFETCH_FORWARD, prefetch, NULL);
    zp_scenario_resolve_put(resolve, ZP_KEY_PREFETCH_BACKWARD, prefetch, NULL);
    derive_frameworks(resolve);
    zp_scenario_read_machine(resolve);
    zp_scenario_derive_hardware(resolve);
    zp_scenario_derive_prices(resolve);
}
