/* The errors of one file, collected to be reported together. */
#pragma once

#include "scenarios/load/scenario.h"

typedef struct {
    char *name;          /* of the file, printable */
    GPtrArray *messages; /* in the order found */
    gboolean dropped;    /* there were more */
    ZpScenarioError first;
} ZpScenarioProblems;

void zp_scenario_problems_init(ZpScenarioProblems *problems, const char *name);
void zp_scenario_problems_clear(ZpScenarioProblems *problems);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpScenarioProblems, zp_scenario_problems_clear)

/* `where`: "FILE:LINE" or "--set"; NULL: the file as a whole. */
void zp_scenario_problems_add(ZpScenarioProblems *problems, ZpScenarioError code, const char *where,
                              const char *format, ...) G_GNUC_PRINTF(4, 5);
/* No room for another message: reading on would only cost time. */
gboolean zp_scenario_problems_full(const ZpScenarioProblems *problems);
gboolean zp_scenario_problems_any(const ZpScenarioProblems *problems);
/* FALSE and `error` set if there are problems, else TRUE. */
gboolean zp_scenario_problems_raise(const ZpScenarioProblems *problems, GError **error);
/* The reason that an error of a lower floor stands for. */
ZpScenarioError zp_scenario_problems_reason(const GError *error);
/* Copy of `text` in valid UTF-8 without control characters. */
char *zp_scenario_problems_printable(const char *text);
