#include "reports/data.h"

/* Generated from reports.gresource.xml. */
GResource *zp_reports_data_get_resource(void);

const char *
zp_data_text(const char *name)
{
    g_autofree char *path = g_strconcat("/zeropeak/reports/", name, NULL);
    g_autoptr(GBytes) bytes = g_resource_lookup_data(zp_reports_data_get_resource(), path,
                                                     G_RESOURCE_LOOKUP_FLAGS_NONE, NULL);
    g_assert(bytes != NULL);
    /* Uncompressed resources are followed by a NUL and live as long as the program. */
    return g_bytes_get_data(bytes, NULL);
}
