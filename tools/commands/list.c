/* zeropeak list: the catalogue. */
#include <stdio.h>
#include <string.h>

#include "models/families/catalog.h"
#include "models/job/optimizer.h"
#include "models/job/runtime.h"
#include "models/ledger/checks.h"
#include "models/machine/hardware.h"
#include "models/prices/board.h"
#include "models/runtimes/registry.h"
#include "models/words/nearest.h"
#include "tools/commands/commands.h"

static const ZpCommandOption list_options[] = {{0}};

static const char *const list_examples[] = {
    "zeropeak list",
    "zeropeak list gpus",
    NULL,
};

static void
list_models(void)
{
    gsize n = 0;
    const ZpCatalogEntry *entries = zp_catalog_entries(&n);
    for (gsize i = 0; i < n; i++)
        printf("%-18s %s\n", entries[i].name, entries[i].summary);
}

/* 0 is "none" or "not known". */
static void
print_figure(int width, int decimals, double value)
{
    if (value > 0.0)
        printf(" %*.*f", width, decimals, value);
    else
        printf(" %*s", width, "-");
}

static void
list_gpus(void)
{
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    gsize n = 0;
    const ZpGpu *gpus = zp_hardware_gpus(hardware, &n);
    printf("%-21s %12s %14s %12s %12s  %-7s %s\n", "gpu", "memory GiB", "bf16 TFLOP/s", "HBM GB/s",
           "link GB/s", "chip", "constants");
    for (gsize i = 0; i < n; i++) {
        printf("%-21s %12.2f", gpus[i].name, (double)gpus[i].memory_bytes / 1073741824.0);
        print_figure(14, 1, gpus[i].flops_bf16 / 1e12);
        print_figure(12, 0, gpus[i].memory_bytes_per_s / 1e9);
        print_figure(12, 0, gpus[i].link_bytes_per_s / 1e9);
        printf("  %-7s %s\n", gpus[i].chip != NULL ? gpus[i].chip : "-",
               zp_grade_name(zp_board_grade(hardware, &gpus[i])));
    }
}

static void
list_nodes(void)
{
    g_autoptr(ZpHardware) hardware = zp_hardware_load();
    gsize n = 0;
    const ZpNode *nodes = zp_hardware_nodes(hardware, &n);
    printf("%-30s %5s %14s %s\n", "node", "gpus", "network GB/s", "source");
    for (gsize i = 0; i < n; i++)
        printf("%-30s %5d %14.1f %s\n", nodes[i].name, nodes[i].gpus,
               nodes[i].network_bytes_per_s / 1e9, nodes[i].network.source);
}

static void
list_optimizers(void)
{
    gsize n = 0;
    const ZpOptimizer *optimizers = zp_optimizer_table(&n);
    for (gsize i = 0; i < n; i++)
        printf("%-18s %s\n", optimizers[i].name, optimizers[i].summary);
}

static void
list_runtimes(void)
{
    gsize n = 0;
    const ZpRuntime *const *runtimes = zp_registry_table(&n);
    for (gsize i = 0; i < n; i++)
        printf("%-18s %s\n", runtimes[i]->name, runtimes[i]->summary);
}

static void
list_checks(void)
{
    for (gsize i = 0; i < zp_checks_count(); i++)
        printf("%-40s %s\n%-40s   source: %s\n", zp_checks_name(i)->name, zp_checks_name(i)->guards,
               "", zp_checks_name(i)->source);
}

static const struct {
    const char *name;
    void (*print)(void);
} lists[] = {
    {"models", list_models},         {"gpus", list_gpus},         {"nodes", list_nodes},
    {"optimizers", list_optimizers}, {"runtimes", list_runtimes}, {"checks", list_checks},
};

static gboolean
list_one(const char *name, GError **error)
{
    const char *names[G_N_ELEMENTS(lists) + 1] = {0};
    for (gsize i = 0; i < G_N_ELEMENTS(lists); i++) {
        if (strcmp(lists[i].name, name) == 0) {
            lists[i].print();
            return TRUE;
        }
        names[i] = lists[i].name;
    }
    g_autofree char *hint = zp_nearest_hint(name, names);
    g_autofree char *legal = g_strjoinv(", ", (char **)names);
    g_set_error(error, ZP_COMMAND_ERROR, ZP_COMMAND_ERROR_USAGE,
                "unknown list '%s': legal are %s%s", name, legal, hint);
    return FALSE;
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    (void)options;
    for (gsize i = 0; arguments[0] == NULL && i < G_N_ELEMENTS(lists); i++) {
        printf("%s%s:\n", i > 0 ? "\n" : "", lists[i].name);
        lists[i].print();
    }
    for (char **name = arguments; *name != NULL; name++) {
        if (!list_one(*name, error))
            return ZP_EXIT_USAGE;
    }
    return ZP_EXIT_OK;
}

const ZpCommand zp_command_list = {
    .name = "list",
    .arguments = "[models|gpus|nodes|optimizers|runtimes|checks]",
    .summary = "List the built-in models, devices, optimizers and runtimes",
    .description = "Prints the catalogue; names are what the scenario keys take.",
    .options = list_options,
    .examples = list_examples,
    .run = run,
};
