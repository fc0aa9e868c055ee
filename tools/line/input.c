#include "tools/line/input.h"

GArray *
zp_input_list(const ZpScenario *scenario)
{
    GArray *inputs = g_array_new(FALSE, TRUE, sizeof(ZpReportInput));
    for (guint i = 0; i < scenario->values->len; i++) {
        const ZpScenarioValue *value = &g_array_index(scenario->values, ZpScenarioValue, i);
        ZpReportInput input = {
            .section = value->section,
            .key = value->key,
            .value = value->text,
            .origin = value->origin,
        };
        g_array_append_val(inputs, input);
    }
    return inputs;
}

void
zp_input_run_fill(ZpInputRun *out, const ZpScenario *scenario, const ZpStep *step,
                  const ZpStepSummary *summary)
{
    out->inputs = zp_input_list(scenario);
    out->live_set = zp_step_live_set(step, &scenario->job);
    out->parts = zp_step_account(step, &scenario->job);
    out->run = (ZpReportRun){
        .name = scenario->name,
        .source = scenario->path,
        .inputs = (const ZpReportInput *)(gpointer)out->inputs->data,
        .n_inputs = out->inputs->len,
        .job = &scenario->job,
        .units = zp_step_units(step),
        .tape = zp_step_tape(step),
        .ledger = zp_step_ledger(step),
        .summary = summary,
        .parts = out->parts,
        .live_set = out->live_set,
        .warnings = (const char *const *)(gpointer)scenario->warnings->pdata,
    };
}

void
zp_input_run_clear(ZpInputRun *run)
{
    g_clear_pointer(&run->inputs, g_array_unref);
    g_clear_pointer(&run->parts, g_array_unref);
    g_clear_pointer(&run->live_set, g_array_unref);
}
