/* What kind of settings file this is, by content; the name only decides where both fit. */
#include "scenarios/imports/import.h"
#include "scenarios/readers/readers.h"

#include <string.h>

const char *
zp_import_kind_name(ZpImportKind kind)
{
    static const char *const names[] = {
        "unknown", "deepspeed", "accelerate", "trainer", "torchtitan", "model", "scenario",
    };
    g_assert((gsize)kind < G_N_ELEMENTS(names));
    return names[kind];
}

static gboolean
has_any(const ZpTree *root, const char *const *keys)
{
    for (; *keys; keys++)
        if (zp_tree_find(root, *keys))
            return TRUE;
    return FALSE;
}

static ZpImportKind
detect_json(const ZpTree *root)
{
    static const char *const trainer[] = {
        "fsdp", "fsdp_config", "per_device_train_batch_size", "output_dir", "deepspeed", NULL,
    };
    static const char *const fsdp_config[] = {
        "transformer_layer_cls_to_wrap",
        "fsdp_transformer_layer_cls_to_wrap",
        "min_num_params",
        "fsdp_min_num_params",
        "fsdp_version",
        "backward_prefetch",
        "reshard_after_forward",
        "fsdp_auto_wrap_policy",
        "fsdp_sharding_strategy",
        "use_orig_params",
        NULL,
    };
    static const char *const deepspeed[] = {
        "zero_optimization",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "fp16",
        "bf16",
        "gradient_accumulation_steps",
        NULL,
    };
    static const char *const model[] = {
        "model_type", "architectures",     "hidden_size", "n_embd",
        "d_model",    "num_hidden_layers", NULL,
    };
    if (zp_tree_find(root, "zero_optimization"))
        return ZP_IMPORT_DEEPSPEED;
    if (has_any(root, trainer) || has_any(root, fsdp_config))
        return ZP_IMPORT_TRAINER;
    if (has_any(root, model) && !has_any(root, deepspeed))
        return ZP_IMPORT_MODEL;
    return ZP_IMPORT_DEEPSPEED;
}

/* Sections in brackets: torchtitan's TOML and scenarios look alike there. */
static ZpImportKind
detect_sections(const char *text, gsize length, gboolean toml)
{
    static const char *const titan[] = {
        "parallelism", "activation_checkpoint", "job",  "lr_scheduler", "float8", "metrics",
        "profiling",   "experimental",          "comm", NULL,
    };
    const char *end = text + length;
    for (const char *line = text; line && line < end;) {
        const char *stop = memchr(line, '\n', (gsize)(end - line));
        const char *close = memchr(line, ']', (gsize)((stop ? stop : end) - line));
        if (*line == '[' && close) {
            g_autofree char *name = g_strstrip(g_strndup(line + 1, (gsize)(close - line - 1)));
            if (g_strv_contains(titan, name))
                return ZP_IMPORT_TORCHTITAN;
        }
        line = stop ? stop + 1 : NULL;
    }
    return toml ? ZP_IMPORT_TORCHTITAN : ZP_IMPORT_SCENARIO;
}

/* First character that is neither space nor in a comment line. */
static const char *
first_mark(const char *text, gsize length)
{
    const char *p = text, *end = text + length;
    if (length >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        p += 3;
    while (p < end) {
        if (*p == '#' || (*p == ';' && p + 1 < end)) {
            p = memchr(p, '\n', (gsize)(end - p));
            if (!p)
                return end;
        } else if (!g_ascii_isspace(*p)) {
            return p;
        }
        p++;
    }
    return end;
}

/* The first line with content that is "name: ..." and not "name = ...". */
static gboolean
is_mapping_line(const char *p, const char *end)
{
    const char *stop = memchr(p, '\n', (gsize)(end - p));
    gsize length = (gsize)((stop ? stop : end) - p);
    const char *colon = memchr(p, ':', length), *equals = memchr(p, '=', length);
    return (length >= 3 && strncmp(p, "---", 3) == 0) || (colon && (!equals || colon < equals));
}

ZpImportKind
zp_import_detect(const char *name, const char *text, gsize length)
{
    g_autofree char *lower = g_ascii_strdown(name, -1);
    const char *p = first_mark(text, length), *end = text + length;
    gboolean json_name = g_str_has_suffix(lower, ".json");
    if (length > ZP_TREE_MAX_BYTES)
        return json_name ? ZP_IMPORT_DEEPSPEED : ZP_IMPORT_UNKNOWN;
    if (g_str_has_suffix(lower, ".yaml") || g_str_has_suffix(lower, ".yml"))
        return ZP_IMPORT_ACCELERATE;
    if (g_str_has_suffix(lower, ".toml"))
        return detect_sections(text, length, TRUE);
    if (json_name || (p < end && (*p == '{' || *p == '/'))) {
        g_autoptr(ZpImportMessages) messages = zp_import_message_list_new(name);
        g_autoptr(ZpTree) root = zp_json_text_parse(text, length, ZP_JSON_FORGIVING, messages);
        return root ? detect_json(root) : ZP_IMPORT_DEEPSPEED;
    }
    if (p < end && *p == '[')
        return detect_sections(p, (gsize)(end - p), FALSE);
    if (p < end && is_mapping_line(p, end))
        return ZP_IMPORT_ACCELERATE;
    return p < end && memchr(p, '=', (gsize)(end - p)) ? ZP_IMPORT_SCENARIO : ZP_IMPORT_UNKNOWN;
}
