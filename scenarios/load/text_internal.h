/* The file format alone: groups, keys, values and their lines, before anyone asks what they mean.
 *
 * GKeyFile's syntax without its leniency (which merges repeated groups, lets the last of two keys
 * win and knows no lines), its escapes and its locales, and with comments after a value. */
#pragma once

#include "scenarios/load/problems.h"

typedef struct {
    const char *name;
    int line;
} ZpScenarioTextGroup;

typedef struct {
    guint group; /* index */
    const char *key, *value;
    int line;
} ZpScenarioTextEntry;

typedef struct {
    GStringChunk *strings;
    GArray *groups;  /* ZpScenarioTextGroup */
    GArray *entries; /* ZpScenarioTextEntry, in file order */
} ZpScenarioText;

/* Never NULL; problems are added, the entries are those that could be read. */
ZpScenarioText *zp_scenario_text_scan(const char *text, gsize length, ZpScenarioProblems *problems);
void zp_scenario_text_free(ZpScenarioText *text);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpScenarioText, zp_scenario_text_free)
/* Can `value` stand behind "key = " and be read back?  No control characters, no comment, no blanks
 * around it. */
gboolean zp_scenario_text_is_value(const char *value);
