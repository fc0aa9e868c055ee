#include "reports/text/format.h"

#include <math.h>

void
zp_format_double(GString *out, double value, int decimals)
{
    g_assert(decimals >= 0 && decimals <= 9);
    char format[8] = "%.0f", text[G_ASCII_DTOSTR_BUF_SIZE + 320];
    format[2] = (char)('0' + decimals);
    g_string_append(out, g_ascii_formatd(text, sizeof text, format, value));
}

static void
scaled(GString *out, gint64 bytes, double unit)
{
    double value = (double)bytes / unit;
    if (bytes == 0)
        g_string_append_c(out, '0');
    else
        zp_format_double(out, value, fabs(value) < 0.1 ? 3 : 2);
}

void
zp_format_gb(GString *out, gint64 bytes)
{
    scaled(out, bytes, 1e9);
}

void
zp_format_gib(GString *out, gint64 bytes)
{
    scaled(out, bytes, 1073741824.0);
}

void
zp_format_bytes(GString *out, gint64 bytes)
{
    static const struct {
        double size;
        const char *name;
    } units[] = {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}};
    for (gsize i = 0; i < G_N_ELEMENTS(units); i++) {
        if (fabs((double)bytes) < units[i].size)
            continue;
        zp_format_double(out, (double)bytes / units[i].size, 2);
        g_string_append_printf(out, " %s", units[i].name);
        return;
    }
    g_string_append_printf(out, "%" G_GINT64_FORMAT " B", bytes);
}

void
zp_format_time(GString *out, ZpTime time)
{
    static const struct {
        double size;
        const char *name;
    } units[] = {{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}};
    for (gsize i = 0; i < G_N_ELEMENTS(units); i++) {
        double value = (double)time / units[i].size;
        if (value < 1.0)
            continue;
        zp_format_double(out, value, value < 10.0 ? 3 : value < 100.0 ? 2 : 1);
        g_string_append_printf(out, " %s", units[i].name);
        return;
    }
    g_string_append_printf(out, "%" G_GINT64_FORMAT " ps", time);
}

void
zp_format_count(GString *out, gint64 count)
{
    char digits[24];
    int n = g_snprintf(digits, sizeof digits, "%" G_GINT64_FORMAT, count);
    int first = digits[0] == '-' ? 1 : 0;
    for (int i = 0; i < n; i++) {
        if (i > first && (n - i) % 3 == 0)
            g_string_append_c(out, ' ');
        g_string_append_c(out, digits[i]);
    }
}

void
zp_format_share(GString *out, double part, double whole)
{
    if (whole == 0.0) {
        g_string_append_c(out, '-');
        return;
    }
    zp_format_double(out, 100.0 * part / whole, 1);
    g_string_append(out, " %");
}
