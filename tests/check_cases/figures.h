/* What can be asked of a case's scenario: figures of a simulated step, of the vendor's estimators,
 * and words.
 *
 *   peak, persistent, capacity, overhead     device bytes of a rank; overhead is runtime overhead
 *   peak.CLASS, persistent.CLASS             part of them by tensor class ("peak.master_weight")
 *   most.CLASS                               the class's own maximum, whenever that is
 *   largest.CLASS                            largest single device buffer born in that class
 *   role.ROLE                                all device buffers of a role made in one step
 *   active                                   with device.allocator: what releases on other streams
 *                                            still hold counts as well
 *   over_bytes, over_live                    the first allocation beyond the capacity, and what was
 *                                            allocated then (runtime overhead not included)
 *   host_peak, host_node, host.CLASS         host bytes: of a rank, of a node's ranks, by class
 *   step, exposed, host_compute              times of a step
 *   tokens_per_s, mfu                        tokens a second and rank; model FLOP utilisation
 *   count.KIND, bytes.KIND, wire.KIND        collectives of a step: number, message and link bytes;
 *                                            KIND may be "reduction": what moves gradients
 *   parameters, ranks, accumulation          inputs
 *   max_batch                                largest training.micro_batch that fits
 *   vendor.device, vendor.host, vendor.largest    models/ledger/vendor_estimate.h, for the job's
 * stage LIFE.device, LIFE.host, LIFE.device_after, LIFE.host_after peaks of a rank beside the step,
 * and what stays: LIFE is construction, first_step, save_sharded, save_16_bit, load_sharded
 * (runtime deepspeed) peak_phase, over_phase, fits, refusal    words: refusal is the error message,
 * or "none"
 *
 * Any of them may be asked of the scenario with other settings: "peak(zero.stage=3)". */
#pragma once

#include "scenarios/load/scenario.h"

typedef enum { FIGURE_NUMBER, FIGURE_BYTES, FIGURE_TIME, FIGURE_WORD } FigureKind;

typedef struct {
    FigureKind kind;
    double number; /* bytes, seconds or a plain number */
    char *word;    /* owned; NULL unless a word */
} Figure;

/* Simulates on demand and remembers. */
typedef struct _Figures Figures;
Figures *figures_new(const char *path);
void figures_free(Figures *figures);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Figures, figures_free)

/* `sets`: "section.key=value, ..." or "". */
gboolean figures_get(Figures *figures, const char *name, const char *sets, Figure *figure,
                     GError **error);
