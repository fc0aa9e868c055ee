/* Reference checkers: compare what the compilers do with cases recorded from other programs.
 * Each reads *.json in the directories (or single files), prints a line per case ("pass ID" or
 * "FAIL ID: first divergence, ours and theirs") and a summary, and returns the number of failures.
 */
#pragma once

#include <glib.h>

int check_deepspeed(char **paths, int n_paths);
int check_fsdp(char **paths, int n_paths);
