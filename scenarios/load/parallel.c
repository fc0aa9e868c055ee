/* Tensor, sequence, context and pipeline parallelism: keys of [parallel] and their rules. */
#include "models/parallel/parallel.h"
#include "models/families/architecture.h"
#include "scenarios/load/resolve_internal.h"

static ZpParallel
parallel_of(const ZpScenarioResolve *resolve)
{
    return (ZpParallel){
        .tensor = (gint32)zp_scenario_key_integer(resolve, ZP_KEY_TENSOR),
        .context = (gint32)zp_scenario_key_integer(resolve, ZP_KEY_CONTEXT),
        .pipeline = (gint32)zp_scenario_key_integer(resolve, ZP_KEY_PIPELINE),
        .sequence = (gboolean)zp_scenario_key_integer(resolve, ZP_KEY_SEQUENCE_PARALLEL),
    };
}

gint64
zp_scenario_data_ranks(const ZpScenarioResolve *resolve)
{
    gint64 cut = zp_scenario_key_integer(resolve, ZP_KEY_TENSOR) *
                 zp_scenario_key_integer(resolve, ZP_KEY_PIPELINE);
    return MAX(1, zp_scenario_key_integer(resolve, ZP_KEY_RANKS) / cut);
}

static void
complain(ZpScenarioResolve *resolve, const GError *error)
{
    static const ZpSchemaId keys[] = {
        [ZP_PARALLEL_ERROR_TENSOR] = ZP_KEY_TENSOR,
        [ZP_PARALLEL_ERROR_SEQUENCE] = ZP_KEY_SEQUENCE_PARALLEL,
        [ZP_PARALLEL_ERROR_CONTEXT] = ZP_KEY_CONTEXT,
        [ZP_PARALLEL_ERROR_PIPELINE] = ZP_KEY_PIPELINE,
    };
    zp_scenario_resolve_complain(resolve, keys[error->code], ZP_SCENARIO_ERROR_CONFLICT, "%s",
                                 error->message);
}

void
zp_scenario_check_parallel(ZpScenarioResolve *resolve)
{
    ZpParallel parallel = parallel_of(resolve);
    ZpJob job = {
        .runtime = resolve->runtime->name,
        .training.sequence = zp_scenario_key_integer(resolve, ZP_KEY_SEQUENCE),
        .world.parallel = parallel,
        .zero.stage = (int)zp_scenario_key_integer(resolve, ZP_KEY_STAGE),
    };
    g_autoptr(GError) error = NULL;
    if (!zp_parallel_check(&job, zp_scenario_key_integer(resolve, ZP_KEY_RANKS), &error))
        complain(resolve, error);
    if (parallel.context > 1 &&
        zp_scenario_key_integer(resolve, ZP_KEY_ATTENTION) == ZP_ATTENTION_EAGER)
        zp_scenario_resolve_complain(resolve, ZP_KEY_CONTEXT, ZP_SCENARIO_ERROR_CONFLICT,
                                     "context parallelism needs model.attention = flash");
    if (parallel.sequence && parallel.tensor == 1)
        zp_scenario_resolve_warn(resolve, ZP_KEY_SEQUENCE_PARALLEL,
                                 "has no effect without parallel.tensor");
    if (parallel.tensor > zp_scenario_key_integer(resolve, ZP_KEY_GPUS))
        zp_scenario_resolve_warn(resolve, ZP_KEY_TENSOR,
                                 "tensor parallel ranks span nodes of %" G_GINT64_FORMAT
                                 " GPUs: each layer waits for the network",
                                 zp_scenario_key_integer(resolve, ZP_KEY_GPUS));
    if (parallel.pipeline > zp_scenario_key_integer(resolve, ZP_KEY_ACCUMULATION))
        zp_scenario_resolve_warn(resolve, ZP_KEY_PIPELINE,
                                 "%" G_GINT64_FORMAT
                                 " micro-batches (training.accumulation) do not fill the stages",
                                 zp_scenario_key_integer(resolve, ZP_KEY_ACCUMULATION));
}

gboolean
zp_scenario_cut_model(ZpScenarioResolve *resolve, ZpModel *model)
{
    ZpParallel parallel = parallel_of(resolve);
    g_autoptr(GError) error = NULL;
    if (zp_parallel_cut(model, &parallel, (ZpDtype)zp_scenario_key_integer(resolve, ZP_KEY_COMPUTE),
                        &error))
        return TRUE;
    complain(resolve, error);
    return FALSE;
}

gboolean
zp_scenario_cut_stages(ZpScenarioResolve *resolve, ZpScenarioModel *model)
{
    gint32 pipeline = (gint32)zp_scenario_key_integer(resolve, ZP_KEY_PIPELINE);
    g_autoptr(GError) error = NULL;
    if (pipeline == 1)
        return TRUE;
    model->last_stage = zp_parallel_cut_stage(model->model, pipeline, &error);
    if (model->last_stage != NULL)
        return TRUE;
    complain(resolve, error);
    return FALSE;
}

/* The slow rank is one of the data parallel ranks: those that share its matrices are as slow. */
void
zp_scenario_place_parallel(ZpScenarioResolve *resolve)
{
    ZpJob *job = &resolve->scenario->job;
    gint32 tensor = zp_parallel_tensor(&job->world.parallel);
    zp_parallel_place(job, job->world.ranks);
    if (job->simulation.slow_rank != ZP_MODEL_NONE)
        job->simulation.slow_rank = job->simulation.slow_rank / tensor % job->world.ranks;
}
