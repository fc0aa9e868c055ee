#include "scenarios/imports/settings.h"

#include <string.h>

#include "models/parallel/parallel.h"
#include "scenarios/imports/deepspeed/config.h"
#include "scenarios/imports/import.h"
#include "scenarios/imports/settings_launcher_internal.h"
#include "scenarios/imports/settings_table_internal.h"

/* A job with the structs its keys reach. */
typedef struct {
    ZpJob job;
    ZpDeepspeed deepspeed;
    ZpFsdp fsdp;
    ZpDsConfig *ds_config; /* what `deepspeed` borrows from; or NULL */
    ZpFsdpConfig *fsdp_config;
    const char *name; /* of the file, in messages */
    int stage;        /* of DeepSpeed, that will run */
    /* The job that will run, where the scenario's own words win over the file's: its data x context
     * parallel ranks, and whether it has tensor parallel ones. */
    gint32 data_ranks;
    gboolean tensor;
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

/* The scenario's job as its keys have it: all GPUs, the whole sequence. */
static ZpJob
whole_job(const ZpImportScene *scene)
{
    ZpJob job = *scene->job;
    job.world.ranks = (gint32)scene->ranks;
    job.training.sequence = scene->sequence;
    return job;
}

/* Does the file say it, or does it follow from what the file says? */
static gboolean
is_said(const ZpDsConfig *config, ZpDsKey key)
{
    const ZpDsValue *value = zp_ds_config_value(config, key);
    return value->origin != ZP_DS_FROM_DEFAULT && value->known;
}

/* The optimizer by the name the file has for it. */
static void
apply_optimizer(const ZpDsConfig *config, const ZpImportScene *scene, ZpJob *job,
                GPtrArray *warnings)
{
    const ZpDsValue *type = zp_ds_config_value(config, ZP_DS_OPTIMIZER_TYPE);
    if (!is_said(config, ZP_DS_OPTIMIZER_TYPE) || zp_settings_given(scene->own, ZP_KEY_OPTIMIZER))
        return;
    const ZpOptimizer *optimizer = zp_optimizer_find(type->text);
    if (optimizer != NULL)
        job->optimizer = optimizer;
    else
        g_ptr_array_add(warnings,
                        g_strdup_printf("%s:%d: optimizer.type: %s is not modelled, %s stands for "
                                        "it (`zeropeak list optimizers` shows what is)",
                                        config->messages->file, type->line, type->text,
                                        job->optimizer->name));
}

static gboolean
apply_deepspeed(ZpDsConfig *config, const ZpImportScene *scene, Settings *settings,
                GPtrArray *warnings, GError **error)
{
    /* What holds at a stage is asked of the stage that will run. */
    int own = zp_ds_config_stage(config);
    if (zp_settings_given(scene->own, ZP_KEY_STAGE))
        config->values[ZP_DS_STAGE].integer = scene->job->zero.stage;
    settings->stage = zp_ds_config_stage(config);
    if (!zp_ds_apply_job(config, &settings->deepspeed, &settings->job, error))
        return FALSE;
    settings->job.zero.stage = own;
    apply_optimizer(config, scene, &settings->job, warnings);
    if (settings->deepspeed.leaf_names != NULL)
        g_ptr_array_add(warnings,
                        g_strdup_printf("%s:%d: zero_optimization.leaf_module.names: a scenario "
                                        "has no such key (name their class in leaf_module.classes)",
                                        config->messages->file,
                                        zp_ds_config_value(config, ZP_DS_LEAF_NAMES)->line));
    return TRUE;
}

static gboolean
apply_fsdp(const ZpImportScene *scene, Settings *settings, GPtrArray *warnings, GError **error)
{
    ZpFsdpConfig *config = settings->fsdp_config;
    if (!report(config->messages, warnings, error))
        return FALSE;
    if (config->deepspeed == NULL) {
        ZpParallel held = {0};
        if (!zp_import_settings_apply_launcher(config, scene, &settings->fsdp, &settings->job,
                                               &held, error))
            return FALSE;
        settings->data_ranks = zp_parallel_data_ranks(&held, settings->job.world.ranks);
        settings->tensor = held.tensor > 1;
        return TRUE;
    }
    if (config->world > 0 && config->world <= G_MAXINT32) {
        ZpWorld *world = &settings->job.world;
        world->ranks = (gint32)config->world;
        world->shard_group = zp_parallel_data_ranks(&world->parallel, world->ranks);
        settings->data_ranks = world->shard_group;
    }
    /* Its messages are among the launcher's. */
    return apply_deepspeed(config->deepspeed, scene, settings, warnings, error);
}

static gboolean
apply_file(const char *path, const ZpImportScene *scene, Settings *settings, GPtrArray *warnings,
           GError **error)
{
    static const ZpFsdpSource sources[] = {
        [ZP_IMPORT_ACCELERATE] = ZP_FSDP_ACCELERATE,
        [ZP_IMPORT_TRAINER] = ZP_FSDP_TRAINER,
        [ZP_IMPORT_TORCHTITAN] = ZP_FSDP_TORCHTITAN,
    };
    g_autofree char *text = NULL;
    gsize length = 0;
    if (!zp_import_read(path, &text, &length, error))
        return FALSE;
    ZpImportKind kind = zp_import_detect(path, text, length);
    if (kind == ZP_IMPORT_DEEPSPEED) {
        ZpDsContext context = zp_import_settings_context(scene);
        settings->ds_config = zp_ds_config_parse(settings->name, text, length, &context);
        return report(settings->ds_config->messages, warnings, error) &&
               apply_deepspeed(settings->ds_config, scene, settings, warnings, error);
    }
    if (kind == ZP_IMPORT_ACCELERATE || kind == ZP_IMPORT_TRAINER || kind == ZP_IMPORT_TORCHTITAN) {
        settings->fsdp_config =
            zp_import_settings_parse_launcher(sources[kind], settings->name, text, length, scene);
        return apply_fsdp(scene, settings, warnings, error);
    }
    g_set_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_CONFLICT,
                "%s: no settings file: legal are ds_config.json, accelerate YAML, HF Trainer JSON "
                "and torchtitan TOML%s",
                path,
                kind == ZP_IMPORT_MODEL ? "; a model's config.json goes to [model] config" : "");
    return FALSE;
}

