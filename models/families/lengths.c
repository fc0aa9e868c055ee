#include "models/families/lengths_internal.h"

#include "models/families/forms_internal.h"

gboolean
zp_lengths_blocks_follow(const ZpModel *model, gint32 index)
{
    for (guint l = (guint)index + 1; l < model->layers->len; l++)
        if (zp_model_layer(model, (gint32)l)->block != ZP_MODEL_NONE)
            return TRUE;
    return FALSE;
}

gboolean
zp_lengths_in_encoder(const ZpModel *model, gint32 index)
{
    for (gint32 l = index; l < (gint32)model->layers->len; l++)
        if (zp_model_layer(model, l)->kind == ZP_LAYER_NORM && zp_lengths_blocks_follow(model, l))
            return TRUE;
    return FALSE;
}

gint64
zp_lengths_fixed(const ZpArchitectureTraits *traits, const ZpModel *model, gint32 layer)
{
    if (traits->own_tokens > 0)
        return traits->own_tokens;
    return traits->source_tokens > 0 && zp_lengths_in_encoder(model, layer) ? traits->source_tokens
                                                                            : 0;
}

ZpModelScript *
zp_lengths_script(ZpModelScript *script, gint64 tokens)
{
    if (tokens == 0)
        return zp_model_script_ref(script);
    ZpModelScript *copy = zp_model_script_copy(script);
    zp_forms_fix_bytes(&copy->input_bytes, tokens);
    zp_forms_fix_bytes(&copy->output_gradient_bytes, tokens);
    for (guint i = 0; i < copy->events->len; i++)
        zp_forms_fix_bytes(&g_array_index(copy->events, ZpModelScriptEvent, i).bytes, tokens);
    return copy;
}
