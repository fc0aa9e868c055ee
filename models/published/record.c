#include "models/published/record_internal.h"

#include <string.h>

const char *
zp_validate_record_text(const ZpValidateRecord *record, const char *column)
{
    return zp_validate_csv_get(record->csv, record->record, column);
}

gint64
zp_validate_record_integer(const ZpValidateRecord *record, const char *column, gint64 missing)
{
    double value = zp_validate_csv_number(record->csv, record->record, column, -1.0);
    return value >= 1.0 && value < 9e18 ? (gint64)value : missing;
}

gboolean
zp_validate_record_has(const ZpValidateRecord *record, const char *column, const char *part)
{
    g_autofree char *low = g_ascii_strdown(zp_validate_record_text(record, column), -1);
    return strstr(low, part) != NULL;
}

gint64
zp_validate_record_behind(const ZpValidateRecord *record, const char *column, const char *part,
                          gint64 missing)
{
    g_autofree char *low = g_ascii_strdown(zp_validate_record_text(record, column), -1);
    for (const char *at = low; (at = strstr(at, part)) != NULL; at++) {
        const char *digits = at + strlen(part);
        if (g_ascii_isdigit(*digits) && (at == low || !g_ascii_isalnum(at[-1])))
            return CLAMP(g_ascii_strtoll(digits, NULL, 10), 1, G_MAXINT32);
    }
    return missing;
}

gint64
zp_validate_record_micro_batch(const ZpValidateRecord *record)
{
    return zp_validate_record_integer(
        record, "micro_batch", zp_validate_record_behind(record, "notes", "micro batch ", 0));
}

gint64
zp_validate_record_sequence(const ZpValidateRecord *record)
{
    return zp_validate_record_integer(record, "seq_len",
                                      zp_validate_record_behind(record, "notes", "seq ", 0));
}

/* "about 250k" is a number too. */
gint64
zp_validate_record_vocabulary(const ZpValidateRecord *record)
{
    gint64 thousands = zp_validate_record_behind(record, "vocab", "about ", 0);
    gboolean said =
        thousands > 0 && g_str_has_suffix(zp_validate_record_text(record, "vocab"), "k");
    return zp_validate_record_integer(record, "vocab", said ? 1000 * thousands : 0);
}

static gboolean
refuse(GError **error, const char *reason)
{
    g_set_error_literal(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW, reason);
    return FALSE;
}

/* Sequence parallelism is what Megatron-LM's and torchtitan's plans have beside tensor parallelism;
 * Megatron-DeepSpeed and InternLM of these runs do without. */
gboolean
zp_validate_record_parallel(const ZpValidateRecord *record, ZpParallel *parallel, GError **error)
{
    const char *framework = zp_validate_record_text(record, "framework");
    gint64 tensor = zp_validate_record_behind(record, "strategy", "mp", 1);
    *parallel = (ZpParallel){
        .tensor = (gint32)zp_validate_record_behind(record, "strategy", "tp", tensor),
        .context = (gint32)zp_validate_record_behind(record, "strategy", "cp", 1),
        .pipeline = (gint32)zp_validate_record_behind(record, "strategy", "pp", 1),
        .sequence = zp_validate_record_has(record, "framework", "fsdp") ||
                    g_ascii_strncasecmp(framework, "megatron", strlen("megatron")) == 0,
    };
    if (zp_validate_record_behind(record, "strategy", "ep", 1) > 1)
        return refuse(error, "expert parallelism is not modelled");
    if (zp_validate_record_behind(record, "strategy", "sp", 1) > 1)
        return refuse(error, "Ulysses' sequence parallelism is not modelled");
    if (zp_validate_record_has(record, "notes", "async tp"))
        return refuse(error, "tensor parallelism behind the products is not modelled");
    if (zp_validate_record_has(record, "notes", "interleaved"))
        return refuse(error, "an interleaved pipeline is not modelled");
    return TRUE;
}

gint64
zp_validate_record_shard_group(const ZpValidateRecord *record, gint64 ranks, gint64 node)
{
    gint64 stated = zp_validate_record_behind(record, "strategy", "sharded in ", 0);
    if (stated > 0)
        return ranks % stated == 0 ? stated : ranks;
    if (zp_validate_record_has(record, "strategy", "hsdp") ||
        zp_validate_record_has(record, "strategy", "hybrid") ||
        zp_validate_record_has(record, "strategy", "in the"))
        return ranks % node == 0 ? MIN(ranks, node) : ranks;
    return ranks;
}

gboolean
zp_validate_record_is_after(const ZpValidateRecord *row, const char *part)
{
    if (!zp_validate_record_has(row, "notes", "cumulative ladder"))
        return FALSE;
    for (guint r = 0; r <= row->record; r++) {
        ZpValidateRecord before = {row->csv, r};
        if (strcmp(zp_validate_record_text(&before, "source"),
                   zp_validate_record_text(row, "source")) == 0 &&
            zp_validate_record_has(&before, "notes", part))
            return TRUE;
    }
    return FALSE;
}

gboolean
zp_validate_record_is_eager(const ZpValidateRecord *row)
{
    return zp_validate_record_has(row, "attn_impl", "eager") ||
           (*zp_validate_record_text(row, "attn_impl") == '\0' &&
            (zp_validate_record_has(row, "source", "sc21") ||
             zp_validate_record_has(row, "source", "bigscience")));
}
