#include "scenarios/checks/check_file.h"

#include <stdlib.h>
#include <string.h>

#include "scenarios/checks/check_model_internal.h"
#include "scenarios/imports/huggingface/config.h"
#include "scenarios/imports/import.h"
#include "scenarios/load/scenario.h"
#include "scenarios/readers/readers.h"
#include "scenarios/sweeps/effect.h"

void
zp_check_file_clear(ZpCheckFile *check)
{
    g_clear_pointer(&check->report, zp_import_report_free);
    g_clear_pointer(&check->model, zp_model_free);
    g_clear_pointer(&check->headline, g_free);
}

/* One line of another reader's error: "FILE:LINE: [group] key: text" or "FILE: line N: key: text".
 */
static void
add_error_line(ZpImportReport *report, const char *text)
{
    const char *rest = text;
    int line = 0;
    if (g_str_has_prefix(rest, report->messages->file)) {
        rest += strlen(report->messages->file);
        char *end = NULL;
        if (*rest == ':' && g_ascii_isdigit(rest[1]))
            line = (int)strtol(rest + 1, &end, 10);
        else if (g_str_has_prefix(rest, ": line "))
            line = (int)strtol(rest + strlen(": line "), &end, 10);
        if (end != NULL)
            rest = end;
        while (*rest == ':' || *rest == ' ')
            rest++;
    }
    /* "[group] key: what" and "key 'NAME': what" start with the key. */
    const char *colon = strstr(rest, ": ");
    g_autofree char *key =
        colon != NULL && (*rest == '[' || memchr(rest, ' ', (gsize)(colon - rest)) == NULL)
            ? g_strndup(rest, (gsize)(colon - rest))
            : g_strdup("");
    zp_import_message_add(report->messages, ZP_IMPORT_ERROR, line, 0, key, NULL, "%s",
                          *key != '\0' ? colon + 2 : rest);
}

static void
add_error(ZpImportReport *report, const GError *error)
{
    g_auto(GStrv) lines = g_strsplit(error->message, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if (**line != '\0')
            add_error_line(report, *line);
    }
}

static void
add_warnings(ZpImportReport *report, const GPtrArray *warnings)
{
    for (guint i = 0; i < warnings->len; i++) {
        const char *text = g_ptr_array_index(warnings, i);
        if (text != NULL)
            zp_import_message_add(report->messages, ZP_IMPORT_WARNING, 0, 0, "", NULL, "%s", text);
    }
}

static void
read_model(ZpCheckFile *check, const char *path)
{
    ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    check->model = zp_hf_load(path, &options, warnings, &error);
    add_warnings(check->report, warnings);
    if (check->model == NULL) {
        add_error(check->report, error);
        return;
    }
    check->headline = g_strdup_printf(
        "%s: %" G_GINT64_FORMAT " parameters (%" G_GINT64_FORMAT " active), %d blocks of class %s, "
        "head %s",
        check->model->family, check->model->n_elements, check->model->n_active_elements,
        check->model->n_blocks, zp_classes_block(check->model),
        check->model->tied ? "tied" : "not tied");
}

/* A scenario that its runtime refuses is told when it is run. */
static void
add_idle(ZpImportReport *report, const ZpScenario *scenario)
{
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    if (!zp_step_simulate(step, &scenario->job, NULL, NULL, &summary, NULL))
        return;
    g_autoptr(GPtrArray) idle =
        zp_effect_idle(scenario, &summary, zp_step_tape(step)->n_instrs, NULL);
    g_ptr_array_add(idle, NULL);
    add_warnings(report, idle);
}

static void
read_scenario(ZpCheckFile *check, const char *path, const char *const *sets)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = zp_scenario_load(path, sets, &error);
    if (scenario == NULL) {
        add_error(check->report, error);
        return;
    }
    add_warnings(check->report, scenario->warnings);
    add_idle(check->report, scenario);
    check->headline =
        g_strdup_printf("%s, %" G_GINT64_FORMAT " parameters, %d ranks, runtime %s, stage %d",
                        scenario->model->name, scenario->model->n_elements,
                        scenario->job.world.ranks, scenario->job.runtime, scenario->job.zero.stage);
}

gboolean
zp_check_file_read(const char *path, const char *const *sets, ZpCheckFile *check, GError **error)
{
    *check = (ZpCheckFile){.report = zp_import_check(path, error)};
    if (check->report == NULL)
        return FALSE;
    if (check->report->kind == ZP_IMPORT_MODEL)
        read_model(check, path);
    else if (check->report->kind == ZP_IMPORT_SCENARIO)
        read_scenario(check, path, sets);
    check->report->verdict = zp_import_message_verdict(check->report->messages);
    return TRUE;
}

char *
zp_check_file_text(const ZpCheckFile *check)
{
    g_autofree char *report = zp_import_report_text(check->report);
    if (check->headline == NULL)
        return g_steal_pointer(&report);
    g_autofree char *units = check->model != NULL ? zp_check_model_text(check->model) : NULL;
    return g_strconcat(report, check->headline, "\n", units, NULL);
}

char *
zp_check_file_json(const ZpCheckFile *check)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();
    json_builder_begin_object(builder);
    zp_json_write_text(builder, "schema", "zeropeak-check/1");
    zp_import_report_members(check->report, builder);
    if (check->model != NULL)
        zp_check_model_members(check->model, builder);
    return zp_json_write_finish(builder);
}
