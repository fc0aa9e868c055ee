/* Inside the plots: building scripts, reading data, colours. */
#pragma once

#include "reports/pictures/plot.h"
#include "reports/store/sql.h"

/* Each appends variables and data blocks for its template. */
gboolean zp_plot_memory(ZpStore *store, const ZpPlotRequest *request, GString *script,
                        GError **error);
gboolean zp_plot_streams(ZpStore *store, const ZpPlotRequest *request, GString *script,
                         GError **error);
gboolean zp_plot_sweep(ZpStore *store, const ZpPlotRequest *request, GString *script,
                       GError **error);
gboolean zp_plot_stages(ZpStore *store, const ZpPlotRequest *request, GString *script,
                        GError **error);
gboolean zp_plot_runs(ZpStore *store, const ZpPlotRequest *request, GString *script,
                      GError **error);
gboolean zp_plot_pareto(ZpStore *store, const ZpPlotRequest *request, GString *script,
                        GError **error);

/* `name = 'text'`; text from outside cannot leave its quotes. */
void zp_plot_set_text(GString *script, const char *name, const char *text);
void zp_plot_set_number(GString *script, const char *name, double value);
/* `array name[n] = [...]` of texts. */
void zp_plot_set_texts(GString *script, const char *name, const char *const *texts, gsize n);
/* A text in quotes, for data blocks and arrays. */
void zp_plot_quote(GString *script, const char *text);
/* A number and a space. */
void zp_plot_number(GString *script, double value);
#define ZP_PLOT_GIB 1073741824.0
#define ZP_PLOT_MS 1e9

/* zp_title: what the user asked for, or "NAME: what". */
void zp_plot_title(GString *script, const char *asked, const char *name, const char *what);
/* zp_capacity (0: none), zp_capacity_text, and zp_top, where the axis of memory ends.  A capacity
 * far above what is drawn is named and not drawn: it would flatten the rest. */
void zp_plot_capacity(GString *script, gint64 capacity_bytes, gint64 highest_bytes);
/* zp_series: colours of lines by index. */
void zp_plot_series_colors(GString *script);
/* zp_n_phases, zp_phase, zp_phase_start, zp_phase_end (ms): stretches of compute of one phase. */
gboolean zp_plot_phases(ZpStore *store, gint64 run, GString *script, GError **error);

/* Colours (after Okabe and Ito: told apart with any colour vision), "#rrggbb". */
const char *zp_plot_class_color(ZpClass class_id);
const char *zp_plot_kind_color(ZpKind kind);
/* Classes from the bottom of a stack to its top: what lasts below, what comes and goes above. */
extern const ZpClass zp_plot_stack[ZP_N_CLASSES];
/* -1 if the word is unknown. */
int zp_plot_class_of(const char *name);
int zp_plot_kind_of(const char *name);

/* What all plots of a run say about it. */
typedef struct {
    char *name;
    gint64 step_ps, peak_bytes, peak_ps, capacity_bytes;
    gint64 step_low_ps, step_high_ps, needed_low_bytes, needed_high_bytes; /* bands, with 90 % */
    char *verdict;                                                         /* NULL: unlimited */
    char *peak_unit, *peak_phase, *peak_event; /* unit and phase may be NULL */
} ZpPlotRun;
gboolean zp_plot_read_run(ZpStore *store, gint64 id, ZpPlotRun *run, GError **error);
void zp_plot_run_clear(ZpPlotRun *run);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpPlotRun, zp_plot_run_clear)

/* Memory of a run's device over time: one entry where it changes, thinned out to what a picture
 * can show.  Of each stretch of time the lowest, the highest and the last state stay, so that
 * every peak is there (times: reports/store/recorder.h, zp_recorder_settle()). */
typedef struct {
    ZpTime time;
    gint64 total_bytes;
    gint64 bytes[ZP_N_CLASSES];
} ZpPlotState;
GArray *zp_plot_read_timeline(ZpStore *store, gint64 run, gsize max_states, GError **error);
