/* The model itself, built in the way the scenario describes it, or shared with the base. */
#include <string.h>

#include "models/families/adapters.h"
#include "models/families/catalog.h"
#include "scenarios/imports/huggingface/config.h"
#include "scenarios/load/resolve_internal.h"

static ZpArchitectureOptions
options_of(const ZpScenarioState *state)
{
    gint64 chunks = zp_scenario_state_integer(state, ZP_KEY_LOSS_CHUNKS);
    return (ZpArchitectureOptions){
        .compute = (ZpDtype)zp_scenario_state_integer(state, ZP_KEY_COMPUTE),
        .autocast = (gboolean)zp_scenario_state_integer(state, ZP_KEY_AUTOCAST),
        .narrow_weights =
            zp_dtype_bits((ZpDtype)zp_scenario_state_integer(state, ZP_KEY_GATHERED)) <= 16,
        .lora_rank = (gint32)zp_scenario_state_integer(state, ZP_KEY_LORA_RANK),
        .lora_targets = state->effective[ZP_KEY_LORA_TARGETS].value.text,
        .lora_dropout = (gboolean)zp_scenario_state_integer(state, ZP_KEY_LORA_DROPOUT),
        .padding = (gboolean)zp_scenario_state_integer(state, ZP_KEY_PADDING),
        .sequence = zp_scenario_state_integer(state, ZP_KEY_SEQUENCE),
        .hold_outputs = (gboolean)zp_scenario_state_integer(state, ZP_KEY_HOLD_OUTPUTS),
        .attention = (ZpAttentionImpl)zp_scenario_state_integer(state, ZP_KEY_ATTENTION),
        .compile = (ZpCompile)zp_scenario_state_integer(state, ZP_KEY_COMPILE),
        .fused_norms = (ZpTrait)zp_scenario_state_integer(state, ZP_KEY_NORM_KERNEL),
        .fused_rotary = (gboolean)zp_scenario_state_integer(state, ZP_KEY_ROTARY_KERNEL),
        .dropout = (ZpTrait)zp_scenario_state_integer(state, ZP_KEY_DROPOUT),
        .attention_dropout = (ZpTrait)zp_scenario_state_integer(state, ZP_KEY_ATTENTION_DROPOUT),
        .grouped_experts = (ZpTrait)zp_scenario_state_integer(state, ZP_KEY_EXPERTS),
        .transformers = (gint32)zp_scenario_state_integer(state, ZP_KEY_TRANSFORMERS),
        .loss = (gint32)zp_scenario_state_integer(state, ZP_KEY_LOSS),
        .loss_chunks = (gint32)chunks,
        .selective = (ZpSelective)zp_scenario_state_integer(state, ZP_KEY_SELECTIVE),
        .reentrant = (gboolean)zp_scenario_state_integer(state, ZP_KEY_REENTRANT),
        .causal = (gboolean)zp_scenario_state_integer(state, ZP_KEY_CAUSAL),
        .expert_imbalance = state->effective[ZP_KEY_EXPERT_IMBALANCE].value.real,
        /* Context parallelism cuts the job's sequence instead. */
        .tensor_parallel = (gint32)zp_scenario_state_integer(state, ZP_KEY_TENSOR),
        .sequence_parallel = (gboolean)zp_scenario_state_integer(state, ZP_KEY_SEQUENCE_PARALLEL),
    };
}

static ZpModel *
build_from_dimensions(const ZpScenarioState *state, GError **error)
{
    ZpArchitectureOptions options = options_of(state);
    ZpArchitecture architecture = {
        .family = "",
        .layers = zp_scenario_state_integer(state, ZP_KEY_LAYERS),
        .hidden = zp_scenario_state_integer(state, ZP_KEY_HIDDEN),
        .heads = zp_scenario_state_integer(state, ZP_KEY_HEADS),
        .kv_heads = zp_scenario_state_integer(state, ZP_KEY_KV_HEADS),
        .head_size = zp_scenario_state_integer(state, ZP_KEY_HEAD_SIZE),
        .ffn = zp_scenario_state_integer(state, ZP_KEY_FFN),
        .vocabulary = zp_scenario_state_integer(state, ZP_KEY_VOCABULARY),
        .positions = zp_scenario_state_integer(state, ZP_KEY_POSITIONS),
        .gated = (gboolean)zp_scenario_state_integer(state, ZP_KEY_GATED),
        .tied = (gboolean)zp_scenario_state_integer(state, ZP_KEY_TIED),
        .attention_bias = (gboolean)zp_scenario_state_integer(state, ZP_KEY_ATTENTION_BIAS),
        .qkv_bias = (gboolean)zp_scenario_state_integer(state, ZP_KEY_QKV_BIAS),
        .mlp_bias = (gboolean)zp_scenario_state_integer(state, ZP_KEY_MLP_BIAS),
        .head_bias = (gboolean)zp_scenario_state_integer(state, ZP_KEY_HEAD_BIAS),
        .norm_bias = (gboolean)zp_scenario_state_integer(state, ZP_KEY_NORM),
        .norms_per_block = (int)zp_scenario_state_integer(state, ZP_KEY_NORMS_PER_BLOCK),
        .final_norm = (gboolean)zp_scenario_state_integer(state, ZP_KEY_FINAL_NORM),
    };
    return zp_architecture_build(&architecture, &options, "dimensions", error);
}

