/* zeropeak run: one scenario, simulated. */
#include <stdio.h>
#include <unistd.h>

#include "models/runtimes/registry.h"
#include "reports/receipts/receipt.h"
#include "reports/store/recorder.h"
#include "reports/store/store.h"
#include "reports/summary/knobs.h"
#include "reports/summary/lifecycle.h"
#include "reports/summary/summary.h"
#include "scenarios/sweeps/effect.h"
#include "tools/commands/commands.h"
#include "tools/line/input.h"
#include "tools/line/interrupt.h"

#define OPTION(field) offsetof(ZpCommandOptions, field)

static const ZpCommandOption run_options[] = {
    {"set", 's', G_OPTION_ARG_STRING_ARRAY, OPTION(set), "KEY=VALUE",
     "Override a key of the scenario (section.key); may be repeated"},
    {"database", 'd', G_OPTION_ARG_FILENAME, OPTION(database), "FILE",
     "Database to add the run to (default: zeropeak.db)"},
    {"no-database", 0, G_OPTION_ARG_NONE, OPTION(no_database), NULL, "Record nothing"},
    {"json", 'j', G_OPTION_ARG_NONE, OPTION(json), NULL,
     "Print the receipt as JSON (schema zeropeak-run/1) instead of the table"},
    {"trace", 0, G_OPTION_ARG_NONE, OPTION(trace), NULL,
     "With --json: every operation and memory change in order"},
    {"tape", 0, G_OPTION_ARG_NONE, OPTION(tape), NULL,
     "Print the compiled tape, one instruction a line, and do not run it"},
    {"why", 'w', G_OPTION_ARG_NONE, OPTION(why), NULL,
     "Explain the peak: the event, the live buffers, and what each knob would change"},
    {"lifecycle", 'l', G_OPTION_ARG_NONE, OPTION(lifecycle), NULL,
     "Add the peaks beside the step: construction, first step, saving and loading (deepspeed)"},
    ZP_COMMAND_REQUIRE_FIT,
    {"no-color", 0, G_OPTION_ARG_NONE, OPTION(no_color), NULL, "No colour on a terminal"},
    {0},
};

static const char *const run_examples[] = {
    "zeropeak run scenarios/llama3-8b-zero3.ini",
    "zeropeak run scenarios/llama3-8b-zero3.ini --set zero.stage=2 --no-database",
    "zeropeak run scenarios/llama3-8b-zero3.ini --json --no-database",
    NULL,
};

static void
print_warnings(const ZpScenario *scenario)
{
    for (guint i = 0; i < scenario->warnings->len; i++) {
        const char *text = g_ptr_array_index(scenario->warnings, i);
        if (text != NULL)
            fprintf(stderr, "warning: %s\n", text);
    }
}

static gboolean
print_run(const ZpCommandOptions *options, const ZpReportRun *run, const ZpRecorder *recorder,
          const volatile gint *cancelled, ZpVerdict *verdict, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    gboolean color = !options->no_color && isatty(STDOUT_FILENO) == 1;
    if (options->json) {
        g_autofree char *json = zp_receipt_run_json(run, options->trace ? recorder : NULL);
        g_string_append(out, json);
    } else {
        zp_summary_run(run, color, out);
        if (options->why) {
            zp_summary_why(run, out);
            g_autoptr(GArray) knobs = zp_knobs_compare(run->job, run->summary, cancelled);
            zp_summary_knobs(knobs, out);
        }
        ZpVerdict life = ZP_VERDICT_NONE;
        if (options->lifecycle && !zp_summary_lifecycle(run->job, out, &life, error))
            return FALSE;
        *verdict = MAX(*verdict, life);
    }
    fputs(out->str, stdout);
    return TRUE;
}

static gboolean
store_run(const ZpCommandOptions *options, const ZpReportRun *run, const ZpRecorder *recorder,
          GError **error)
{
    if (options->no_database)
        return TRUE;
    const char *path = zp_command_database(options);
    g_autoptr(ZpStore) store = zp_store_open(path, ZP_STORE_APPEND, error);
    if (store == NULL)
        return FALSE;
    gint64 id = zp_store_add_run(store, run, recorder, error);
    if (id < 0)
        return FALSE;
    if (!options->json)
        printf("recorded as run %" G_GINT64_FORMAT " in %s\n", id, path);
    return TRUE;
}

