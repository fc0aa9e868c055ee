/* Reads cases, plays them, and takes the same figures of the tape as were taken of the run: what is
 * allocated in the order of the host. */
#include "check_e2e/e2e.h"
#include "models/step/step.h"
#include "models/words/vocabulary.h"
#include "scenarios/load/scenario.h"

#include <glib/gstdio.h>

const char *const e2e_figure_names[E2E_FIGURES] = {
    "peak", "forward", "backward", "optimizer", "start", "end_of_forward",
};

void
e2e_case_free(E2eCase *item)
{
    g_free(item->id);
    g_free(item->family);
    g_free(item->refused);
    g_ptr_array_unref(item->features);
    g_free(item);
}

static void
clear_figures(E2eFigures *figures)
{
    for (int f = 0; f < E2E_FIGURES; f++)
        figures->bytes[f] = E2E_UNKNOWN;
}

static void
raise_to(E2eFigures *figures, E2eFigure figure, gint64 bytes)
{
    figures->bytes[figure] = MAX(figures->bytes[figure], bytes);
}

/* A phase's largest counts what lives when it begins. */
static void
take_figures(const ZpTape *tape, E2eFigures *figures)
{
    static const E2eFigure of_phase[ZP_N_PHASES] = {
        [ZP_PHASE_FORWARD] = E2E_FORWARD,
        [ZP_PHASE_BACKWARD] = E2E_BACKWARD,
        [ZP_PHASE_OPTIMIZER] = E2E_OPTIMIZER,
    };
    gint64 live = 0;
    int phase = ZP_PHASE_INIT;
    clear_figures(figures);
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        gboolean stepped = tape->n_steps > 0 && i >= tape->step_begin[tape->n_steps - 1];
        if (stepped && figures->bytes[E2E_START] == E2E_UNKNOWN)
            figures->bytes[E2E_START] = live;
        if (stepped && instr->phase == ZP_PHASE_BACKWARD && phase == ZP_PHASE_FORWARD &&
            figures->bytes[E2E_END_OF_FORWARD] == E2E_UNKNOWN)
            figures->bytes[E2E_END_OF_FORWARD] = live;
        phase = instr->phase;
        E2eFigure figure = of_phase[phase];
        if (stepped && figure != E2E_PEAK)
            raise_to(figures, figure, live);
        gint64 sign = instr->op == ZP_TAPE_ALLOC ? 1 : instr->op == ZP_TAPE_FREE ? -1 : 0;
        if (sign != 0 && tape->buffers[instr->a].space == ZP_TAPE_SPACE_DEVICE)
            live += sign * tape->buffers[instr->a].bytes;
        if (stepped && figure != E2E_PEAK)
            raise_to(figures, figure, live);
    }
}

static gboolean
simulate(E2eCase *item, const char *text, GError **error)
{
    g_autoptr(ZpScenario) scenario = zp_scenario_parse(text, -1, item->id, NULL, error);
    if (scenario == NULL)
        return FALSE;
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    if (!zp_step_simulate(step, &scenario->job, NULL, NULL, &summary, error))
        return FALSE;
    take_figures(zp_step_tape(step), &item->simulated);
    item->simulated.bytes[E2E_PEAK] = summary.peak_bytes;
    item->simulated_parameters = scenario->model->n_elements;
    return TRUE;
}

static gint64
raw_of(JsonObject *object, const char *name)
{
    if (object == NULL || !json_object_has_member(object, name))
        return E2E_UNKNOWN;
    return json_object_get_int_member(json_object_get_object_member(object, name), "raw");
}

static void
read_figures(JsonObject *record, E2eFigures *figures)
{
    JsonObject *measured = json_object_get_object_member(record, "measured");
    JsonObject *step = json_object_get_object_member(measured, "steady_step");
    JsonObject *peaks = json_object_get_object_member(step, "peaks");
    static const char *const names[] = {"all", "forward", "backward", "optimizer"};
    for (int f = E2E_PEAK; f <= E2E_OPTIMIZER; f++)
        figures->bytes[f] = raw_of(peaks, names[f]);
    figures->bytes[E2E_START] = raw_of(step, "start");
    figures->bytes[E2E_END_OF_FORWARD] = raw_of(step, "end_of_forward");
}

static gboolean
run_record(E2eCase *item, JsonObject *record, const char *configs, const char *scratch,
           GError **error)
{
    g_autofree char *config = e2e_config(record, configs, error);
    if (config == NULL)
        return FALSE;
    g_autofree char *path = g_build_filename(scratch, "config.json", NULL);
    if (!g_file_set_contents(path, config, -1, error))
        return FALSE;
    g_autofree char *text = e2e_scenario(record, path);
    g_autoptr(GError) refusal = NULL;
    if (!simulate(item, text, &refusal))
        item->refused = g_strdup(refusal->message);
    g_unlink(path);
    return TRUE;
}

static E2eCase *
run_file(const char *path, const char *configs, const char *scratch, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    if (!json_parser_load_from_file(parser, path, error))
        return NULL;
    JsonObject *record = json_node_get_object(json_parser_get_root(parser));
    JsonObject *model = json_object_get_object_member(record, "model");
    g_autoptr(E2eCase) item = g_new0(E2eCase, 1);
    item->id = g_strdup(json_object_get_string_member(record, "id"));
    item->family = g_strdup(json_object_get_string_member(model, "type"));
    item->features = e2e_features(record);
    item->parameters = json_object_get_int_member(model, "parameters");
    read_figures(record, &item->measured);
    clear_figures(&item->simulated);
    if (!run_record(item, record, configs, scratch, error))
        return NULL;
    return g_steal_pointer(&item);
}

static gint
compare_names(gconstpointer a, gconstpointer b)
{
    return g_strcmp0(*(char *const *)a, *(char *const *)b);
}

GPtrArray *
e2e_run(const char *folder, const char *configs, const char *scratch, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, error);
    if (dir == NULL)
        return NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name; (name = g_dir_read_name(dir)) != NULL;)
        if (g_str_has_suffix(name, ".json"))
            g_ptr_array_add(names, g_strdup(name));
    g_ptr_array_sort(names, compare_names);
    g_autoptr(GPtrArray) cases = g_ptr_array_new_with_free_func((GDestroyNotify)e2e_case_free);
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *path = g_build_filename(folder, names->pdata[i], NULL);
        E2eCase *item = run_file(path, configs, scratch, error);
        if (item == NULL)
            return NULL;
        g_ptr_array_add(cases, item);
    }
    return g_steal_pointer(&cases);
}