static void
clear_setting(gpointer data)
{
    g_free(((ZpSettingsEntry *)data)->text);
    g_free(((ZpSettingsEntry *)data)->origin);
}

static const ZpDsConfig *
deepspeed_of(const Settings *settings)
{
    return settings->ds_config != NULL     ? settings->ds_config
           : settings->fsdp_config != NULL ? settings->fsdp_config->deepspeed
                                           : NULL;
}

/* The last name of a dotted key, without accelerate's prefix. */
static const char *
short_name(const char *key)
{
    const char *dot = strrchr(key, '.');
    const char *name = dot != NULL ? dot + 1 : key;
    return g_str_has_prefix(name, "fsdp_") ? name + strlen("fsdp_") : name;
}

static int
fsdp_line(const ZpFsdpConfig *config, const ZpImportSettingsRow *row)
{
    for (gsize n = 0; n < G_N_ELEMENTS(row->fsdp) && row->fsdp[n] != NULL; n++) {
        for (guint r = 0; r < config->rows->len; r++) {
            const ZpImportRow *stated = g_ptr_array_index(config->rows, r);
            if (stated->line > 0 && strcmp(short_name(stated->key), row->fsdp[n]) == 0)
                return stated->line;
        }
    }
    return 0;
}

/* DeepSpeed's format comes from either of two switches. */
static int
deepspeed_line(const ZpDsConfig *config, const ZpImportSettingsRow *row)
{
    ZpDsKey key = row->deepspeed;
    if (key == ZP_DS_BF16_ENABLED && zp_ds_config_boolean(config, ZP_DS_FP16_ENABLED))
        key = ZP_DS_FP16_ENABLED;
    return is_said(config, key) || zp_ds_schema_is_block(zp_ds_schema_get(key)->kind)
               ? zp_ds_config_value(config, key)->line
               : 0;
}

/* Does the program that the file is for have a say in this key, and where? */
static gboolean
find_source(const Settings *settings, const ZpImportSettingsRow *row, int *line, gboolean *stated)
{
    const ZpDsConfig *deepspeed = deepspeed_of(settings);
    gboolean launcher = settings->fsdp_config != NULL && row->fsdp[0] != NULL;
    *line = launcher ? fsdp_line(settings->fsdp_config, row) : 0;
    *stated = *line > 0;
    if (deepspeed == NULL)
        return launcher;
    if (row->deepspeed == ZP_DS_NONE)
        return launcher && row->id == ZP_KEY_RANKS;
    unsigned stages = zp_ds_schema_get(row->deepspeed)->stages;
    gboolean applies = stages == 0 || (stages >> settings->stage & 1) != 0;
    int own = deepspeed_line(deepspeed, row);
    *line = own > 0 ? own : *line;
    *stated = applies && is_said(deepspeed, row->deepspeed);
    return TRUE;
}

static void
add(GArray *list, const Settings *settings, ZpSchemaId id, char *text, int line)
{
    ZpSettingsEntry setting = {zp_schema_key(id), text,
                               line > 0
                                   ? g_strdup_printf("%s:%d", settings->name, line)
                                   : g_strdup_printf("%s: default of its program", settings->name)};
    g_array_append_val(list, setting);
}

