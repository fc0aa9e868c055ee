/* The file format alone: groups, keys, values and their lines, before anyone asks what they mean.
 *
 * GKeyFile's syntax without its leniency (which merges repeated groups, lets the last of two keys
 * win and knows no lines), its escapes and its locales, and with comments after a value. */
#pragma once

#include "scenarios/settings/settings.h"

typedef struct {
    const char *name;
    int line;
} ZpSettingsTextGroup;

typedef struct {
    guint group; /* index */
    const char *key, *value;
    int line;
} ZpSettingsTextEntry;

typedef struct {
    GStringChunk *strings;
    GArray *groups;  /* ZpSettingsTextGroup */
    GArray *entries; /* ZpSettingsTextEntry, in file order */
} ZpSettingsText;

/* Never NULL; problems are added, the entries are those that could be read. */
ZpSettingsText *zp_settings_text_scan(const char *text, gsize length, ZpProblems *problems);
void zp_settings_text_free(ZpSettingsText *text);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpSettingsText, zp_settings_text_free)
/* Can `value` stand behind "key = " and be read back?  No control characters, no comment, no blanks
 * around it. */
gboolean zp_settings_text_is_value(const char *value);
