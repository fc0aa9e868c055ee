#include "models/words/names.h"

#include <string.h>

typedef struct {
    GMutex mutex;
    GHashTable *seen;
    GStringChunk *text;
} Names;

static gpointer
make_names(gpointer unused G_GNUC_UNUSED)
{
    Names *names = g_new0(Names, 1);
    g_mutex_init(&names->mutex);
    names->seen = g_hash_table_new(g_str_hash, g_str_equal);
    names->text = g_string_chunk_new(1 << 16);
    return names;
}

const char *
zp_names_intern(const char *name)
{
    static GOnce once = G_ONCE_INIT;
    Names *names = g_once(&once, make_names, NULL);
    g_mutex_lock(&names->mutex);
    char *known = g_hash_table_lookup(names->seen, name);
    if (known == NULL) {
        known = g_string_chunk_insert(names->text, name);
        g_hash_table_add(names->seen, known);
    }
    g_mutex_unlock(&names->mutex);
    return known;
}
