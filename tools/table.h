/* All subcommands in the order of the help. */
#pragma once

#include "tools/line/command.h"

const ZpCommand *const *zp_table_commands(gsize *n);
/* NULL if unknown. */
const ZpCommand *zp_table_find(const char *name);
