#include "scenarios/imports/huggingface/config.h"

#include "models/families/build.h"
#include "models/words/names.h"
#include "models/words/nearest.h"
#include "scenarios/imports/huggingface/read_internal.h"
#include "scenarios/imports/huggingface/scan_internal.h"

#include <glib/gstdio.h>
#include <string.h>

static const char *
string_member(JsonObject *object, const char *key)
{
    JsonNode *node = json_object_get_member(object, key);
    return node && JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING
               ? json_node_get_string(node)
               : NULL;
}

static const char *
first_architecture(JsonObject *root)
{
    JsonNode *node = json_object_get_member(root, "architectures");
    if (node == NULL || !JSON_NODE_HOLDS_ARRAY(node))
        return NULL;
    JsonArray *array = json_node_get_array(node);
    if (json_array_get_length(array) == 0)
        return NULL;
    JsonNode *first = json_array_get_element(array, 0);
    return JSON_NODE_HOLDS_VALUE(first) && json_node_get_value_type(first) == G_TYPE_STRING
               ? json_node_get_string(first)
               : NULL;
}

/* Lower case without underscores: "Qwen2Moe" and "qwen2_moe" meet. */
static char *
plain(const char *text, gsize length)
{
    GString *result = g_string_new(NULL);
    for (gsize i = 0; i < length && text[i]; i++)
        if (text[i] != '_')
            g_string_append_c(result, g_ascii_tolower(text[i]));
    return g_string_free(result, FALSE);
}

/* "LlamaForCausalLM" without its ending names the family. */
static ZpFamily *
family_of_architecture(const char *architecture)
{
    static const char *const endings[] = {"For", "LMHeadModel", "Model"};
    gsize length = strlen(architecture);
    for (gsize e = 0; e < G_N_ELEMENTS(endings); e++) {
        const char *at = g_strrstr(architecture, endings[e]);
        if (at != NULL && at != architecture) {
            length = (gsize)(at - architecture);
            break;
        }
    }
    g_autofree char *wanted = plain(architecture, length);
    g_autoptr(GPtrArray) all = zp_families_load_all();
    for (guint i = 0; i < all->len; i++) {
        const ZpFamily *family = g_ptr_array_index(all, i);
        for (gsize t = 0; family->types[t]; t++) {
            g_autofree char *type = plain(family->types[t], strlen(family->types[t]));
            if (strcmp(type, wanted) == 0)
                return zp_family_load(family->name);
        }
    }
    return NULL;
}

static void
append_hint(GString *message, JsonObject *root)
{
    JsonNode *text = json_object_get_member(root, "text_config");
    if (text == NULL || !JSON_NODE_HOLDS_OBJECT(text))
        return;
    const char *type = string_member(json_node_get_object(text), "model_type");
    g_autoptr(ZpFamily) family = type ? zp_family_load_type(type) : NULL;
    if (family != NULL)
        g_string_append_printf(
            message,
            "; its text_config ('%s') in a file of its own would be the language "
            "model alone",
            type);
}

/* The nearest model_type, where one is near. */
static void
append_nearest(GString *message, const char *type)
{
    g_autoptr(GPtrArray) all = zp_families_load_all();
    g_autoptr(GPtrArray) types = g_ptr_array_new();
    for (guint i = 0; i < all->len; i++) {
        const ZpFamily *family = g_ptr_array_index(all, i);
        for (gsize t = 0; family->types[t]; t++)
            g_ptr_array_add(types, (gpointer)family->types[t]);
    }
    const char *nearest =
        zp_nearest_find_among(type, (const char *const *)types->pdata, types->len);
    if (nearest != NULL)
        g_string_append_printf(message, "; the nearest known is '%s'", nearest);
}

static ZpFamily *
choose_family(JsonObject *root, const char *text, GError **error)
{
    const char *type = string_member(root, "model_type");
    const char *architecture = first_architecture(root);
    if (type == NULL && architecture == NULL) {
        g_set_error(error, ZP_HF_ERROR, ZP_HF_ERROR_MISSING,
                    "missing: model_type (or architectures); this is not a model configuration");
        return NULL;
    }
    ZpFamily *family = type ? zp_family_load_type(type) : family_of_architecture(architecture);
    if (family != NULL)
        return family;
    g_autoptr(GString) message = g_string_new(NULL);
    int line = zp_hf_scan_line(text, type ? "model_type" : "architectures");
    g_autofree char *shown = g_strndup(type ? type : architecture, 60);
    g_string_printf(message,
                    "line %d: %s '%s' is not a transformer that is modelled; give its "
                    "total_parameters in place of config",
                    line, type ? "model_type" : "architecture", shown);
    append_nearest(message, shown);
    append_hint(message, root);
    g_set_error_literal(error, ZP_HF_ERROR, ZP_HF_ERROR_UNSUPPORTED, message->str);
    return NULL;
}

