/* Keys that are legal and do nothing here, or not what they seem to. */
#include <string.h>

#include "models/families/architecture.h"
#include "scenarios/load/resolve_internal.h"

/* Keys of a framework's section play a part under its runtime alone. */
static void
mark_frameworks(ZpScenarioResolve *resolve)
{
    static const struct {
        ZpSchemaId first, last;
        const char *runtimes[5];
    } sections[] = {
        {ZP_KEY_DS_CONTIGUOUS, ZP_KEY_DS_NVME_WRITE, {"deepspeed"}},
        {ZP_KEY_FS_OPTIMIZER, ZP_KEY_FS_SHARD_EVEN, {"fsdp2", "fsdp1", "ddp", "none"}},
    };
    const char *runtime = zp_scenario_key_text(resolve, ZP_KEY_RUNTIME);
    for (gsize s = 0; s < G_N_ELEMENTS(sections); s++) {
        gboolean present = g_strv_contains(sections[s].runtimes, runtime);
        for (int id = (int)sections[s].first; id <= (int)sections[s].last; id++) {
            resolve->state->effective[id].present = present;
            if (!present && zp_scenario_resolve_written(resolve, (ZpSchemaId)id))
                zp_scenario_resolve_warn(resolve, (ZpSchemaId)id,
                                         "has no effect under the runtime %s", runtime);
        }
    }
}

static void
mark_overlap_gather(ZpScenarioResolve *resolve)
{
    gint64 stage = zp_scenario_key_integer(resolve, ZP_KEY_STAGE);
    gboolean ideal = strcmp(zp_scenario_key_text(resolve, ZP_KEY_RUNTIME), "ideal") == 0;
    if (zp_scenario_resolve_says(resolve, ZP_KEY_OVERLAP_GATHER) &&
        (!ideal || stage == 0 || stage == 3))
        zp_scenario_resolve_warn(resolve, ZP_KEY_OVERLAP_GATHER,
                                 "has no effect but at stages 1 and 2 under the runtime ideal");
}

void
zp_scenario_mark_frameworks(ZpScenarioResolve *resolve)
{
    mark_frameworks(resolve);
    mark_overlap_gather(resolve);
}

static void
warn_stage(ZpScenarioResolve *resolve)
{
    gint64 stage = zp_scenario_key_integer(resolve, ZP_KEY_STAGE);
    gint64 wrap = zp_scenario_key_integer(resolve, ZP_KEY_WRAP);
    static const ZpSchemaId stage3[] = {ZP_KEY_PREFETCH, ZP_KEY_PREFETCH_FORWARD,
                                        ZP_KEY_PREFETCH_BACKWARD, ZP_KEY_RESHARD};
    /* Frameworks prefetch under other names of stages too; what does nothing there is found out. */
    gboolean ideal = strcmp(zp_scenario_key_text(resolve, ZP_KEY_RUNTIME), "ideal") == 0;
    for (gsize i = 0; ideal && stage < 3 && i < G_N_ELEMENTS(stage3); i++) {
        gboolean direction =
            stage3[i] == ZP_KEY_PREFETCH_FORWARD || stage3[i] == ZP_KEY_PREFETCH_BACKWARD;
        if (direction && zp_scenario_key_integer(resolve, stage3[i]) ==
                             zp_scenario_key_integer(resolve, ZP_KEY_PREFETCH))
            continue; /* says no more than prefetch */
        if (zp_scenario_resolve_says(resolve, stage3[i]))
            zp_scenario_resolve_warn(resolve, stage3[i], "has no effect below stage 3");
    }
    if (wrap != ZP_WRAP_BLOCK && zp_scenario_resolve_says(resolve, ZP_KEY_WRAP_BLOCKS))
        zp_scenario_resolve_warn(resolve, ZP_KEY_WRAP_BLOCKS,
                                 "has an effect under wrap = block only");
    if (wrap != ZP_WRAP_SIZE && zp_scenario_resolve_says(resolve, ZP_KEY_WRAP_ELEMENTS))
        zp_scenario_resolve_warn(resolve, ZP_KEY_WRAP_ELEMENTS,
                                 "has an effect under wrap = size only");
}

/* A model known by its size or layer by layer says itself what it keeps. */
static gboolean
warn_without_operators(ZpScenarioResolve *resolve)
{
    static const ZpSchemaId keys[] = {ZP_KEY_SELECTIVE, ZP_KEY_REENTRANT, ZP_KEY_LOSS,
                                      ZP_KEY_LOSS_CHUNKS};
    if (resolve->route != ZP_ROUTE_TOTAL && resolve->route != ZP_ROUTE_LAYERS)
        return FALSE;
    for (gsize k = 0; k < G_N_ELEMENTS(keys); k++)
        if (zp_scenario_resolve_says(resolve, keys[k]))
            zp_scenario_resolve_warn(resolve, keys[k],
                                     "has no effect on a model described in this way");
    return TRUE;
}

static void
warn_model(ZpScenarioResolve *resolve)
{
    gint64 checkpointing = zp_scenario_key_integer(resolve, ZP_KEY_CHECKPOINTING);
    gint64 loss = zp_scenario_key_integer(resolve, ZP_KEY_LOSS);
    const struct {
        ZpSchemaId key;
        gboolean works;
        const char *where;
    } rules[] = {
        {ZP_KEY_SELECTIVE, checkpointing == ZP_CHECKPOINTING_SELECTIVE,
         "under checkpointing = selective"},
        {ZP_KEY_REENTRANT, checkpointing == ZP_CHECKPOINTING_FULL, "under checkpointing = full"},
        {ZP_KEY_LOSS_CHUNKS, loss >= ZP_ARCHITECTURE_LOSS(ZP_LOSS_CHUNKS), "with a chunked loss"},
    };
    if (warn_without_operators(resolve))
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(rules); i++)
        if (!rules[i].works && zp_scenario_resolve_says(resolve, rules[i].key))
            zp_scenario_resolve_warn(resolve, rules[i].key, "has an effect %s only",
                                     rules[i].where);
}

void
zp_scenario_warn_idle(ZpScenarioResolve *resolve)
{
    warn_stage(resolve);
    warn_model(resolve);
}
