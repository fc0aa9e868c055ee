#include "reports/pictures/plot_internal.h"

#include "reports/text/format.h"

/* A picture is 1600 points wide; more states than this cannot be told apart. */
#define MAX_STATES 3000

/* The classes of a stack that are ever there, bottom first; returns their number. */
static gsize
present_classes(const GArray *states, ZpClass *classes)
{
    gsize n = 0;
    for (int i = 0; i < ZP_N_CLASSES; i++) {
        ZpClass class_id = zp_plot_stack[i];
        gboolean present = FALSE;
        for (guint s = 0; s < states->len && !present; s++)
            present = g_array_index(states, ZpPlotState, s).bytes[class_id] > 0;
        if (present)
            classes[n++] = class_id;
    }
    return n;
}

static void
write_classes(GString *script, const ZpClass *classes, gsize n)
{
    const char *names[ZP_N_CLASSES], *colors[ZP_N_CLASSES];
    for (gsize i = 0; i < n; i++) {
        names[i] = zp_vocabulary_class_name(classes[i]);
        colors[i] = zp_plot_class_color(classes[i]);
    }
    zp_plot_set_number(script, "zp_n", (double)n);
    zp_plot_set_texts(script, "zp_class", names, n);
    zp_plot_set_texts(script, "zp_color", colors, n);
}

static void
write_state(GString *script, ZpTime time, const ZpPlotState *state, const ZpClass *classes, gsize n)
{
    zp_plot_number(script, (double)time / ZP_PLOT_MS);
    gint64 sum = 0;
    for (gsize i = 0; i < n; i++) {
        sum += state->bytes[classes[i]];
        zp_plot_number(script, (double)sum / ZP_PLOT_GIB);
    }
    g_string_append_c(script, '\n');
}

static char *
peak_label(const ZpPlotRun *run)
{
    GString *text = g_string_new("peak ");
    zp_format_gib(text, run->peak_bytes);
    g_string_append(text, " GiB at ");
    zp_format_time(text, run->peak_ps);
    if (run->peak_phase != NULL)
        g_string_append_printf(text, ", %s", run->peak_phase);
    if (run->peak_unit != NULL)
        g_string_append_printf(text, " of %s", run->peak_unit);
    return g_string_free(text, FALSE);
}

/* The peak stands where its state is drawn. */
static void
place_peak(ZpPlotRun *run, const GArray *states)
{
    for (guint i = 0; i < states->len; i++) {
        const ZpPlotState *state = &g_array_index(states, ZpPlotState, i);
        if (state->total_bytes == run->peak_bytes) {
            run->peak_ps = state->time;
            return;
        }
    }
}

/* The verdict, and how far memory and time can be wrong. */
static char *
bands(const ZpPlotRun *run)
{
    GString *text = g_string_new("time (ms)   -   ");
    if (run->verdict != NULL)
        g_string_append_printf(text, "%s; ", run->verdict);
    g_string_append(text, "with 90 % it needs ");
    zp_format_gib(text, run->needed_low_bytes);
    g_string_append(text, " to ");
    zp_format_gib(text, run->needed_high_bytes);
    g_string_append(text, " GiB and a step takes ");
    zp_format_time(text, run->step_low_ps);
    g_string_append(text, " to ");
    zp_format_time(text, run->step_high_ps);
    return g_string_free(text, FALSE);
}

gboolean
zp_plot_memory(ZpStore *store, const ZpPlotRequest *request, GString *script, GError **error)
{
    g_auto(ZpPlotRun) run = {0};
    if (!zp_plot_read_run(store, request->runs[0], &run, error))
        return FALSE;
    g_autoptr(GArray) states = zp_plot_read_timeline(store, request->runs[0], MAX_STATES, error);
    if (states == NULL || !zp_plot_phases(store, request->runs[0], script, error))
        return FALSE;
    place_peak(&run, states);
    ZpClass classes[ZP_N_CLASSES];
    gsize n = present_classes(states, classes);
    write_classes(script, classes, n);
    const ZpPlotState *last = &g_array_index(states, ZpPlotState, states->len - 1);
    ZpTime end = MAX(last->time, run.step_ps);
    g_autofree char *label = peak_label(&run);
    g_autofree char *below = bands(&run);
    zp_plot_title(script, request->title, run.name, "memory of a rank by tensor class");
    zp_plot_set_text(script, "zp_below", below);
    zp_plot_set_number(script, "zp_end", (double)MAX(end, 1) / ZP_PLOT_MS);
    zp_plot_capacity(script, run.capacity_bytes, run.peak_bytes);
    zp_plot_set_number(script, "zp_peak_x", (double)run.peak_ps / ZP_PLOT_MS);
    zp_plot_set_number(script, "zp_peak_y", (double)run.peak_bytes / ZP_PLOT_GIB);
    zp_plot_set_text(script, "zp_peak", label);
    g_string_append(script, "$memory << EOD\n");
    for (guint i = 0; i < states->len; i++) {
        const ZpPlotState *state = &g_array_index(states, ZpPlotState, i);
        write_state(script, state->time, state, classes, n);
    }
    write_state(script, end, last, classes, n);
    g_string_append(script, "EOD\n");
    return TRUE;
}

static void
write_total(GString *script, ZpTime time, const ZpPlotState *state)
{
    zp_plot_number(script, (double)time / ZP_PLOT_MS);
    zp_plot_number(script, (double)state->total_bytes / ZP_PLOT_GIB);
    g_string_append_c(script, '\n');
}

static char *
run_label(const ZpPlotRun *run)
{
    GString *name = g_string_new(run->name);
    g_string_append(name, ", peak ");
    zp_format_gib(name, run->peak_bytes);
    g_string_append(name, " GiB");
    return g_string_free(name, FALSE);
}

gboolean
zp_plot_runs(ZpStore *store, const ZpPlotRequest *request, GString *script, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    gint64 highest = 0, capacity = 0;
    ZpTime end = 1;
    g_string_append(script, "$runs << EOD\n");
    for (gsize r = 0; r < request->n_runs; r++) {
        g_auto(ZpPlotRun) run = {0};
        if (!zp_plot_read_run(store, request->runs[r], &run, error))
            return FALSE;
        g_autoptr(GArray) states =
            zp_plot_read_timeline(store, request->runs[r], MAX_STATES, error);
        if (states == NULL)
            return FALSE;
        for (guint i = 0; i < states->len; i++) {
            const ZpPlotState *state = &g_array_index(states, ZpPlotState, i);
            write_total(script, state->time, state);
        }
        const ZpPlotState *last = &g_array_index(states, ZpPlotState, states->len - 1);
        ZpTime run_end = MAX(last->time, run.step_ps);
        write_total(script, run_end, last);
        g_string_append(script, "\n\n");
        end = MAX(end, run_end);
        highest = MAX(highest, run.peak_bytes);
        capacity = MAX(capacity, run.capacity_bytes);
        g_ptr_array_add(names, run_label(&run));
    }
    g_string_append(script, "EOD\n");
    zp_plot_title(script, request->title, "Runs compared", "memory of a rank");
    zp_plot_set_number(script, "zp_end", (double)end / ZP_PLOT_MS);
    zp_plot_capacity(script, capacity, highest);
    zp_plot_set_texts(script, "zp_name", (const char *const *)names->pdata, names->len);
    zp_plot_series_colors(script);
    zp_plot_set_number(script, "zp_n", (double)request->n_runs);
    return TRUE;
}
