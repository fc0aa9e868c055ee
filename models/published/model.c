#include "models/published/model_internal.h"

#include <math.h>

/* Where no parameter count says it: plain if the inner width is the usual four hidden ones and
 * every head has its key head. */
static gboolean
looks_gated(const ZpValidateRecord *record)
{
    gint64 hidden = zp_validate_record_integer(record, "d_model", 1);
    gint64 heads = zp_validate_record_integer(record, "n_heads", 1);
    return zp_validate_record_integer(record, "d_ff", 4 * hidden) != 4 * hidden ||
           zp_validate_record_integer(record, "n_kv_heads", heads) != heads;
}

/* The vocabulary is what the parameter count leaves for two tables, or one where it is tied. */
static gint64
implied_vocabulary(const ZpValidateRecord *record, gboolean gated)
{
    double h = (double)zp_validate_record_integer(record, "d_model", 0);
    double layers = (double)zp_validate_record_integer(record, "n_layers", 0);
    double f = (double)zp_validate_record_integer(record, "d_ff", 4 * (gint64)h);
    double all = zp_validate_csv_number(record->csv, record->record, "n_params", 0.0);
    double blocks = layers * (4.0 * h * h + (gated ? 3.0 : 2.0) * h * f);
    double positions = gated ? 0.0 : (double)zp_validate_record_integer(record, "seq_len", 0) * h;
    gboolean tied = g_str_has_prefix(zp_validate_record_text(record, "tied_embeddings"), "y");
    double left = (all - blocks - positions) / ((tied ? 1.0 : 2.0) * MAX(h, 1.0));
    return left >= 1.0 && left < 1e6 ? (gint64)left : 0;
}

/* "GPT-200B": what the name says, where no count is stated; 0: it says nothing. */
static double
stated_size(const ZpValidateRecord *record)
{
    const char *at = zp_validate_record_text(record, "model_name");
    double said = zp_validate_csv_number(record->csv, record->record, "n_params", 0.0);
    for (; said <= 0.0 && (at = strchr(at, '-')) != NULL; at++) {
        char *end = NULL;
        double billions = g_ascii_strtod(at + 1, &end);
        if (end != at + 1 && *end == 'B' && !g_ascii_isalnum(end[1]))
            said = billions * 1e9;
    }
    return said;
}

/* Plain blocks that give the model's size, as many on each stage of a pipeline as on the others. */
static gint64
implied_layers(const ZpValidateRecord *record)
{
    gint64 hidden = zp_validate_record_integer(record, "d_model", 0);
    gint64 ffn = zp_validate_record_integer(record, "d_ff", 4 * hidden);
    double stages = (double)zp_validate_record_behind(record, "strategy", "pp", 1);
    double block = (double)hidden * (4.0 * (double)hidden + 2.0 * (double)ffn);
    double size = stated_size(record);
    return block > 0.0 && size > 0.0 ? (gint64)(stages * MAX(1.0, round(size / block / stages)))
                                     : 0;
}

/* Heads of about 128, as models of this kind have, that tensor parallel ranks can share. */
static gint64
implied_heads(const ZpValidateRecord *record)
{
    gint64 hidden = zp_validate_record_integer(record, "d_model", 0), best = 0;
    gint64 tensor = zp_validate_record_behind(record, "strategy", "tp", 1);
    for (gint64 heads = tensor; heads <= hidden / 64; heads += tensor)
        if (hidden % (2 * heads) == 0 &&
            (best == 0 || ABS(hidden - 128 * heads) < ABS(hidden - 128 * best)))
            best = heads;
    return best;
}

static ZpModel *
build_shape(const ZpValidateRecord *record, const ZpArchitectureOptions *options, gboolean imply,
            gboolean gated, GError **error)
{
    gint64 vocabulary = zp_validate_record_vocabulary(record);
    if (vocabulary == 0 && imply)
        vocabulary = implied_vocabulary(record, gated);
    gint64 hidden = zp_validate_record_integer(record, "d_model", 0);
    ZpArchitecture a = {
        .family = gated ? "llama" : "gpt2",
        .layers =
            zp_validate_record_integer(record, "n_layers", imply ? implied_layers(record) : 0),
        .hidden = hidden,
        .heads = zp_validate_record_integer(record, "n_heads", imply ? implied_heads(record) : 0),
        .kv_heads = zp_validate_record_integer(record, "n_kv_heads", 0),
        .ffn = zp_validate_record_integer(record, "d_ff", 4 * hidden),
        .vocabulary = vocabulary,
        .positions = gated ? 0 : zp_validate_record_integer(record, "seq_len", 0),
        .gated = gated,
        .tied = g_str_has_prefix(zp_validate_record_text(record, "tied_embeddings"), "y"),
        .attention_bias = !gated,
        .mlp_bias = !gated,
        .norm_bias = !gated,
        .final_norm = TRUE,
    };
    const char *name = zp_validate_record_text(record, "model_name");
    return zp_architecture_build(&a, options, name, error);
}

/* The table does not say whether an MLP is gated, nor where biases are: of the two usual shapes the
 * one whose parameter count is nearer. */
ZpModel *
zp_validate_model_build(const ZpValidateRecord *record, const ZpArchitectureOptions *options,
                        gboolean imply, GError **error)
{
    double wanted = zp_validate_csv_number(record->csv, record->record, "n_params", 0.0);
    g_autoptr(ZpModel) gated = build_shape(record, options, imply, TRUE, NULL);
    g_autoptr(ZpModel) plain = build_shape(record, options, imply, FALSE, error);
    if (plain == NULL)
        return NULL;
    if (gated == NULL)
        return g_steal_pointer(&plain);
    double off_gated = fabs((double)gated->n_elements - wanted);
    double off_plain = fabs((double)plain->n_elements - wanted);
    gboolean is_gated = wanted > 0.0 ? off_gated <= off_plain : looks_gated(record);
    return is_gated ? g_steal_pointer(&gated) : g_steal_pointer(&plain);
}
