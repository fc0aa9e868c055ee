/* Any bytes as a DeepSpeed configuration: alone, and with a model, flags and an old version. */
#include "scenarios/imports/deepspeed/config.h"
#include "scenarios/readers/readers.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ZpDsContext contexts[] = {
        {0},
        {.hidden = 4096,
         .parameters = 8030261248,
         .world = 8,
         .micro_batch = 1,
         .accumulation = 4,
         .has_max_grad_norm = TRUE,
         .precision = ZP_DTYPE_BF16,
         .version = "0.14",
         .as_if_placed = TRUE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(contexts); i++) {
        g_autoptr(ZpDsConfig) config =
            zp_ds_config_parse("fuzz", (const char *)data, size, &contexts[i]);
        g_autoptr(GPtrArray) rows = zp_ds_config_rows(config);
        g_assert(rows->len > 0);
        int stage = zp_ds_config_stage(config);
        g_assert(stage >= 0 && stage <= 3);
        g_assert(zp_ds_config_integer(config, ZP_DS_REDUCE_BUCKET_SIZE) >= 0);
    }
    return 0;
}
