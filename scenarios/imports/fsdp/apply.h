/* FSDP settings into a job: their meaning for the fsdp1, fsdp2 and deepspeed runtimes. */
#pragma once

#include "scenarios/imports/deepspeed/apply.h"
#include "scenarios/imports/fsdp/config.h"

typedef enum {
    ZP_FSDP_APPLY_ERROR_REFUSED,     /* the settings have errors */
    ZP_FSDP_APPLY_ERROR_UNSUPPORTED, /* no sharding, or what no runtime models */
} ZpFsdpApplyError;
#define ZP_FSDP_APPLY_ERROR (zp_fsdp_apply_error_quark())
GQuark zp_fsdp_apply_error_quark(void);

/* Fills, of `job`: runtime ("fsdp2" for version 2, else "fsdp1"), precision, zero, checkpointing,
 * and what the file says of batch, sequence, world and parallel degrees; job->fsdp points to
 * `settings` then.  The job is whole, before zp_parallel_place(): world.ranks counts all GPUs (the
 * shard group does not: data x context parallel ranks), training.sequence all tokens.  The job's
 * gpus_per_node is the shard group of a hybrid strategy without a degree.  A file that selects
 * DeepSpeed is refused here: apply its `deepspeed` with zp_ds_apply_job(). */
gboolean zp_fsdp_apply_job(const ZpFsdpConfig *config, ZpFsdp *settings, ZpJob *job,
                           GError **error) G_GNUC_WARN_UNUSED_RESULT;
