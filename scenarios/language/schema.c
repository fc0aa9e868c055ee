#include "scenarios/language/schema.h"

#include <string.h>

#include "models/words/nearest.h"

const ZpSchemaKey *
zp_schema_key(ZpSchemaId id)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    g_assert((gsize)id < n);
    return &table[id];
}

const ZpSchemaKey *
zp_schema_find_in(const char *section, const char *key)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        if (strcmp(table[i].key, key) == 0 && strcmp(table[i].section, section) == 0)
            return &table[i];
    }
    return NULL;
}

/* The only key of that short name; *n_found says how many there are. */
static const ZpSchemaKey *
find_short(const char *name, gsize *n_found, GString *sections)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    const ZpSchemaKey *found = NULL;
    *n_found = 0;
    for (gsize i = 0; i < n; i++) {
        if (strcmp(table[i].key, name) != 0)
            continue;
        g_string_append_printf(sections, "%s%s.%s", found ? ", " : "", table[i].section, name);
        found = &table[i];
        ++*n_found;
    }
    return *n_found == 1 ? found : NULL;
}

/* Full names, then short names. */
static char *
nearest_name(const char *name)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    g_auto(GStrv) full = g_new0(char *, n + 1);
    for (gsize i = 0; i < n; i++)
        full[i] = g_strconcat(table[i].section, ".", table[i].key, NULL);
    const char *found = zp_nearest_find(name, (const char *const *)full);
    if (found != NULL)
        return g_strdup(found);
    g_autofree const char **keys = g_new0(const char *, n + 1);
    for (gsize i = 0; i < n; i++)
        keys[i] = table[i].key;
    const char *dot = strchr(name, '.');
    found = zp_nearest_find(dot ? dot + 1 : name, keys);
    for (gsize i = 0; found != NULL && i < n; i++) {
        if (keys[i] == found)
            return g_strdup(full[i]);
    }
    return NULL;
}

const ZpSchemaKey *
zp_schema_find(const char *name, GError **error)
{
    const char *dot = strchr(name, '.');
    gsize n_found = 0;
    g_autoptr(GString) sections = g_string_new(NULL);
    const ZpSchemaKey *found = NULL;
    if (dot != NULL) {
        g_autofree char *section = g_strndup(name, (gsize)(dot - name));
        found = zp_schema_find_in(section, dot + 1);
    } else {
        found = find_short(name, &n_found, sections);
    }
    if (found != NULL)
        return found;
    if (n_found > 1) {
        g_set_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_AMBIGUOUS,
                    "'%s' is a key of several sections: write one of %s", name, sections->str);
        return NULL;
    }
    g_autofree char *nearest = nearest_name(name);
    g_set_error(error, ZP_SCHEMA_ERROR, ZP_SCHEMA_ERROR_UNKNOWN, "unknown key '%s'%s%s%s", name,
                nearest ? "; did you mean '" : "; `zeropeak explain` lists all keys",
                nearest ? nearest : "", nearest ? "'?" : "");
    return NULL;
}

const char **
zp_schema_sections(void)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    const char **sections = g_new0(const char *, n + 1);
    gsize n_sections = 0;
    for (gsize i = 0; i < n; i++) {
        if (n_sections == 0 || strcmp(sections[n_sections - 1], table[i].section) != 0)
            sections[n_sections++] = table[i].section;
    }
    return sections;
}

const char **
zp_schema_keys_of(const char *section)
{
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    const char **keys = g_new0(const char *, n + 1);
    gsize n_keys = 0;
    for (gsize i = 0; i < n; i++) {
        if (strcmp(table[i].section, section) == 0)
            keys[n_keys++] = table[i].key;
    }
    return keys;
}
