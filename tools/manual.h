/* Help, man page and shell completion, all generated from the tables of commands and keys. */
#pragma once

#include "tools/line/command.h"

/* `zeropeak --help`. */
char *zp_manual_overview(void);
/* What follows the options in `zeropeak COMMAND --help`. */
char *zp_manual_command_text(const ZpCommand *command);
/* The man page (troff) and the bash completion. */
char *zp_manual_page(void);
char *zp_manual_completion(void);
/* The page of files that are read as they are (tools/docs/imports.md). */
char *zp_manual_imports(void);

/* Handles "--generate-man", "--generate-completion" and "--generate-imports", which the build uses;
 * FALSE for anything else. */
gboolean zp_manual_generate(const char *argument);
