/* zeropeak ledger: closed-form bytes per rank, nothing simulated. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "reports/receipts/receipt.h"
#include "reports/summary/summary.h"
#include "reports/summary/vendor.h"
#include "tools/commands/commands.h"
#include "tools/line/input.h"

#define OPTION(field) offsetof(ZpCommandOptions, field)

static const ZpCommandOption ledger_options[] = {
    {"set", 's', G_OPTION_ARG_STRING_ARRAY, OPTION(set), "KEY=VALUE",
     "Override a key of the scenario (section.key); may be repeated"},
    {"json", 'j', G_OPTION_ARG_NONE, OPTION(json), NULL,
     "Print JSON (schema zeropeak-ledger/1): integer bytes and all inputs"},
    {"csv", 'c', G_OPTION_ARG_NONE, OPTION(csv), NULL, "Print CSV: integer bytes and all inputs"},
    ZP_COMMAND_REQUIRE_FIT,
    {"vendor", 0, G_OPTION_ARG_STRING, OPTION(vendor), "NAME",
     "Instead, what the framework's own estimator says (deepspeed) beside the simulated peak, "
     "with\n"
     "the gap by tensor class; simulates one step"},
    {"no-color", 0, G_OPTION_ARG_NONE, OPTION(no_color), NULL, "No colour on a terminal"},
    {0},
};

static const char *const ledger_examples[] = {
    "zeropeak ledger scenarios/llama3-8b-zero3.ini",
    "zeropeak ledger scenarios/llama3-8b-zero3.ini --csv",
    "zeropeak ledger scenarios/llama3-8b-zero3.ini --set zero.runtime=deepspeed --vendor deepspeed",
    NULL,
};

static gboolean
usage(const ZpCommandOptions *options, char **arguments, GError **error)
{
    if (arguments[0] == NULL || arguments[1] != NULL || (options->json && options->csv)) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "give exactly one scenario file, and at most one of --json and --csv");
        return FALSE;
    }
    if (options->vendor == NULL)
        return TRUE;
    if (strcmp(options->vendor, "deepspeed") != 0 || options->json || options->csv) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "--vendor knows deepspeed and prints a table, no --json or --csv");
        return FALSE;
    }
    return TRUE;
}

static gboolean
colored(const ZpCommandOptions *options)
{
    return !options->no_color && isatty(STDOUT_FILENO) == 1;
}

static int
run_vendor(const ZpCommandOptions *options, const ZpScenario *scenario, GError **error)
{
    ZpVendorQuestion question;
    ZpStepSummary summary;
    g_autoptr(ZpStep) step = zp_step_new();
    if (!zp_vendor_estimate_ask(&scenario->job, &question, error) ||
        !zp_step_simulate(step, &scenario->job, NULL, NULL, &summary, error))
        return zp_command_exit_code(*error);
    ZpReportRun report = {
        .name = scenario->name,
        .source = scenario->path,
        .job = &scenario->job,
        .units = zp_step_units(step),
        .summary = &summary,
    };
    g_autoptr(GString) out = g_string_new(NULL);
    zp_summary_vendor(&report, &question, colored(options), out);
    fputs(out->str, stdout);
    return zp_command_fit_exit(options, summary.verdict);
}

/* The ledger's sum is an upper bound at most: whether a job fits is for the simulation to say. */
static int
fit_exit(const ZpCommandOptions *options, const ZpJob *job, GError **error)
{
    if (options->require_fit == NULL)
        return ZP_EXIT_OK;
    ZpStepSummary summary;
    g_autoptr(ZpStep) step = zp_step_new();
    if (!zp_step_simulate(step, job, NULL, NULL, &summary, error))
        return zp_command_exit_code(*error);
    return zp_command_fit_exit(options, summary.verdict);
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    if (!usage(options, arguments, error))
        return ZP_EXIT_USAGE;
    g_autoptr(ZpScenario) scenario =
        zp_scenario_load(arguments[0], (const char *const *)options->set, error);
    if (scenario == NULL)
        return ZP_EXIT_INPUT;
    if (options->vendor != NULL)
        return run_vendor(options, scenario, error);
    g_autoptr(ZpUnits) units = zp_wrapping_apply(scenario->job.model, &scenario->job.zero);
    if (!zp_ledger_check(&scenario->job, units, error))
        return ZP_EXIT_INPUT;
    ZpLedger ledger;
    zp_ledger_compute(&scenario->job, units, &ledger);
    g_autoptr(GArray) inputs = zp_input_list(scenario);
    ZpReportRun report = {
        .name = scenario->name,
        .source = scenario->path,
        .inputs = (const ZpReportInput *)(gpointer)inputs->data,
        .n_inputs = inputs->len,
        .job = &scenario->job,
        .units = units,
        .ledger = &ledger,
    };
    g_autofree char *text = NULL;
    if (options->json) {
        text = zp_receipt_ledger_json(&report);
    } else if (options->csv) {
        text = zp_receipt_ledger_csv(&report);
    } else {
        g_autoptr(GString) out = g_string_new(NULL);
        zp_summary_ledger(&report, colored(options), out);
        text = g_string_free(g_steal_pointer(&out), FALSE);
    }
    fputs(text, stdout);
    return fit_exit(options, &scenario->job, error);
}

const ZpCommand zp_command_ledger = {
    .name = "ledger",
    .arguments = "FILE",
    .summary = "Closed-form bytes per rank by tensor class",
    .description =
        "Prints what a rank stores and needs by formula, without simulating: persistent bytes by\n"
        "class with dtype, copies, owners and evidence, the communication peak, activations,\n"
        "runtime overhead, contingency and a verdict.  The parts are summed although their peaks\n"
        "need not coincide: an upper bound.  'zeropeak run' tells when they do.",
    .options = ledger_options,
    .examples = ledger_examples,
    .run = run,
};
