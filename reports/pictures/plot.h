/* Plots: drawn by gnuplot from what a run database holds, so that they can be redone.
 *
 * The script is one text with its data inside: the same database gives the same script. */
#pragma once

#include "reports/store/store.h"

typedef enum {
    ZP_PLOT_MEMORY,  /* one run: memory over time, stacked by class, capacity, peak marked */
    ZP_PLOT_STREAMS, /* one run: works on streams, coloured by kind, phases shaded */
    ZP_PLOT_SWEEP,   /* one sweep: peak and step time against an axis */
    ZP_PLOT_STAGES,  /* runs, or points of a sweep: peaks side by side, stacked by class */
    ZP_PLOT_RUNS,    /* several runs: total memory over time */
    ZP_PLOT_PARETO,  /* one sweep: peak against step time, front and knee */
    ZP_PLOT_N_KINDS,
} ZpPlotKind;

const char *zp_plot_kind_name(ZpPlotKind kind); /* "memory" */
/* The error names the kinds there are. */
gboolean zp_plot_kind_parse(const char *text, ZpPlotKind *kind, GError **error);
/* Does this kind draw a sweep rather than runs?  STAGES draws either. */
gboolean zp_plot_kind_needs_sweep(ZpPlotKind kind);

typedef struct {
    ZpPlotKind kind;
    const gint64 *runs; /* ids: exactly one for MEMORY and STREAMS */
    gsize n_runs;
    gint64 sweep;      /* id; 0: none */
    const char *axis;  /* SWEEP: key of the axis ("world.ranks"); NULL: the first */
    const char *title; /* NULL: made from what is drawn */
} ZpPlotRequest;

typedef enum {
    ZP_PLOT_ERROR_KIND,    /* no such kind */
    ZP_PLOT_ERROR_FORMAT,  /* output neither .svg nor .png */
    ZP_PLOT_ERROR_DATA,    /* the run or sweep holds nothing to draw, or too much for one picture */
    ZP_PLOT_ERROR_GNUPLOT, /* gnuplot is missing or failed */
    ZP_PLOT_ERROR_WRITE,   /* the output cannot be written */
} ZpPlotError;
#define ZP_PLOT_ERROR (zp_plot_error_quark())
GQuark zp_plot_error_quark(void);

/* Draws to `output` (.svg or .png, 1600 x 900).  The file appears complete or not at all. */
gboolean zp_plot_draw(ZpStore *store, const ZpPlotRequest *request, const char *output,
                      GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* The gnuplot script alone, without terminal and output: for those who want to change it. */
char *zp_plot_script(ZpStore *store, const ZpPlotRequest *request, GError **error);