/* Keys that would only restate what the scenario does anyway, or of which the file says less than
 * the key it stands in seems to. */
static gboolean
is_idle(const Settings *settings, ZpSchemaId id)
{
    const ZpJob *job = &settings->job;
    const ZpFsdpConfig *config = settings->fsdp_config;
    return (id == ZP_KEY_SHARD_GROUP && job->world.shard_group == settings->data_ranks) ||
           (id == ZP_KEY_RESHARD && job->zero.stage < 3) ||
           (id == ZP_KEY_RANKS && config != NULL && config->world == 0) ||
           (id == ZP_KEY_SEQUENCE_PARALLEL && !settings->tensor) ||
           (id == ZP_KEY_PIPELINE && config != NULL && config->parallel.pipeline == 0);
}

/* How the model is built is no part of a job. */
static gboolean
add_model(GArray *list, const Settings *settings, ZpSchemaId id, int line)
{
    const ZpFsdpConfig *config = settings->fsdp_config;
    if (id != ZP_KEY_COMPILE)
        return FALSE;
    if (config->source == ZP_FSDP_TORCHTITAN && (line > 0 || config->compile != ZP_COMPILE_NONE))
        add(list, settings, id,
            zp_schema_print(zp_schema_key(id), &(ZpSchemaValue){.integer = config->compile}), line);
    return TRUE;
}

static void
add_row(GArray *list, Settings *before, Settings *after, const ZpImportSettingsRow *row)
{
    const ZpSchemaKey *key = zp_schema_key(row->id);
    int line = 0;
    gboolean stated = FALSE;
    if (!find_source(after, row, &line, &stated) || is_idle(after, row->id) ||
        add_model(list, after, row->id, line))
        return;
    if (row->id == ZP_KEY_RUNTIME) {
        add(list, after, row->id, g_strdup(after->job.runtime), line);
        return;
    }
    ZpSchemaPlaces from = places_of(before), to = places_of(after);
    ZpSchemaValue old, new;
    zp_schema_fetch(key, &from, &old);
    zp_schema_fetch(key, &to, &new);
    if (stated || row->own_rule || !zp_schema_value_equal(key, &old, &new))
        add(list, after, row->id, zp_schema_print(key, &new), line);
}

/* torchtitan repeats keys and values before its attention (models/attention.py, repeat_kv). */
static void
add_attention(GArray *list, const ZpImportScene *scene, const Settings *settings)
{
    ZpSchemaValue repeated = {.integer = ZP_ATTENTION_FLASH_REPEATED};
    if (settings->fsdp_config != NULL && settings->fsdp_config->source == ZP_FSDP_TORCHTITAN &&
        scene->attention)
        add(list, settings, ZP_KEY_ATTENTION,
            zp_schema_print(zp_schema_key(ZP_KEY_ATTENTION), &repeated), 0);
}

static GArray *
collect(const ZpImportScene *scene, Settings *before, Settings *after)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(ZpSettingsEntry));
    g_array_set_clear_func(list, clear_setting);
    gsize n = 0;
    const ZpImportSettingsRow *rows = zp_import_settings_table(&n);
    for (gsize r = 0; r < n; r++)
        add_row(list, before, after, &rows[r]);
    add_attention(list, scene, after);
    const ZpDsConfig *deepspeed = deepspeed_of(after);
    if (after->job.optimizer != before->job.optimizer)
        add(list, after, ZP_KEY_OPTIMIZER, g_strdup(after->job.optimizer->name),
            zp_ds_config_value(deepspeed, ZP_DS_OPTIMIZER_TYPE)->line);
    const char *const *leaves = deepspeed != NULL ? after->deepspeed.leaf_classes : NULL;
    if (leaves != NULL && *leaves != NULL)
        add(list, after, ZP_KEY_DS_LEAF_CLASSES, g_strjoinv(", ", (char **)(gpointer)leaves),
            zp_ds_config_value(deepspeed, ZP_DS_LEAF_CLASSES)->line);
    return list;
}

GArray *
zp_import_settings(const ZpImportScene *scene, const char *path, const char *name,
                   GPtrArray *warnings, GError **error)
{
    Settings before = {.job = whole_job(scene),
                       .deepspeed = *scene->job->deepspeed,
                       .fsdp = *scene->job->fsdp,
                       .name = name,
                       .data_ranks = scene->job->world.ranks};
    g_auto(Settings) after = before;
    if (!apply_file(path, scene, &after, warnings, error))
        return NULL;
    return collect(scene, &before, &after);
}
