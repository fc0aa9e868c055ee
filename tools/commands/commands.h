/* The subcommands, one file each. */
#pragma once

#include "tools/line/command.h"

extern const ZpCommand zp_command_run;
extern const ZpCommand zp_command_sweep;
extern const ZpCommand zp_command_fit;
extern const ZpCommand zp_command_plot;
extern const ZpCommand zp_command_ledger;
extern const ZpCommand zp_command_check;
extern const ZpCommand zp_command_explain;
extern const ZpCommand zp_command_list;
extern const ZpCommand zp_command_import;
extern const ZpCommand zp_command_validate;
extern const ZpCommand zp_command_calibrate;