/* Printed, and kept with the run. */
static void
warn_idle(ZpScenario *scenario, const ZpStepSummary *summary, gint32 n_instrs,
          const volatile gint *cancelled)
{
    g_autoptr(GPtrArray) idle = zp_effect_idle(scenario, summary, n_instrs, cancelled);
    for (guint i = 0; i < idle->len; i++) {
        const char *text = g_ptr_array_index(idle, i);
        fprintf(stderr, "warning: %s\n", text);
        g_ptr_array_insert(scenario->warnings, (gint)scenario->warnings->len - 1, g_strdup(text));
    }
}

static void
note_sweep(const ZpScenario *scenario)
{
    if (scenario->axes->len > 0)
        fprintf(stderr, "note: the [sweep] axes are not run here; 'zeropeak sweep' runs them\n");
}

static int
print_tape(ZpScenario *scenario, GError **error)
{
    g_autoptr(ZpUnits) units = zp_wrapping_apply(scenario->job.model, &scenario->job.zero);
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    const ZpRuntime *runtime = zp_registry_find(scenario->job.runtime);
    if (!runtime->compile(&scenario->job, units, tape, error))
        return ZP_EXIT_INPUT;
    g_autoptr(GString) out = g_string_new(NULL);
    zp_tape_dump(tape, out);
    fputs(out->str, stdout);
    return ZP_EXIT_OK;
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    if (arguments[0] == NULL || arguments[1] != NULL) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "give exactly one scenario file");
        return ZP_EXIT_USAGE;
    }
    if (options->trace && !options->json) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE, "--trace goes with --json");
        return ZP_EXIT_USAGE;
    }
    if (options->json && (options->why || options->lifecycle || options->tape)) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "--json goes without --why, --lifecycle and --tape");
        return ZP_EXIT_USAGE;
    }
    const volatile gint *cancelled = zp_interrupt_watch();
    g_autoptr(ZpScenario) scenario =
        zp_scenario_load(arguments[0], (const char *const *)options->set, error);
    if (scenario == NULL)
        return ZP_EXIT_INPUT;
    print_warnings(scenario);
    if (options->tape)
        return print_tape(scenario, error);
    note_sweep(scenario);
    if (!options->no_database && !zp_store_check(zp_command_database(options), error))
        return ZP_EXIT_IO;
    gboolean record = !options->no_database || options->trace;
    g_autoptr(ZpRecorder) recorder = record ? zp_recorder_new() : NULL;
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    if (!zp_step_simulate(step, &scenario->job, record ? zp_recorder_observer(recorder) : NULL,
                          cancelled, &summary, error))
        return ZP_EXIT_INPUT;
    warn_idle(scenario, &summary, zp_step_tape(step)->n_instrs, cancelled);
    summary.peak_time = zp_step_peak_time(step, &scenario->job, &summary);
    if (record)
        zp_recorder_settle(recorder, zp_step_tape(step));
    g_auto(ZpInputRun) input = {0};
    zp_input_run_fill(&input, scenario, step, &summary);
    ZpVerdict verdict = summary.verdict;
    if (!print_run(options, &input.run, recorder, cancelled, &verdict, error))
        return ZP_EXIT_INPUT;
    if (!store_run(options, &input.run, recorder, error))
        return ZP_EXIT_IO;
    return zp_command_fit_exit(options, verdict);
}

const ZpCommand zp_command_run = {
    .name = "run",
    .arguments = "FILE",
    .summary = "Simulate a scenario file and record it",
    .description =
        "Simulates one training step (or several) of the scenario, prints a short table and adds\n"
        "the run to a SQLite database: effective inputs with their origin, units, operations,\n"
        "memory by class wherever it changes, and the live set at the peak.",
    .options = run_options,
    .examples = run_examples,
    .run = run,
};