/* A layer's setting or its default; -1: derived. */
static gint64
layer_integer(const ZpSettingsLayer *layer, ZpSchemaId id)
{
    const ZpSetting *setting = &layer->keys[id - ZP_KEY_LAYER_PARAMETERS];
    ZpSchemaValue fallback = {.integer = id == ZP_KEY_LAYER_FLOPS ? -1 : 0};
    if (setting->given)
        return setting->value.integer;
    zp_schema_default(zp_schema_key(id), &fallback);
    return fallback.integer;
}

/* Before anything is built: a refused scenario costs nothing. */
static gboolean
check_spelt_layers(ZpScenarioResolve *resolve)
{
    const GPtrArray *layers = resolve->state->settings->layers;
    gint64 total = 0, n_layers = 0;
    for (guint l = 0; l < layers->len; l++) {
        const ZpSettingsLayer *layer = g_ptr_array_index(layers, l);
        gint64 repeat = layer_integer(layer, ZP_KEY_LAYER_REPEAT);
        gint64 elements = layer_integer(layer, ZP_KEY_LAYER_PARAMETERS);
        ZpScenarioError code = ZP_SCENARIO_ERROR_MISSING;
        const char *what = NULL;
        n_layers += repeat;
        if (!layer->keys[0].given) {
            what = "parameters is missing";
        } else if (n_layers > ZP_SCHEMA_MAX_LAYERS) {
            code = ZP_SCENARIO_ERROR_RANGE;
            what = "more than 10000 layers in all";
        } else if (elements > (ZP_SCHEMA_MAX_ELEMENTS - total) / repeat) {
            code = ZP_SCENARIO_ERROR_OVERFLOW;
            what = "more than 2^56 parameters in all";
        }
        if (what != NULL) {
            zp_problems_add(resolve->problems, code, layer->origin, "[%s]: %s", layer->section,
                            what);
            return FALSE;
        }
        total += elements * repeat;
    }
    return TRUE;
}

static ZpModel *
build_from_layers(ZpScenarioResolve *resolve)
{
    if (!check_spelt_layers(resolve))
        return NULL;
    const GPtrArray *layers = resolve->state->settings->layers;
    ZpModel *model = zp_model_new("layers");
    model->family = "hand-spelt";
    for (guint l = 0; l < layers->len; l++) {
        const ZpSettingsLayer *layer = g_ptr_array_index(layers, l);
        zp_model_add_layer(
            model, zp_settings_layer_name(layer), layer_integer(layer, ZP_KEY_LAYER_PARAMETERS),
            (gint32)layer_integer(layer, ZP_KEY_LAYER_REPEAT),
            layer_integer(layer, ZP_KEY_LAYER_FLOPS), layer_integer(layer, ZP_KEY_LAYER_ACTIVATION),
            layer_integer(layer, ZP_KEY_LAYER_CHECKPOINT));
    }
    zp_model_finish(model);
    return model;
}

static ZpModel *
build_from_config(ZpScenarioResolve *resolve, const ZpArchitectureOptions *options, GError **error)
{
    g_autofree char *path = zp_settings_file(resolve->state->settings, ZP_KEY_CONFIG,
                                             zp_scenario_key_text(resolve, ZP_KEY_CONFIG));
    return zp_hf_load(path, options, resolve->scenario->warnings, error);
}

static ZpModel *
build(ZpScenarioResolve *resolve, ZpSchemaId *about, GError **error)
{
    const ZpScenarioState *state = resolve->state;
    ZpArchitectureOptions options = options_of(state);
    switch (resolve->route) {
    case ZP_ROUTE_CATALOG:
        *about = ZP_KEY_CATALOG;
        return zp_catalog_build(state->effective[ZP_KEY_CATALOG].value.text, &options, error);
    case ZP_ROUTE_CONFIG:
        *about = ZP_KEY_CONFIG;
        return build_from_config(resolve, &options, error);
    case ZP_ROUTE_TOTAL:
        return zp_model_new_total(zp_scenario_state_integer(state, ZP_KEY_TOTAL_PARAMETERS),
                                  (gint32)zp_scenario_state_integer(state, ZP_KEY_PIECES));
    case ZP_ROUTE_DIMENSIONS:
        *about = ZP_KEY_LAYERS;
        return build_from_dimensions(state, error);
    case ZP_ROUTE_LAYERS:
        return build_from_layers(resolve);
    case ZP_ROUTE_NONE:
        break;
    }
    g_assert_not_reached();
}

