/* "auto" as the HF Trainer fills it (transformers, integrations/deepspeed.py:
 * trainer_config_process and trainer_config_finalize).  Nothing is guessed: what a rule needs and
 * nobody said stays open, and a note asks for it. */
#include "scenarios/imports/deepspeed/ds_internal.h"

#define EXAMPLE_HIDDEN 4096

static gboolean
is_open(const ZpDsReader *reader, ZpDsKey key)
{
    return reader->config->values[key].origin == ZP_DS_FROM_NOWHERE;
}

static void
ask(const ZpDsReader *reader, ZpDsKey key, const char *what)
{
    zp_ds_internal_say(reader, ZP_IMPORT_NOTE, key, what,
                       "\"auto\" is filled by the HF Trainer from: %s",
                       zp_ds_schema_get(key)->automatic);
}

/* Sizes that follow from the hidden size h; h is at most 2^31, so that nothing overflows. */
static gint64
from_hidden(ZpDsKey key, gint64 h)
{
    if (key == ZP_DS_REDUCE_BUCKET_SIZE)
        return h * h;
    if (key == ZP_DS_PARAM_PERSISTENCE)
        return 10 * h;
    g_assert(key == ZP_DS_PREFETCH_BUCKET_SIZE);
    /* int(0.9 * h * h): 9 h^2 / 10 in whole numbers, without the rounding of 0.9. */
    return h * h / 10 * 9 + h * h % 10 * 9 / 10;
}

static void
fill_hidden(const ZpDsReader *reader, ZpDsKey key, const char *formula)
{
    if (!is_open(reader, key))
        return;
    if (key != ZP_DS_REDUCE_BUCKET_SIZE && zp_ds_config_stage(reader->config) != 3) {
        ZpDsValue *value = &reader->config->values[key];
        int line = value->line, column = value->column;
        zp_ds_value_reset(value, key);
        value->line = line;
        value->column = column;
        zp_ds_internal_explain(reader, key, "\"auto\" is filled at stage 3 only");
        return;
    }
    gint64 h = reader->context->hidden;
    if (h > 0 && h <= G_MAXINT32) {
        zp_ds_internal_set_count(reader, key, from_hidden(key, h), ZP_DS_FROM_AUTO);
        zp_ds_internal_explain(reader, key, "%s, h = %" G_GINT64_FORMAT, formula, h);
        return;
    }
    zp_ds_internal_explain(reader, key, "%s, h unknown", formula);
    zp_ds_internal_say(reader, ZP_IMPORT_NOTE, key,
                       "give the model (its hidden_size, else the largest of hidden_sizes)",
                       "\"auto\" becomes %s for hidden size h (h = %d: %" G_GINT64_FORMAT
                       " elements); the hidden size is not known here",
                       formula, EXAMPLE_HIDDEN, from_hidden(key, EXAMPLE_HIDDEN));
}

static void
fill_count(const ZpDsReader *reader, ZpDsKey key, gint64 flag, const char *flag_name)
{
    if (!is_open(reader, key))
        return;
    if (flag > 0) {
        zp_ds_internal_set_count(reader, key, flag, ZP_DS_FROM_AUTO);
        zp_ds_internal_explain(reader, key, "%s", flag_name);
        return;
    }
    g_autofree char *mend = g_strdup_printf("give the trainer's %s", flag_name);
    ask(reader, key, mend);
}

static void
fill_precision(const ZpDsReader *reader, ZpDsKey key, ZpDtype dtype)
{
    if (!is_open(reader, key))
        return;
    ZpDsValue *value = &reader->config->values[key];
    ZpDtype flags = reader->context->precision;
    /* Without flags one case is certain: the other format is switched on in the file. */
    ZpDsKey other = key == ZP_DS_FP16_ENABLED ? ZP_DS_BF16_ENABLED : ZP_DS_FP16_ENABLED;
    gboolean other_on = reader->config->values[other].origin == ZP_DS_FROM_FILE &&
                        reader->config->values[other].boolean;
    if (flags == ZP_DTYPE_NONE && !other_on) {
        ask(reader, key,
            dtype == ZP_DTYPE_FP16 ? "give the trainer's flag --fp16 (or none)"
                                   : "give the trainer's flag --bf16 (or none)");
        return;
    }
    value->origin = ZP_DS_FROM_AUTO;
    value->known = TRUE;
    value->boolean = !other_on && flags == dtype;
    zp_ds_internal_explain(reader, key, "%s",
                           other_on ? "the other format is on" : "the trainer's precision flag");
}

void
zp_ds_auto_fill(const ZpDsReader *reader)
{
    const ZpDsContext *context = reader->context;
    fill_precision(reader, ZP_DS_FP16_ENABLED, ZP_DTYPE_FP16);
    fill_precision(reader, ZP_DS_BF16_ENABLED, ZP_DTYPE_BF16);
    fill_hidden(reader, ZP_DS_REDUCE_BUCKET_SIZE, "h*h");
    fill_hidden(reader, ZP_DS_PREFETCH_BUCKET_SIZE, "0.9*h*h as a whole number");
    fill_hidden(reader, ZP_DS_PARAM_PERSISTENCE, "10*h");
    fill_count(reader, ZP_DS_MICRO_BATCH_SIZE, context->micro_batch,
               "--per_device_train_batch_size");
    fill_count(reader, ZP_DS_ACCUMULATION_STEPS, context->accumulation,
               "--gradient_accumulation_steps");
    gint64 product = 0;
    if (context->micro_batch > 0 && context->accumulation > 0 && context->world > 0 &&
        (__builtin_mul_overflow(context->micro_batch, context->accumulation, &product) ||
         __builtin_mul_overflow(product, context->world, &product)))
        product = 0;
    fill_count(reader, ZP_DS_TRAIN_BATCH_SIZE, product,
               "--per_device_train_batch_size, --gradient_accumulation_steps and world size");
    if (is_open(reader, ZP_DS_GRADIENT_CLIPPING)) {
        ZpDsValue *clipping = &reader->config->values[ZP_DS_GRADIENT_CLIPPING];
        if (context->has_max_grad_norm) {
            clipping->origin = ZP_DS_FROM_AUTO;
            clipping->known = TRUE;
            clipping->number = context->max_grad_norm;
            zp_ds_internal_explain(reader, ZP_DS_GRADIENT_CLIPPING, "--max_grad_norm");
        } else {
            ask(reader, ZP_DS_GRADIENT_CLIPPING, "give the trainer's --max_grad_norm");
        }
    }
    /* The rest is arithmetic of the optimizer: it changes neither memory nor time. */
    for (int key = 0; key < ZP_N_DS_KEYS; key++)
        if (is_open(reader, (ZpDsKey)key) && !reader->config->values[key].detail)
            zp_ds_internal_explain(reader, (ZpDsKey)key, "needs %s",
                                   zp_ds_schema_get((ZpDsKey)key)->automatic);
}
