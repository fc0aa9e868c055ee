#include "scenarios/imports/settings_launcher_internal.h"

#include "models/parallel/parallel.h"
#include "scenarios/imports/classes.h"
#include "scenarios/imports/fsdp/config.h"

ZpDsContext
zp_import_settings_context(const ZpImportScene *scene)
{
    return (ZpDsContext){
        .hidden = scene->job->model->hidden,
        .parameters = scene->job->model->n_trainable_elements,
        .world = scene->job->world.ranks,
        .micro_batch = scene->job->training.micro_batch,
        .accumulation = scene->job->training.accumulation,
        .precision = scene->job->precision.gathered,
    };
}

/* Degrees that the scenario gives itself; 0: it does not. */
static ZpParallel
own_parallel(const ZpImportScene *scene)
{
    const ZpParallel *own = &scene->job->world.parallel;
    return (ZpParallel){
        .tensor = zp_settings_given(scene->own, ZP_KEY_TENSOR) ? own->tensor : 0,
        .context = zp_settings_given(scene->own, ZP_KEY_CONTEXT) ? own->context : 0,
        .pipeline = zp_settings_given(scene->own, ZP_KEY_PIPELINE) ? own->pipeline : 0,
        .sequence = own->sequence,
    };
}

/* Would a file's pipeline run?  Its own program has a runtime and a stage that have none. */
static gboolean
has_pipeline(const ZpImportScene *scene)
{
    ZpJob trial = {
        .runtime = scene->job->runtime,
        .world.parallel.pipeline = 2,
        .training.sequence = 1,
        .zero.stage = scene->job->zero.stage,
    };
    return zp_settings_given(scene->own, ZP_KEY_PIPELINE) ||
           (zp_settings_given(scene->own, ZP_KEY_RUNTIME) &&
            zp_settings_given(scene->own, ZP_KEY_STAGE) && zp_parallel_check(&trial, 2, NULL));
}

ZpFsdpConfig *
zp_import_settings_parse_launcher(ZpFsdpSource source, const char *name, const char *text,
                                  gsize length, const ZpImportScene *scene)
{
    g_autofree const char **classes = zp_classes_all(scene->job->model);
    const char *block = zp_classes_block(scene->job->model);
    ZpFsdpContext context = {
        .model_classes = classes,
        .block_class = block != NULL && *block != '\0' ? block : NULL,
        .model_elements = scene->job->model->n_elements,
        .deepspeed = zp_import_settings_context(scene),
        .gpus = scene->ranks,
        .parallel = own_parallel(scene),
        .pipeline = has_pipeline(scene),
    };
    if (!zp_settings_given(scene->own, ZP_KEY_RANKS))
        context.deepspeed.world = context.gpus = 0; /* the file may tell */
    ZpFsdpConfig *config = zp_fsdp_config_parse(source, name, text, length, &context);
    if (zp_settings_given(scene->own, ZP_KEY_RANKS))
        config->world = 0;
    else if (config->world == 0)
        config->world = config->degrees;
    return config;
}

/* What follows from several keys follows from those that will hold: here the scenario's own words
 * stand in for the file's, which are put back for the list. */
gboolean
zp_import_settings_apply_launcher(ZpFsdpConfig *config, const ZpImportScene *scene, ZpFsdp *fsdp,
                                  ZpJob *job, ZpParallel *held, GError **error)
{
    ZpParallel file = config->parallel, own = own_parallel(scene);
    gint64 micro_batch = config->micro_batch;
    config->parallel.tensor = own.tensor > 0 ? 0 : file.tensor;
    config->parallel.context = own.context > 0 ? 0 : file.context;
    config->parallel.pipeline = own.pipeline > 0 ? 0 : file.pipeline;
    if (zp_settings_given(scene->own, ZP_KEY_MICRO_BATCH))
        config->micro_batch = 0;
    gboolean ok = zp_fsdp_apply_job(config, fsdp, job, error);
    config->parallel = file;
    config->micro_batch = micro_batch;
    if (!ok)
        return FALSE;
    ZpParallel *parallel = &job->world.parallel;
    *held = *parallel;
    parallel->tensor = file.tensor > 0 ? file.tensor : parallel->tensor;
    parallel->context = file.context > 0 ? file.context : parallel->context;
    parallel->pipeline = file.pipeline > 0 ? file.pipeline : parallel->pipeline;
    parallel->sequence = file.tensor > 0 ? file.sequence : parallel->sequence;
    job->training.micro_batch = micro_batch > 0 ? micro_batch : job->training.micro_batch;
    return TRUE;
}
