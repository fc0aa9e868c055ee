#include "scenarios/import_settings.h"

#include <string.h>

#include "scenarios/ds_apply.h"
#include "scenarios/fsdp_apply.h"
#include "scenarios/import.h"

/* A job with the structs its keys reach. */
typedef struct {
    ZpJob job;
    ZpDeepspeed deepspeed;
    ZpFsdp fsdp;
    ZpDsConfig *ds_config; /* what `deepspeed` borrows from; or NULL */
    ZpFsdpConfig *fsdp_config;
} Settings;

static void
settings_clear(Settings *settings)
{
    g_clear_pointer(&settings->ds_config, zp_ds_config_free);
    g_clear_pointer(&settings->fsdp_config, zp_fsdp_config_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Settings, settings_clear)

static ZpSchemaPlaces
places_of(Settings *settings)
{
    return (ZpSchemaPlaces){&settings->job, &settings->deepspeed, &settings->fsdp};
}

static ZpDsContext
context_of(const ZpScenario *scenario)
{
    return (ZpDsContext){
        .hidden = scenario->model->hidden,
        .parameters = scenario->model->n_trainable_elements,
        .world = scenario->job.world.ranks,
        .micro_batch = scenario->job.training.micro_batch,
        .accumulation = scenario->job.training.accumulation,
        .precision = scenario->job.precision.gathered,
    };
}

static gboolean
report(const ZpImportMessages *messages, GPtrArray *warnings, GError **error)
{
    g_autofree char *first = zp_import_message_first_error(messages);
    if (first != NULL) {
        g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_CONFLICT, "%s", first);
        return FALSE;
    }
    for (guint i = 0; i < messages->list->len; i++) {
        const ZpImportMessage *message = g_ptr_array_index(messages->list, i);
        if (message->severity != ZP_IMPORT_NOTE)
            g_ptr_array_add(warnings, g_strdup_printf("%s:%d: %s: %s", messages->file,
                                                      message->line, message->key, message->text));
    }
    return TRUE;
}

static gboolean
apply_deepspeed(const ZpDsConfig *config, Settings *settings, GPtrArray *warnings, GError **error)
{
    return report(config->messages, warnings, error) &&
           zp_ds_apply_job(config, &settings->deepspeed, &settings->job, error);
}

static gboolean
apply_fsdp(ZpFsdpSource source, const char *path, const char *text, gsize length,
           const ZpScenario *scenario, Settings *settings, GPtrArray *warnings, GError **error)
{
    ZpFsdpContext context = {.model_elements = scenario->model->n_elements,
                             .deepspeed = context_of(scenario)};
    ZpFsdpConfig *config = zp_fsdp_config_parse(source, path, text, length, &context);
    settings->fsdp_config = config;
    if (!report(config->messages, warnings, error))
        return FALSE;
    if (config->deepspeed != NULL) /* its messages are among the launcher's */
        return zp_ds_apply_job(config->deepspeed, &settings->deepspeed, &settings->job, error);
    return zp_fsdp_apply_job(config, &settings->fsdp, &settings->job, error);
}

static gboolean
apply_file(const char *path, const ZpScenario *scenario, Settings *settings, GPtrArray *warnings,
           GError **error)
{
    g_autofree char *text = NULL;
    gsize length = 0;
    if (!zp_import_read(path, &text, &length, error))
        return FALSE;
    ZpImportKind kind = zp_import_detect(path, text, length);
    if (kind == ZP_IMPORT_DEEPSPEED) {
        ZpDsContext context = context_of(scenario);
        settings->ds_config = zp_ds_config_parse(path, text, length, &context);
        return apply_deepspeed(settings->ds_config, settings, warnings, error);
    }
    if (kind == ZP_IMPORT_ACCELERATE)
        return apply_fsdp(ZP_FSDP_ACCELERATE, path, text, length, scenario, settings, warnings,
                          error);
    if (kind == ZP_IMPORT_TRAINER)
        return apply_fsdp(ZP_FSDP_TRAINER, path, text, length, scenario, settings, warnings, error);
    if (kind == ZP_IMPORT_TORCHTITAN)
        return apply_fsdp(ZP_FSDP_TORCHTITAN, path, text, length, scenario, settings, warnings,
                          error);
    g_set_error(
        error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_CONFLICT,
        "%s: no settings file: legal are ds_config.json, accelerate YAML, HF Trainer JSON and "
        "torchtitan TOML",
        path);
    return FALSE;
}

static void
clear_setting(gpointer data)
{
    g_free(((ZpImportSetting *)data)->text);
}

static void
add_text(GArray *list, ZpSchemaId id, const char *before, const char *after)
{
    if (g_strcmp0(before, after) == 0 || after == NULL)
        return;
    ZpImportSetting setting = {zp_schema_key(id), g_strdup(after)};
    g_array_append_val(list, setting);
}

static char *
joined(const char *const *names)
{
    return names != NULL && *names != NULL ? g_strjoinv(", ", (char **)(gpointer)names)
                                           : g_strdup("none");
}

static GArray *
differences(Settings *before, Settings *after)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(ZpImportSetting));
    g_array_set_clear_func(list, clear_setting);
    ZpSchemaPlaces from = places_of(before), to = places_of(after);
    gsize n = 0;
    const ZpSchemaKey *keys = zp_schema_table(&n);
    for (gsize k = 0; k < n; k++) {
        if (keys[k].size == 0)
            continue;
        ZpSchemaValue old, new;
        zp_schema_fetch(&keys[k], &from, &old);
        zp_schema_fetch(&keys[k], &to, &new);
        if (zp_schema_value_equal(&keys[k], &old, &new))
            continue;
        ZpImportSetting setting = {&keys[k], zp_schema_print(&keys[k], &new)};
        g_array_append_val(list, setting);
    }
    add_text(list, ZP_KEY_RUNTIME, before->job.runtime, after->job.runtime);
    add_text(list, ZP_KEY_OPTIMIZER, before->job.optimizer->name, after->job.optimizer->name);
    g_autofree char *old_leaves = joined(before->deepspeed.leaf_classes);
    g_autofree char *new_leaves = joined(after->deepspeed.leaf_classes);
    add_text(list, ZP_KEY_DS_LEAF_CLASSES, old_leaves, new_leaves);
    return list;
}

GArray *
zp_import_settings(const ZpScenario *scenario, const char *path, GPtrArray *warnings,
                   GError **error)
{
    Settings before = {
        .job = scenario->job, .deepspeed = *scenario->job.deepspeed, .fsdp = *scenario->job.fsdp};
    g_auto(Settings) after = before;
    if (!apply_file(path, scenario, &after, warnings, error))
        return NULL;
    return differences(&before, &after);
}
