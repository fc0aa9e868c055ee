/* Memory peaks of a job's life beside the step, on the device and in host memory, per rank.
 *
 * Source: DeepSpeed 0.19, runtime/engine.py (_configure_distributed_model, save_checkpoint,
 * save_16bit_model, _get_all_zero_checkpoint_state_dicts), runtime/zero/partition_parameters.py
 * (zero.Init, GatheredParameters), runtime/zero/stage3.py (__init__, _create_fp32_partitions,
 * initialize_optimizer_states), runtime/zero/utils.py (defragment),
 * runtime/zero/stage_1_and_2.py and runtime/fp16/fused_optimizer.py (__init__). */
#pragma once

#include "models/job/job.h"
#include "sim/tape/tape.h"

typedef enum {
    ZP_DS_LIFE_CONSTRUCT,  /* model and engine, with or without zero.Init (settings) */
    ZP_DS_LIFE_FIRST_STEP, /* the first step ever: moments are born */
    ZP_DS_LIFE_LATER_STEP, /* a step in steady state */
    ZP_DS_LIFE_SAVE,       /* save_checkpoint: sharded */
    ZP_DS_LIFE_SAVE_16BIT, /* save_16bit_model: consolidated on rank 0; stage 3 */
    ZP_DS_LIFE_LOAD,       /* load_checkpoint of a sharded checkpoint */
    ZP_DS_N_LIVES,
} ZpDsLife;

typedef struct {
    gint64 device_peak_bytes, host_peak_bytes;
    gint64 device_after_bytes, host_after_bytes;
} ZpDsLifePeaks;

const char *zp_ds_life_name(ZpDsLife life);
/* Writes one episode as a tape: what lives before it in the prologue, then one step.  Rank 0's
 * view (the one that writes a consolidated checkpoint). */
gboolean zp_ds_lifecycle_compile(const ZpJob *job, ZpDsLife life, ZpTape *tape, GError **error);
/* The peaks of that episode, prologue included only as what is alive when it begins. */
gboolean zp_ds_lifecycle_peaks(const ZpJob *job, ZpDsLife life, ZpTape *scratch,
                               ZpDsLifePeaks *peaks, GError **error);
