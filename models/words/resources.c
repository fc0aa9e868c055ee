#include "models/words/resources.h"

#include <gio/gio.h>

/* Made by glib-compile-resources.  A static library drops unreferenced constructors, so the
 * resource is registered by hand, once. */
GResource *zp_models_data_get_resource(void);
void zp_models_data_register_resource(void);

static gpointer
register_once(gpointer unused G_GNUC_UNUSED)
{
    zp_models_data_register_resource();
    return zp_models_data_get_resource();
}

const char *
zp_resources_text(const char *name)
{
    static GOnce once = G_ONCE_INIT;
    GResource *resource = g_once(&once, register_once, NULL);
    g_autofree char *path = g_strconcat("/zeropeak/models/", name, NULL);
    /* The bytes are part of the program: they outlive the reference dropped here. */
    g_autoptr(GBytes) bytes =
        g_resource_lookup_data(resource, path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
    if (bytes == NULL)
        g_error("embedded data '%s' is missing", path);
    return g_bytes_get_data(bytes, NULL);
}