static ZpModel *
build(JsonObject *root, const char *text, const char *name, const ZpArchitectureOptions *options,
      GPtrArray *warnings, GError **error)
{
    g_autoptr(ZpFamily) family = choose_family(root, text, error);
    if (family == NULL)
        return NULL;
    g_autoptr(ZpSymbols) symbols = zp_symbols_new();
    g_autoptr(GHashTable) lists =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref);
    ZpHfReading reading = {text, root, family, symbols, lists};
    if (!zp_hf_read(&reading, error))
        return NULL;
    g_autoptr(GError) refused = NULL;
    ZpModel *model =
        zp_architecture_build_family(family, symbols, lists, options, name, warnings, &refused);
    if (model == NULL)
        g_set_error_literal(error, ZP_HF_ERROR,
                            refused->code == ZP_ARCHITECTURE_ERROR_UNSUPPORTED
                                ? ZP_HF_ERROR_UNSUPPORTED
                                : ZP_HF_ERROR_RANGE,
                            refused->message);
    return model;
}

/* json-glib says "<data>:3:1: Parse error: ...". */
static void
report_syntax(const char *message, GError **error)
{
    const char *at = strchr(message, ':');
    gint64 line = at ? g_ascii_strtoll(at + 1, NULL, 10) : 0;
    const char *why = strstr(message, ": ");
    g_set_error(error, ZP_HF_ERROR, ZP_HF_ERROR_SYNTAX, "line %" G_GINT64_FORMAT ": not JSON: %s",
                MAX(line, 1), why ? why + 2 : message);
}

static JsonParser *
parse(const char *json, gssize length, char **text, GError **error)
{
    gsize size;
    *text = zp_hf_scan(json, length, &size, error);
    if (*text == NULL)
        return NULL;
    g_autoptr(JsonParser) parser = json_parser_new_immutable();
    g_autoptr(GError) syntax = NULL;
    if (!json_parser_load_from_data(parser, *text, (gssize)size, &syntax)) {
        report_syntax(syntax->message, error);
        return NULL;
    }
    JsonNode *root = json_parser_get_root(parser);
    if (root == NULL || !JSON_NODE_HOLDS_OBJECT(root)) {
        g_set_error_literal(error, ZP_HF_ERROR, ZP_HF_ERROR_SYNTAX,
                            "line 1: a JSON object is expected");
        return NULL;
    }
    return g_steal_pointer(&parser);
}

ZpModel *
zp_hf_parse(const char *json, gssize length, const char *name, const ZpArchitectureOptions *options,
            GPtrArray *warnings, GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(JsonParser) parser = parse(json, length, &text, error);
    ZpModel *model = NULL;
    if (parser)
        model = build(json_node_get_object(json_parser_get_root(parser)), text, name, options,
                      warnings, error);
    if (model == NULL)
        g_prefix_error(error, "%s: ", name);
    return model;
}

/* "path/Llama-3-8B/config.json" is called Llama-3-8B, other files by their own name. */
static char *
model_name(const char *path)
{
    g_autofree char *whole = g_canonicalize_filename(path, NULL);
    g_autofree char *base = g_path_get_basename(whole);
    if (strcmp(base, "config.json") == 0) {
        g_autofree char *folder = g_path_get_dirname(whole);
        g_autofree char *last = g_path_get_basename(folder);
        if (strcmp(last, ".") != 0 && strcmp(last, "/") != 0)
            return g_steal_pointer(&last);
    }
    if (g_str_has_suffix(base, ".json"))
        base[strlen(base) - strlen(".json")] = '\0';
    return g_steal_pointer(&base);
}

ZpModel *
zp_hf_load(const char *path, const ZpArchitectureOptions *options, GPtrArray *warnings,
           GError **error)
{
    GStatBuf status;
    if (g_stat(path, &status) == 0 && status.st_size > ZP_HF_MAX_BYTES) {
        g_set_error(error, ZP_HF_ERROR, ZP_HF_ERROR_SYNTAX,
                    "%s: %" G_GINT64_FORMAT
                    " bytes are too many for a model configuration (at most %d)",
                    path, (gint64)status.st_size, ZP_HF_MAX_BYTES);
        return NULL;
    }
    g_autofree char *json = NULL;
    gsize length;
    g_autoptr(GError) failed = NULL;
    if (!g_file_get_contents(path, &json, &length, &failed)) {
        g_set_error_literal(error, ZP_HF_ERROR, ZP_HF_ERROR_IO, failed->message);
        return NULL;
    }
    ZpModel *model = zp_hf_parse(json, (gssize)length, path, options, warnings, error);
    if (model != NULL) {
        g_autofree char *name = model_name(path);
        model->name = g_intern_string(name);
    }
    return model;
}

gboolean
zp_hf_looks_like(const char *json, gssize length)
{
    g_autofree char *text = NULL;
    g_autoptr(JsonParser) parser = parse(json, length, &text, NULL);
    if (parser == NULL)
        return FALSE;
    JsonObject *root = json_node_get_object(json_parser_get_root(parser));
    return json_object_has_member(root, "model_type") ||
           json_object_has_member(root, "architectures");
}
