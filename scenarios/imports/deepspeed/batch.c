/* The batch equation: train_batch_size = micro batch x accumulation x data-parallel ranks
 * (runtime/config.py, _set_batch_related_parameters and _batch_assertion). */
#include "scenarios/imports/deepspeed/ds_internal.h"

#define KEY_TOTAL ZP_DS_TRAIN_BATCH_SIZE
#define KEY_MICRO ZP_DS_MICRO_BATCH_SIZE
#define KEY_STEPS ZP_DS_ACCUMULATION_STEPS
#define D "%" G_GINT64_FORMAT

/* Numbers of the equation; 0: not known. */
typedef struct {
    gint64 total, micro, steps, world;
} Batch;

static gint64
number(const ZpDsReader *reader, ZpDsKey key)
{
    return zp_ds_config_integer(reader->config, key);
}

static gboolean
is_open(const ZpDsReader *reader, ZpDsKey key)
{
    return reader->config->values[key].origin == ZP_DS_FROM_NOWHERE;
}

/* A positive product, or 0 where it is more than an int64 holds. */
static gint64
product(gint64 a, gint64 b, gint64 c)
{
    gint64 result;
    if (__builtin_mul_overflow(a, b, &result) || __builtin_mul_overflow(result, c, &result))
        return 0;
    return result;
}

static void
derive(const ZpDsReader *reader, ZpDsKey key, gint64 count, const char *how)
{
    zp_ds_internal_set_count(reader, key, count, ZP_DS_FROM_OTHERS);
    zp_ds_internal_explain(reader, key, "%s", how);
}

static void
refuse(const ZpDsReader *reader, ZpDsKey key, const Batch *batch, const char *mend)
{
    g_autofree char *micro =
        batch->micro ? g_strdup_printf(D, batch->micro) : g_strdup("micro batch");
    g_autofree char *steps =
        batch->steps ? g_strdup_printf(D, batch->steps) : g_strdup("accumulation");
    g_autofree char *world = batch->world ? g_strdup_printf(D, batch->world) : g_strdup("ranks");
    zp_ds_internal_say(
        reader, ZP_IMPORT_ERROR, key, mend,
        "train_batch_size is not micro batch x accumulation x data-parallel ranks: " D
        " != %s * %s * %s",
        batch->total, micro, steps, world);
}

/* All three stand in the file. */
static void
check_three(const ZpDsReader *reader, const Batch *batch)
{
    gint64 per_rank = product(batch->micro, batch->steps, 1);
    if (!per_rank || batch->total % per_rank != 0) {
        refuse(reader, KEY_TOTAL, batch, "leave one of the three out, and it is derived");
        return;
    }
    gint64 world = batch->total / per_rank;
    if (batch->world == 0)
        zp_ds_internal_say(reader, ZP_IMPORT_NOTE, KEY_TOTAL, NULL,
                           "holds for " D " data-parallel ranks only: " D " = " D " x " D " x " D
                           "; with another number w DeepSpeed stops: " D " != " D " * " D " * w",
                           world, batch->total, batch->micro, batch->steps, world, batch->total,
                           batch->micro, batch->steps);
    else if (world != batch->world)
        refuse(reader, KEY_TOTAL, batch, "leave one of the three out, and it is derived");
}

/* One of micro batch and accumulation is missing: `known` is the other one (1: neither). */
static void
derive_part(const ZpDsReader *reader, const Batch *batch, gint64 known, ZpDsKey key)
{
    if (batch->total % known != 0) {
        refuse(reader, KEY_TOTAL, batch, "the total must be a multiple");
        return;
    }
    gint64 rest = batch->total / known;
    if (batch->world == 0) {
        zp_ds_internal_explain(reader, key, D " / data-parallel ranks", rest);
        zp_ds_internal_say(reader, ZP_IMPORT_NOTE, KEY_TOTAL, "give the number of ranks",
                           "%s = " D " / data-parallel ranks; DeepSpeed stops where that is not a "
                           "whole number",
                           zp_ds_schema_name(key), rest);
        return;
    }
    if (rest % batch->world != 0) {
        refuse(reader, KEY_TOTAL, batch, "the total must be a multiple");
        return;
    }
    g_autofree char *how =
        g_strdup_printf("train_batch_size / %sranks", known == 1 ? "" : "the other factor / ");
    derive(reader, key, rest / batch->world, how);
}

static void
derive_total(const ZpDsReader *reader, const Batch *batch)
{
    if (batch->world == 0) {
        zp_ds_internal_explain(reader, KEY_TOTAL, "micro batch x accumulation x ranks");
        return;
    }
    gint64 total = product(batch->micro, batch->steps, batch->world);
    if (total)
        derive(reader, KEY_TOTAL, total, "micro batch x accumulation x ranks");
    else
        zp_ds_internal_say(reader, ZP_IMPORT_ERROR, KEY_MICRO, NULL,
                           "the batch of all ranks is more than any counter holds");
}

/* Some keys are "auto" without flags to fill them: what is known must still fit. */
static void
check_open(const ZpDsReader *reader, const Batch *batch)
{
    gint64 known = product(MAX(batch->micro, 1), MAX(batch->steps, 1), MAX(batch->world, 1));
    if (batch->total && (!known || batch->total % known != 0))
        refuse(reader, KEY_TOTAL, batch, "the total must be a multiple");
    else if (batch->total && !batch->steps)
        zp_ds_internal_explain(reader, KEY_STEPS, "accumulation x ranks = " D,
                               batch->total / MAX(batch->micro, 1));
    else if (!batch->total && batch->micro && batch->steps && batch->world && known)
        derive(reader, KEY_TOTAL, known, "micro batch x accumulation x ranks");
}

void
zp_ds_batch_check(const ZpDsReader *reader)
{
    Batch batch = {number(reader, KEY_TOTAL), number(reader, KEY_MICRO), number(reader, KEY_STEPS),
                   reader->context->world};
    gboolean open_total = is_open(reader, KEY_TOTAL), open_micro = is_open(reader, KEY_MICRO);
    const ZpDsValue *values = reader->config->values;
    if (!batch.total && !batch.micro && !open_total && !open_micro) {
        /* A value that was refused is not a missing one; null is. */
        if (!values[KEY_TOTAL].refused && !values[KEY_MICRO].refused)
            zp_import_message_add(reader->config->messages, ZP_IMPORT_ERROR, 1, 1,
                                  "train_micro_batch_size_per_gpu",
                                  "add train_micro_batch_size_per_gpu",
                                  "neither train_batch_size nor train_micro_batch_size_per_gpu is "
                                  "there: at least one of them is needed");
        return;
    }
    if (open_total || open_micro || is_open(reader, KEY_STEPS)) {
        check_open(reader, &batch);
    } else if (batch.total && batch.micro && batch.steps) {
        check_three(reader, &batch);
    } else if (batch.total && batch.micro) {
        derive_part(reader, &batch, batch.micro, KEY_STEPS);
    } else if (batch.total && batch.steps) {
        derive_part(reader, &batch, batch.steps, KEY_MICRO);
    } else if (batch.total) {
        derive(reader, KEY_STEPS, 1, "not given");
        batch.steps = 1;
        derive_part(reader, &batch, 1, KEY_MICRO);
    } else {
        if (!batch.steps) {
            derive(reader, KEY_STEPS, 1, "not given");
            batch.steps = 1;
        }
        derive_total(reader, &batch);
    }
}
