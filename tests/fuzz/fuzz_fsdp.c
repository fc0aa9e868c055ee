/* Any bytes as each kind of FSDP settings, and through the detection of kinds. */
#include "scenarios/imports/fsdp/config.h"
#include "scenarios/imports/import.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const classes[] = {"LlamaDecoderLayer", "Embedding", NULL};
    static const ZpFsdpContext context = {
        .model_classes = classes, .block_class = "LlamaDecoderLayer", .model_elements = 1000};
    for (int source = ZP_FSDP_ACCELERATE; source <= ZP_FSDP_TORCHTITAN; source++) {
        g_autoptr(ZpFsdpConfig) config =
            zp_fsdp_config_parse((ZpFsdpSource)source, "fuzz", (const char *)data, size, &context);
        g_assert(config->version == 1 || config->version == 2);
        g_assert(zp_fsdp_config_strategy_name(config->strategy));
    }
    g_autoptr(ZpImportReport) report = zp_import_check_text("fuzz", (const char *)data, size, NULL);
    g_autofree char *text = zp_import_report_text(report);
    g_autofree char *json = zp_import_report_json(report);
    g_assert(g_utf8_validate(text, -1, NULL) && g_utf8_validate(json, -1, NULL));
    return 0;
}
