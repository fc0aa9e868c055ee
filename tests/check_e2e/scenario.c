/* How the question of a case is put to the simulator. */
#include "check_e2e/e2e.h"

#include <string.h>

static JsonObject *
part(JsonObject *record, const char *name)
{
    return json_object_get_object_member(record, name);
}

static const char *
word(JsonObject *spec, const char *key)
{
    return json_object_get_string_member_with_default(spec, key, NULL);
}

static gint64
number(JsonObject *spec, const char *key)
{
    return json_object_get_int_member_with_default(spec, key, 0);
}

static gboolean
flag(JsonObject *spec, const char *key)
{
    return json_object_get_boolean_member_with_default(spec, key, FALSE);
}

static gboolean
has(JsonObject *spec, const char *key)
{
    return json_object_has_member(spec, key) && !json_object_get_null_member(spec, key);
}

static gboolean
is(JsonObject *spec, const char *key, const char *value)
{
    return g_strcmp0(word(spec, key), value) == 0;
}

static gboolean
is_version_4(JsonObject *record)
{
    return g_str_has_prefix(word(part(record, "versions"), "transformers"), "4.");
}

static char *
targets_of(JsonObject *lora)
{
    GString *text = g_string_new(NULL);
    JsonArray *targets = json_object_get_array_member(lora, "targets");
    for (guint i = 0; i < json_array_get_length(targets); i++)
        g_string_append_printf(text, "%s%s", i ? ", " : "",
                               json_array_get_string_element(targets, i));
    return g_string_free(text, FALSE);
}

static void
write_model(GString *text, JsonObject *spec, const char *config)
{
    g_string_append_printf(text, "[model]\nconfig = %s\nattention = %s\n", config,
                           is(spec, "attn", "eager") ? "eager" : "default");
    if (!has(spec, "lora"))
        return;
    JsonObject *lora = part(spec, "lora");
    g_autofree char *targets = targets_of(lora);
    g_string_append_printf(text, "lora_rank = %" G_GINT64_FORMAT "\nlora_targets = %s\n",
                           number(lora, "r"), targets);
}

static void
write_training(GString *text, JsonObject *spec)
{
    g_string_append_printf(
        text, "[training]\nmicro_batch = %" G_GINT64_FORMAT "\nsequence = %" G_GINT64_FORMAT "\n",
        number(spec, "batch"), number(spec, "seq"));
    if (number(spec, "accumulation") > 1)
        g_string_append_printf(text, "accumulation = %" G_GINT64_FORMAT "\n",
                               number(spec, "accumulation"));
    if (flag(spec, "checkpoint"))
        g_string_append(text, "checkpointing = full\n");
    if (flag(spec, "checkpoint") && flag(spec, "reentrant"))
        g_string_append(text, "reentrant = true\n");
    if (flag(spec, "loss_outside"))
        g_string_append(text, "loss_outside = true\n");
    if (flag(spec, "padding"))
        g_string_append(text, "padding = true\n");
    if (flag(spec, "hold_outputs"))
        g_string_append(text, "hold_outputs = true\n");
    if (has(spec, "autocast") || is(spec, "wrap", "accelerate"))
        g_string_append(text, "autocast = true\n");
}

static void
write_precision(GString *text, JsonObject *spec)
{
    const char *model = word(spec, "model_dtype");
    const char *gathered = word(spec, "param_dtype") ? word(spec, "param_dtype") : model;
    const char *reduce = word(spec, "reduce_dtype") ? word(spec, "reduce_dtype") : gathered;
    g_string_append_printf(text,
                           "[precision]\nparameter = %s\ngradient = %s\nmaster = none\n"
                           "moments = %s\n",
                           model, model, model);
    if (is(spec, "runtime", "fsdp2"))
        g_string_append_printf(text, "gathered = %s\nreduce = %s\n", gathered, reduce);
    else if (is(spec, "runtime", "ddp") && has(spec, "autocast"))
        g_string_append_printf(text, "gathered = %s\n", model);
}

static void
write_zero(GString *text, JsonObject *spec)
{
    gboolean sharded = is(spec, "runtime", "fsdp2"), alone = is(spec, "runtime", "single");
    g_string_append_printf(text, "[zero]\nruntime = %s\nstage = %d\n",
                           alone ? "none" : word(spec, "runtime"), sharded ? 3 : 0);
    if (sharded)
        g_string_append_printf(text, "outer = %s\n", is(spec, "wrap", "root") ? "root" : "own");
    g_string_append_printf(text, "[world]\nranks = %" G_GINT64_FORMAT "\n",
                           alone ? 1 : number(spec, "world"));
}

static gint64
reshard(JsonObject *spec)
{
    JsonNode *node = json_object_get_member(spec, "reshard");
    if (json_node_get_value_type(node) == G_TYPE_BOOLEAN)
        return json_node_get_boolean(node) ? -1 : 0;
    return json_node_get_int(node);
}

