#include "reports/text/data.h"

/* Generated from reports.gresource.xml; a static library's constructors may be dropped by the
 * linker, so registering is done by hand. */
GResource *zp_reports_data_get_resource(void);
void zp_reports_data_register_resource(void);

static gpointer
register_once(gpointer unused G_GNUC_UNUSED)
{
    zp_reports_data_register_resource();
    return zp_reports_data_get_resource();
}

const char *
zp_data_text(const char *name)
{
    static GOnce once = G_ONCE_INIT;
    GResource *resource = g_once(&once, register_once, NULL);
    g_autofree char *path = g_strconcat("/zeropeak/reports/", name, NULL);
    g_autoptr(GBytes) bytes =
        g_resource_lookup_data(resource, path, G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
    g_assert(bytes != NULL);
    /* Uncompressed resources are followed by a NUL and are part of the program. */
    return g_bytes_get_data(bytes, NULL);
}
