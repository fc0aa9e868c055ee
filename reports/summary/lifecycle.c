#include "reports/summary/lifecycle.h"

#include <string.h>

#include "models/job/runtime.h"
#include "models/prices/bands.h"
#include "models/runtimes/deepspeed/lifecycle.h"
#include "models/words/vocabulary.h"
#include "reports/text/format.h"
#include "reports/text/table.h"

static void
add_row(ZpTable *table, const char *name, const ZpDsLifePeaks *peaks)
{
    const gint64 figures[] = {peaks->device_peak_bytes, peaks->device_after_bytes,
                              peaks->host_peak_bytes, peaks->host_after_bytes};
    zp_table_row(table);
    zp_table_cell(table, name);
    for (gsize f = 0; f < G_N_ELEMENTS(figures); f++) {
        zp_format_gb(zp_table_open_cell(table), figures[f]);
        zp_format_gib(zp_table_open_cell(table), figures[f]);
    }
}

/* Tensors of an episode are counted; what lives outside the allocator has its band. */
static ZpVerdict
verdict_of(const ZpJob *job, gint64 peak_bytes)
{
    ZpBand outside = zp_bands_overhead();
    double overhead = job->device.n_overheads > 0 ? (double)job->device.overhead_bytes : 0.0;
    return zp_verdict_of(&(ZpVerdictQuestion){
        .needed_bytes = peak_bytes,
        .low_bytes = peak_bytes - (gint64)(overhead * outside.low),
        .high_bytes = peak_bytes + (gint64)(overhead * outside.high),
        .capacity_bytes = job->device.capacity_bytes,
        .contingency = job->device.contingency,
    });
}

static void
append_worst(const ZpJob *job, const char *name, gint64 peak_bytes, ZpVerdict verdict, GString *out)
{
    if (verdict == ZP_VERDICT_NONE)
        return;
    g_string_append_printf(out, "Over the life: %s; the worst is %s, ", zp_verdict_name(verdict),
                           name);
    zp_format_bytes(out, peak_bytes);
    g_string_append(out, " of ");
    zp_format_bytes(out, job->device.capacity_bytes);
    g_string_append_c(out, '\n');
}

gboolean
zp_summary_lifecycle(const ZpJob *job, GString *out, ZpVerdict *worst, GError **error)
{
    if (strcmp(job->runtime, "deepspeed") != 0) {
        g_set_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_UNSUPPORTED,
                    "the runtime %s has no lifecycle beside the step; deepspeed has", job->runtime);
        return FALSE;
    }
    static const char *const heads[] = {"Life of a rank",
                                        "device peak GB",
                                        "GiB",
                                        "after GB",
                                        "GiB",
                                        "host peak GB",
                                        "GiB",
                                        "after GB",
                                        "GiB"};
    g_autoptr(ZpTape) scratch = zp_tape_new(zp_vocabulary_get());
    g_autoptr(ZpTable) table = zp_table_new("lrrrrrrrr", 0);
    zp_table_header(table);
    for (gsize h = 0; h < G_N_ELEMENTS(heads); h++)
        zp_table_cell(table, heads[h]);
    const char *worst_name = "";
    gint64 worst_bytes = -1;
    for (int life = 0; life < ZP_DS_N_LIVES; life++) {
        ZpDsLifePeaks peaks;
        if (life == ZP_DS_LIFE_SAVE_16BIT && job->zero.stage < 3)
            continue;
        if (!zp_ds_lifecycle_peaks(job, (ZpDsLife)life, scratch, &peaks, error))
            return FALSE;
        add_row(table, zp_ds_life_name((ZpDsLife)life), &peaks);
        if (peaks.device_peak_bytes > worst_bytes) {
            worst_bytes = peaks.device_peak_bytes;
            worst_name = zp_ds_life_name((ZpDsLife)life);
        }
    }
    g_string_append_c(out, '\n');
    zp_table_print(table, FALSE, out);
    *worst = verdict_of(job, worst_bytes);
    append_worst(job, worst_name, worst_bytes, *worst, out);
    return TRUE;
}
