#include "tools/table.h"

#include <string.h>

#include "tools/commands/commands.h"

static const ZpCommand *const commands[] = {
    &zp_command_run,    &zp_command_sweep,    &zp_command_fit,       &zp_command_plot,
    &zp_command_ledger, &zp_command_check,    &zp_command_import,    &zp_command_explain,
    &zp_command_list,   &zp_command_validate, &zp_command_calibrate,
};

const ZpCommand *const *
zp_table_commands(gsize *n)
{
    *n = G_N_ELEMENTS(commands);
    return commands;
}

const ZpCommand *
zp_table_find(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(commands); i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    }
    return NULL;
}