static void
write_fsdp(GString *text, JsonObject *record, JsonObject *spec)
{
    g_string_append_printf(text, "[fsdp]\noptimizer_mode = %s\n", word(spec, "optimizer_mode"));
    if (is(spec, "runtime", "fsdp2") && reshard(spec) >= 0)
        g_string_append_printf(text, "reshard_after_forward = %" G_GINT64_FORMAT "\n",
                               reshard(spec));
    if (!flag(spec, "set_to_none"))
        g_string_append(text, "set_to_none = false\n");
    if (flag(spec, "no_sync"))
        g_string_append(text, "sync_every_micro_batch = false\n");
    if (has(spec, "ddp") && flag(part(spec, "ddp"), "gradient_as_bucket_view"))
        g_string_append(text, "gradient_as_bucket_view = true\n");
    /* transformers 5 checkpoints the method, before that the module is inside. */
    if (flag(spec, "checkpoint") && is_version_4(record))
        g_string_append(text, "checkpoint_outside = true\n");
}

static void
write_optimizer(GString *text, JsonObject *spec)
{
    g_string_append_printf(text, "[optimizer]\nname = %s\n", word(spec, "optimizer"));
}

char *
e2e_scenario(JsonObject *record, const char *config)
{
    JsonObject *spec = part(record, "spec");
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "[framework]\ntransformers = %d\n", is_version_4(record) ? 4 : 5);
    write_model(text, spec, config);
    write_training(text, spec);
    write_precision(text, spec);
    write_zero(text, spec);
    write_fsdp(text, record, spec);
    write_optimizer(text, spec);
    g_string_append(text, "[device]\noverhead = 0 B\ngpu = A100-SXM-80\nallocator = none\n"
                          "[host]\nrun_ahead = unlimited\n");
    return g_string_free(text, FALSE);
}

static void
copy_member(JsonObject *from, const char *name, JsonNode *node, gpointer to)
{
    (void)from;
    json_object_set_member(to, name, json_node_copy(node));
}

char *
e2e_config(JsonObject *record, const char *folder, GError **error)
{
    JsonObject *spec = part(record, "spec"), *model = part(record, "model");
    g_autofree char *name = g_strconcat(word(spec, "config"), ".json", NULL);
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_autoptr(JsonParser) parser = json_parser_new();
    if (!json_parser_load_from_file(parser, path, error))
        return NULL;
    JsonNode *root = json_parser_get_root(parser);
    JsonObject *config = json_node_get_object(root);
    if (has(spec, "overrides"))
        json_object_foreach_member(part(spec, "overrides"), copy_member, config);
    const char *class_name = word(model, "class");
    if (!has(spec, "lora") && class_name != NULL) {
        JsonArray *classes = json_array_new();
        gboolean wrapped = g_str_has_prefix(class_name, "FSDP");
        json_array_add_string_element(classes, class_name + (wrapped ? strlen("FSDP") : 0));
        json_object_set_array_member(config, "architectures", classes);
    }
    return json_to_string(root, FALSE);
}

static void
note(GPtrArray *features, gboolean holds, const char *name)
{
    if (holds)
        g_ptr_array_add(features, g_strdup(name));
}

GPtrArray *
e2e_features(JsonObject *record)
{
    JsonObject *spec = part(record, "spec");
    GPtrArray *features = g_ptr_array_new_with_free_func(g_free);
    gboolean sharded = is(spec, "runtime", "fsdp2");
    note(features, TRUE, word(spec, "runtime"));
    note(features, sharded, word(spec, "wrap"));
    note(features, flag(spec, "checkpoint"), "checkpointing");
    note(features, flag(spec, "reentrant"), "reentrant");
    note(features, has(spec, "lora"), "lora");
    note(features, has(spec, "autocast"), "autocast");
    note(features, is(spec, "attn", "eager"), "eager");
    note(features, flag(spec, "padding"), "padding");
    note(features, flag(spec, "hold_outputs"), "outputs held");
    note(features, flag(spec, "loss_outside"), "loss outside");
    note(features, number(spec, "accumulation") > 1, "accumulation");
    note(features, !is(spec, "optimizer", "adamw"), word(spec, "optimizer"));
    note(features, !is(spec, "optimizer_mode", "foreach"), word(spec, "optimizer_mode"));
    note(features, sharded && reshard(spec) >= 0, "reshard setting");
    note(features, sharded && number(spec, "world") != 8, "other ranks than 8");
    note(features, !is(spec, "model_dtype", "fp32"), "16-bit storage");
    note(features, is_version_4(record), "transformers 4");
    note(features, features->len == 2 && sharded && is(spec, "wrap", "root"), "nothing special");
    return features;
}
