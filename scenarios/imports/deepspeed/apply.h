/* A DeepSpeed configuration into a job: its meaning for the deepspeed runtime.
 *
 * Which keys arrive here is exactly what the "effect" column of the key table claims; a test
 * changes each key in turn and looks. */
#pragma once

#include "models/job/deepspeed.h"
#include "scenarios/imports/deepspeed/config.h"

typedef enum {
    ZP_DS_APPLY_ERROR_REFUSED, /* the configuration has errors */
    ZP_DS_APPLY_ERROR_OPEN,    /* "auto" that matters, and nothing to fill it */
} ZpDsApplyError;
#define ZP_DS_APPLY_ERROR (zp_ds_apply_error_quark())
GQuark zp_ds_apply_error_quark(void);

/* Fills `settings` (from zp_deepspeed_init() on) and, of `job`, runtime, precision, zero, and
 * what the file says of training; job->deepspeed points to `settings` then.  What the file leaves
 * open keeps the job's own value: micro batch and accumulation where they are positive.
 * `settings` borrows the lists of `config`, which must live as long. */
gboolean zp_ds_apply_job(const ZpDsConfig *config, ZpDeepspeed *settings, ZpJob *job,
                         GError **error) G_GNUC_WARN_UNUSED_RESULT;
