#include "models/prices/bands.h"

#include "models/words/resources.h"

static gpointer
load(gpointer unused G_GNUC_UNUSED)
{
    GKeyFile *file = g_key_file_new();
    g_autoptr(GError) error = NULL;
    if (!g_key_file_load_from_data(file, zp_resources_text("catalog/bands.ini"), (gsize)-1,
                                   G_KEY_FILE_NONE, &error))
        g_error("catalog/bands.ini: %s", error->message);
    return file;
}

static ZpBand
read_band(const char *section)
{
    static GOnce once = G_ONCE_INIT;
    GKeyFile *file = g_once(&once, load, NULL);
    g_autoptr(GError) error = NULL;
    ZpBand band = {.low = g_key_file_get_double(file, section, "low", &error)};
    if (error == NULL)
        band.high = g_key_file_get_double(file, section, "high", &error);
    if (error != NULL)
        g_error("catalog/bands.ini: %s", error->message);
    return band;
}

char *
zp_bands_class(ZpGrade grade, gboolean ideal)
{
    return g_strdup_printf("%s %s", zp_grade_name(grade), ideal ? "ideal" : "framework");
}

ZpBand
zp_bands_step(ZpGrade grade, gboolean ideal)
{
    g_autofree char *section = zp_bands_class(grade, ideal);
    return read_band(section);
}

ZpBand
zp_bands_reserved(void)
{
    return read_band("reserved");
}

ZpBand
zp_bands_overhead(void)
{
    return read_band("overhead");
}