/* Does anything that shapes the model differ? */
static gboolean
same_model(const ZpScenarioResolve *resolve)
{
    if (resolve->base == NULL ||
        resolve->base->state->settings->layers != resolve->state->settings->layers)
        return FALSE;
    for (int id = 0; id < ZP_N_KEYS; id++) {
        const ZpSchemaKey *key = zp_schema_key((ZpSchemaId)id);
        const ZpScenarioEffective *a = &resolve->base->state->effective[id];
        const ZpScenarioEffective *b = &resolve->state->effective[id];
        if (key->shapes_model &&
            (a->present != b->present || !zp_schema_value_equal(key, &a->value, &b->value)))
            return FALSE;
    }
    /* The same name may be of another file. */
    return resolve->base->state->settings->keys[ZP_KEY_CONFIG].by_hand ==
           resolve->state->settings->keys[ZP_KEY_CONFIG].by_hand;
}

static ZpScenarioError
reason_of(const GError *error)
{
    if (g_error_matches(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_RANGE) ||
        g_error_matches(error, ZP_HF_ERROR, ZP_HF_ERROR_RANGE))
        return ZP_SCENARIO_ERROR_RANGE;
    if (g_error_matches(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_MISSING) ||
        g_error_matches(error, ZP_HF_ERROR, ZP_HF_ERROR_MISSING))
        return ZP_SCENARIO_ERROR_MISSING;
    if (g_error_matches(error, ZP_HF_ERROR, ZP_HF_ERROR_IO))
        return ZP_SCENARIO_ERROR_IO;
    if (g_error_matches(error, ZP_HF_ERROR, ZP_HF_ERROR_SYNTAX))
        return ZP_SCENARIO_ERROR_SYNTAX;
    return ZP_SCENARIO_ERROR_UNKNOWN;
}

/* Built by families, which know what the blocks around adapters keep. */
static gboolean
counts_adapters(const ZpScenarioResolve *resolve)
{
    return resolve->route == ZP_ROUTE_CATALOG || resolve->route == ZP_ROUTE_CONFIG ||
           resolve->route == ZP_ROUTE_DIMENSIONS;
}

/* Freezes what the scenario names and adds adapters; FALSE where a pattern matches nothing. */
static gboolean
adapt(ZpScenarioResolve *resolve, ZpModel *model)
{
    const ZpScenarioState *state = resolve->state;
    const char *frozen = state->effective[ZP_KEY_FROZEN].value.text;
    g_auto(GStrv) patterns = g_strsplit(strcmp(frozen, "none") == 0 ? "" : frozen, ",", -1);
    for (char **pattern = patterns; *pattern != NULL; pattern++) {
        if (zp_model_freeze(model, g_strstrip(*pattern)) > 0)
            continue;
        zp_scenario_resolve_complain(resolve, ZP_KEY_FROZEN, ZP_SCENARIO_ERROR_UNKNOWN,
                                     "no parameter matches '%s'; 'zeropeak check --json' on a "
                                     "config.json lists the names",
                                     *pattern);
        return FALSE;
    }
    gint64 rank = zp_scenario_state_integer(state, ZP_KEY_LORA_RANK);
    g_autoptr(GError) error = NULL;
    if (rank == 0 ||
        zp_model_add_lora(model, (gint32)rank, state->effective[ZP_KEY_LORA_TARGETS].value.text,
                          counts_adapters(resolve), &error))
        return TRUE;
    zp_scenario_resolve_complain(resolve, ZP_KEY_LORA_TARGETS, ZP_SCENARIO_ERROR_UNKNOWN, "%s",
                                 error->message);
    return FALSE;
}

void
zp_scenario_build_model(ZpScenarioResolve *resolve)
{
    g_autoptr(GError) error = NULL;
    ZpSchemaId about = ZP_KEY_TOTAL_PARAMETERS;
    if (same_model(resolve)) {
        resolve->state->model = resolve->base->state->model;
        g_atomic_ref_count_inc(&resolve->state->model->references);
        return;
    }
    ZpModel *model = build(resolve, &about, &error);
    if (error != NULL)
        zp_scenario_resolve_complain(resolve, about, reason_of(error), "%s", error->message);
    if (model == NULL)
        return;
    if (!zp_scenario_cut_model(resolve, model) || !adapt(resolve, model)) {
        zp_model_free(model);
        return;
    }
    resolve->state->model = g_new0(ZpScenarioModel, 1);
    g_atomic_ref_count_init(&resolve->state->model->references);
    resolve->state->model->model = model;
    zp_scenario_cut_stages(resolve, resolve->state->model);
}
