#include "models/job/fsdp.h"

static const ZpFsdp defaults = {
    .optimizer = ZP_FSDP_OPTIMIZER_FOREACH,
    .set_to_none = TRUE,
    .reshard_after_forward = -1,
    .embedding_unshard_in_backward = TRUE,
    .reduce_scatter_max_input_buffers = 1,
    .sync_every_micro_batch = TRUE,
    .all_reduce_every_micro_batch = TRUE,
    .reshard_after_backward = TRUE,
    .pin_memory = TRUE,
    .cpu_adam_elements_per_s = 4e9,
    .prefetch = ZP_FSDP_PREFETCH_PRE,
    .limit_all_gathers = TRUE,
};

const ZpFsdp *
zp_fsdp_defaults(void)
{
    return &defaults;
}
