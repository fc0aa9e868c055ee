#include "reports/pictures/plot_internal.h"

#include <math.h>
#include <string.h>

#include "reports/text/format.h"

G_DEFINE_QUARK(zp_plot_error_quark, zp_plot_error)

static const char *const class_colors[ZP_N_CLASSES] = {
    [ZP_CLASS_PARAMETER] = "#0072b2",
    [ZP_CLASS_GRADIENT] = "#009e73",
    [ZP_CLASS_MASTER] = "#56b4e9",
    [ZP_CLASS_MOMENTUM] = "#cc79a7",
    [ZP_CLASS_VARIANCE] = "#e8bcd4",
    [ZP_CLASS_GATHERED] = "#e69f00",
    [ZP_CLASS_COMMUNICATION] = "#d55e00",
    [ZP_CLASS_ACTIVATION] = "#f0e442",
    [ZP_CLASS_LOGITS] = "#a89b00",
    [ZP_CLASS_WORKSPACE] = "#999999",
    [ZP_CLASS_OPTIMIZER_TEMPORARY] = "#7a4a1e",
    [ZP_CLASS_RUNTIME] = "#4d4d4d",
    [ZP_CLASS_CHECKPOINT] = "#c7c7c7",
};

static const char *const kind_colors[ZP_N_KINDS] = {
    [ZP_KIND_FORWARD] = "#0072b2",        [ZP_KIND_BACKWARD] = "#56b4e9",
    [ZP_KIND_RECOMPUTE] = "#b9def5",      [ZP_KIND_OPTIMIZER] = "#cc79a7",
    [ZP_KIND_MEMORY] = "#999999",         [ZP_KIND_ALL_GATHER] = "#e69f00",
    [ZP_KIND_REDUCE_SCATTER] = "#d55e00", [ZP_KIND_ALL_REDUCE] = "#a83a00",
    [ZP_KIND_REDUCE] = "#f0a070",         [ZP_KIND_BROADCAST] = "#f0e442",
    [ZP_KIND_ALL_TO_ALL] = "#a89b00",     [ZP_KIND_HOST_TO_DEVICE] = "#009e73",
    [ZP_KIND_DEVICE_TO_HOST] = "#7fcfb9", [ZP_KIND_HOST_OPTIMIZER] = "#e8bcd4",
    [ZP_KIND_NVME_READ] = "#4d4d4d",      [ZP_KIND_NVME_WRITE] = "#c7c7c7",
    [ZP_KIND_SEND] = "#7a4a1e",           [ZP_KIND_WAIT] = "#e0d8cc",
};

static const char *const series_colors[] = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#4d4d4d", "#a89b00",
};

const ZpClass zp_plot_stack[ZP_N_CLASSES] = {
    ZP_CLASS_RUNTIME,
    ZP_CLASS_PARAMETER,
    ZP_CLASS_MASTER,
    ZP_CLASS_MOMENTUM,
    ZP_CLASS_VARIANCE,
    ZP_CLASS_GRADIENT,
    ZP_CLASS_ACTIVATION,
    ZP_CLASS_LOGITS,
    ZP_CLASS_CHECKPOINT,
    ZP_CLASS_GATHERED,
    ZP_CLASS_COMMUNICATION,
    ZP_CLASS_WORKSPACE,
    ZP_CLASS_OPTIMIZER_TEMPORARY,
};

const char *
zp_plot_class_color(ZpClass class_id)
{
    return class_colors[class_id];
}

const char *
zp_plot_kind_color(ZpKind kind)
{
    return kind_colors[kind];
}

static int
index_of(const char *const *words, int n, const char *name)
{
    for (int i = 0; name != NULL && i < n; i++) {
        if (strcmp(words[i], name) == 0)
            return i;
    }
    return -1;
}

int
zp_plot_class_of(const char *name)
{
    return index_of(zp_vocabulary_get()->classes, ZP_N_CLASSES, name);
}

int
zp_plot_kind_of(const char *name)
{
    return index_of(zp_vocabulary_get()->kinds, ZP_N_KINDS, name);
}

void
zp_plot_quote(GString *script, const char *text)
{
    g_string_append_c(script, '\'');
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\'')
            g_string_append(script, "''");
        else if ((guchar)*p < ' ' || *p == '`')
            g_string_append_c(script, ' ');
        else
            g_string_append_c(script, *p);
    }
    g_string_append_c(script, '\'');
}

void
zp_plot_set_text(GString *script, const char *name, const char *text)
{
    g_string_append_printf(script, "%s = ", name);
    zp_plot_quote(script, text);
    g_string_append_c(script, '\n');
}

void
zp_plot_number(GString *script, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(script, g_ascii_formatd(text, sizeof text, "%.9g", value));
    g_string_append_c(script, ' ');
}

void
zp_plot_set_number(GString *script, const char *name, double value)
{
    g_string_append_printf(script, "%s = ", name);
    zp_plot_number(script, value);
    g_string_truncate(script, script->len - 1);
    /* gnuplot divides integers as C does. */
    if (value == floor(value) && fabs(value) < 1e9)
        g_string_append(script, ".0");
    g_string_append_c(script, '\n');
}

void
zp_plot_set_texts(GString *script, const char *name, const char *const *texts, gsize n)
{
    g_string_append_printf(script, "array %s[%d] = [", name, (int)n);
    for (gsize i = 0; i < n; i++) {
        if (i > 0)
            g_string_append(script, ", ");
        zp_plot_quote(script, texts[i]);
    }
    g_string_append(script, "]\n");
}

void
zp_plot_title(GString *script, const char *asked, const char *name, const char *what)
{
    g_autofree char *made = g_strdup_printf("%s: %s", name, what);
    zp_plot_set_text(script, "zp_title", asked != NULL ? asked : made);
}

void
zp_plot_capacity(GString *script, gint64 capacity_bytes, gint64 highest_bytes)
{
    gboolean drawn = capacity_bytes > 0 && capacity_bytes / 4 <= highest_bytes;
    gint64 highest = drawn ? MAX(capacity_bytes, highest_bytes) : highest_bytes;
    g_autoptr(GString) text = g_string_new("capacity ");
    zp_format_gib(text, capacity_bytes);
    g_string_append(text, drawn ? " GiB" : " GiB (above)");
    zp_plot_set_number(script, "zp_capacity", (double)capacity_bytes / ZP_PLOT_GIB);
    zp_plot_set_text(script, "zp_capacity_text", text->str);
    /* Room above the highest value for its label. */
    zp_plot_set_number(script, "zp_top", highest > 0 ? (double)highest * 1.12 / ZP_PLOT_GIB : 1.0);
}

void
zp_plot_series_colors(GString *script)
{
    zp_plot_set_texts(script, "zp_series", series_colors, G_N_ELEMENTS(series_colors));
}
