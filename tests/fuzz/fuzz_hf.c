/* The reader of model configurations meets anything. */
#include "scenarios/imports/huggingface/config.h"

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16,
                                                  .attention = ZP_ATTENTION_EAGER,
                                                  .causal = TRUE,
                                                  .expert_imbalance = 1.5};
    g_autoptr(GPtrArray) warnings = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GError) error = NULL;
    const char *json = (const char *)data;
    gboolean looks_like = zp_hf_looks_like(json, (gssize)size);
    g_autoptr(ZpModel) model =
        zp_hf_parse(json, (gssize)size, "fuzz.json", &options, warnings, &error);
    g_assert((model == NULL) == (error != NULL));
    g_assert(model == NULL || looks_like);
    if (model == NULL)
        return 0;
    gint64 sum = 0;
    for (gint32 l = 0; l < (gint32)model->layers->len; l++) {
        const ZpModelLayer *layer = zp_model_layer(model, l);
        g_assert(layer->elements >= 0 && layer->flops_per_token >= 0);
        g_assert(layer->traffic_bytes_per_token >= 0);
        for (int p = 0; p < ZP_MODEL_POLICIES && layer->activation != ZP_MODEL_NONE; p++)
            g_assert(
                zp_model_activation(model, layer->activation)->policies[p].kept.bytes_per_token >=
                0);
        sum += layer->elements;
    }
    g_assert(sum == model->n_elements);
    return 0;
}
