/* Reference checkers: compare what the compilers do with cases recorded from other programs.
 * Each reads *.json in the directories (or single files), prints a line per case ("pass ID" or
 * "FAIL ID: first divergence, ours and theirs") and a summary, and returns the number of failures.
 */
#pragma once

#include <glib.h>

int check_deepspeed(char **paths, int n_paths);
int check_fsdp(char **paths, int n_paths);

/* Is the text of a case as the compilers have it? */
gboolean ds_passes(const char *text);
gboolean fsdp_passes(const char *text);

/* Every field of every case must be in `list`, whose lines are "PATTERN;STATE;REASON": STATE is
 * input (says what was run), compared, or ignored (with a reason).  A field is its path from the
 * case's kind on, "engine_run.expected.sub_groups[][]"; of a pattern '*' stands for any text, and a
 * '?' in front of it says that only larger sets of cases have it.  That a field is compared is
 * proven: altered in some case, the case no longer passes. */
int check_fields(const char *list, gboolean (*passes)(const char *text), char **paths, int n_paths);
