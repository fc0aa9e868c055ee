/* Models from a config.json. */
#pragma once

#include <string.h>

#include "scenarios/hf_config.h"

static const ZpArchitectureOptions options = {
    .compute = ZP_DTYPE_BF16, .attention = ZP_ATTENTION_FLASH, .causal = TRUE};

#define LLAMA_WITHOUT_HEAD                                                             \
    "\"model_type\": \"llama\", \"hidden_size\": 1024, \"intermediate_size\": 2816,\n" \
    "\"num_hidden_layers\": 3, \"num_attention_heads\": 16, \"vocab_size\": 32000"

static inline ZpModel *
hf_fixture_parse(const char *json)
{
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_hf_parse(json, -1, "config.json", &options, NULL, &error);
    g_assert_no_error(error);
    return model;
}

/* What `n` layers keep together. */
static inline ZpModelBytes
hf_fixture_kept(const ZpModel *model, gint32 first, gint32 n)
{
    ZpModelBytes sum = {0};
    for (gint32 l = first; l < first + n; l++) {
        const ZpModelActivation *activation =
            zp_model_activation(model, zp_model_layer(model, l)->activation);
        sum.bytes_per_token += activation->policies[ZP_CHECKPOINTING_NONE].kept.bytes_per_token;
        sum.bytes_per_pair += activation->policies[ZP_CHECKPOINTING_NONE].kept.bytes_per_pair;
    }
    return sum;
}

static inline ZpModel *
hf_fixture_load(const char *file, ZpAttentionImpl attention)
{
    ZpArchitectureOptions own = options;
    own.attention = attention;
    g_autofree char *path = g_strdup_printf("%s/tests/reference/hf/%s.json", ZP_SOURCE_DIR, file);
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_hf_load(path, &own, NULL, &error);
    g_assert_no_error(error);
    return model;
}

static inline const ZpModelParameter *
hf_fixture_find(const ZpModel *model, const char *name)
{
    for (gint32 i = 0; i < (gint32)model->parameters->len; i++)
        if (strcmp(zp_model_parameter(model, i)->name, name) == 0)
            return zp_model_parameter(model, i);
    return NULL;
}

/* The error names all `words`. */
static inline void
hf_fixture_refused(const char *json, int code, const char *const *words)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(zp_hf_parse(json, -1, "config.json", &options, NULL, &error));
    g_assert_error(error, ZP_HF_ERROR, code);
    g_assert_true(g_str_has_prefix(error->message, "config.json: "));
    for (gsize i = 0; words[i]; i++)
        if (strstr(error->message, words[i]) == NULL)
            g_test_fail_printf("'%s' is not in: %s", words[i], error->message);
}
