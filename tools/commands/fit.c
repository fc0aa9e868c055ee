/* zeropeak fit: the largest value of a key that fits. */
#include <stdio.h>
#include <unistd.h>

#include "reports/text/format.h"
#include "reports/text/table.h"
#include "scenarios/sweeps/fit.h"
#include "tools/commands/commands.h"
#include "tools/line/interrupt.h"

#define OPTION(field) offsetof(ZpCommandOptions, field)

static const ZpCommandOption fit_options[] = {
    {"set", 's', G_OPTION_ARG_STRING_ARRAY, OPTION(set), "KEY=VALUE",
     "Override a key of the scenario (section.key); may be repeated"},
    {"json", 'j', G_OPTION_ARG_NONE, OPTION(json), NULL,
     "Print JSON (schema zeropeak-fit/1) with every value tried"},
    {"no-color", 0, G_OPTION_ARG_NONE, OPTION(no_color), NULL, "No colour on a terminal"},
    {0},
};

static const char *const fit_examples[] = {
    "zeropeak fit scenarios/llama3-8b-zero3.ini training.micro_batch",
    "zeropeak fit scenarios/llama3-8b-zero3.ini training.sequence --set "
    "training.checkpointing=full",
    NULL,
};

static void
add_row(ZpTable *table, const ZpFitTrial *trial)
{
    zp_table_row(table);
    zp_format_count(zp_table_open_cell(table), trial->value);
    zp_table_cell(table, trial->refusal != NULL ? "refused" : zp_verdict_name(trial->verdict));
    if (trial->refusal != NULL)
        return;
    zp_format_gb(zp_table_open_cell(table), trial->needed_bytes);
    zp_format_gib(zp_table_open_cell(table), trial->needed_bytes);
    zp_format_gb(zp_table_open_cell(table), trial->headroom_bytes);
    zp_format_gib(zp_table_open_cell(table), trial->headroom_bytes);
    zp_format_time(zp_table_open_cell(table), trial->step_ps);
}

static void
print_notes(const ZpFit *fit, GString *out)
{
    const ZpFitTrial *above =
        fit->above >= 0 ? &g_array_index(fit->trials, ZpFitTrial, (guint)fit->above) : NULL;
    if (above != NULL && above->refusal != NULL)
        g_string_append_printf(out, "%" G_GINT64_FORMAT " is refused: %s\n", above->value,
                               above->refusal);
    if (fit->best >= 0 && above == NULL)
        g_string_append(out, "the key takes no larger value\n");
    if (fit->monotone)
        g_string_append_printf(out, "%u values tried; more never needed less\n", fit->trials->len);
    else
        g_string_append_printf(out,
                               "not monotone: %" G_GINT64_FORMAT
                               " needs less memory, or fits, where a smaller value did not; %u "
                               "values tried,\nlarger ones between them may fit too\n",
                               fit->odd_value, fit->trials->len);
}

static void
print_fit(const ZpFit *fit, gboolean color)
{
    g_autoptr(GString) out = g_string_new(NULL);
    if (fit->best >= 0) {
        g_string_append_printf(out, "Largest %s that fits: ", fit->key);
        zp_format_count(out, g_array_index(fit->trials, ZpFitTrial, (guint)fit->best).value);
        g_string_append(out, "\n\n");
    } else {
        g_string_append_printf(out, "No %s fits\n\n", fit->key);
    }
    g_autoptr(ZpTable) table = zp_table_new("rlrrrrr", 0);
    zp_table_header(table);
    const char *const heads[] = {fit->key, "", "needs GB", "GiB", "headroom GB", "GiB", "step"};
    for (gsize h = 0; h < G_N_ELEMENTS(heads); h++)
        zp_table_cell(table, heads[h]);
    add_row(table, &g_array_index(fit->trials, ZpFitTrial, (guint)MAX(fit->best, 0)));
    if (fit->above >= 0)
        add_row(table, &g_array_index(fit->trials, ZpFitTrial, (guint)fit->above));
    zp_table_print(table, color, out);
    g_string_append_c(out, '\n');
    print_notes(fit, out);
    fputs(out->str, stdout);
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    if (arguments[0] == NULL || arguments[1] == NULL || arguments[2] != NULL) {
        g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                    "give one scenario file and one key");
        return ZP_EXIT_USAGE;
    }
    g_autoptr(ZpScenario) scenario =
        zp_scenario_load(arguments[0], (const char *const *)options->set, error);
    if (scenario == NULL)
        return ZP_EXIT_INPUT;
    g_auto(ZpFit) fit = {0};
    if (!zp_fit_find(scenario, arguments[1], zp_interrupt_watch(), &fit, error))
        return ZP_EXIT_INPUT;
    if (options->json) {
        g_autofree char *json = zp_fit_json(&fit);
        fputs(json, stdout);
    } else {
        print_fit(&fit, !options->no_color && isatty(STDOUT_FILENO) == 1);
    }
    return fit.best >= 0 ? ZP_EXIT_OK : ZP_EXIT_NO_FIT;
}

const ZpCommand zp_command_fit = {
    .name = "fit",
    .arguments = "FILE KEY",
    .summary = "Find the largest value of a key that fits the device",
    .description =
        "Varies one whole-number key of a scenario (training.micro_batch, training.sequence,\n"
        "model.layers ...) by doubling and bisection until the largest value whose peak fits the\n"
        "device is found, and shows it beside one above.  Whether more never needs less is "
        "checked\n"
        "at all values tried.  With device.allocator what is reserved decides.  Exit code 7 where\n"
        "nothing fits.",
    .options = fit_options,
    .examples = fit_examples,
    .run = run,
};
