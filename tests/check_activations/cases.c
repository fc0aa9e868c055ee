#include "check_activations/describe.h"

#include <gio/gio.h>
#include <json-glib/json-glib.h>
#include <string.h>

const char *const case_columns[CASE_COLUMNS] = {
    [CASE_KEPT] = "retained",
    [CASE_INPUT_KEPT] = "input_retained",
    [CASE_FORWARD_PEAK] = "fwd_peak_above_entry",
    [CASE_BACKWARD_ENTRY] = "bwd_entry",
    [CASE_BACKWARD_PEAK] = "bwd_peak",
    [CASE_INPUT] = "input_bytes",
    [CASE_OUTPUT] = "output_bytes",
    [CASE_KEPT_COPIES] = "retained_param_copies",
    [CASE_FORWARD_WITH_COPIES] = "fwd_peak_with_param_copies",
    [CASE_PARAMETER_GRADIENTS] = "param_grad_bytes",
    [CASE_BACKWARD_WITH_GRADIENTS] = "bwd_peak_with_param_grads_and_copies",
    [CASE_FLASH_WORKSPACE] = "derived_cuda_flash_bwd_workspace",
    [CASE_BACKWARD_WITH_WORKSPACE] = "derived_bwd_peak_with_flash_workspace",
};
enum { CSV_WORDS = 7, CSV_COLUMNS = CSV_WORDS + CASE_COLUMNS + 2 };

void
activation_case_free(ActivationCase *item)
{
    g_free(item->variant);
    g_free(item->regime);
    g_free(item->policy);
    g_free(item->shape);
    g_free(item->forward_at);
    g_free(item->backward_at);
    g_free(item);
}

/* "key=value key=value" of a JSON object; the order is the file's. */
static char *
words_of_object(JsonObject *object)
{
    GString *text = g_string_new(NULL);
    JsonObjectIter iter;
    const char *key;
    JsonNode *node;
    json_object_iter_init_ordered(&iter, object);
    while (json_object_iter_next_ordered(&iter, &key, &node)) {
        g_autofree char *value = json_node_get_value_type(node) == G_TYPE_STRING
                                     ? json_node_dup_string(node)
                                     : json_to_string(node, FALSE);
        g_string_append_printf(text, "%s%s=%s", text->len > 0 ? " " : "", key, value);
    }
    return g_string_free(text, FALSE);
}

static GHashTable *
table_of_words(const char *text, gboolean numbers)
{
    GHashTable *table = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_auto(GStrv) pairs = g_strsplit(text, " ", -1);
    for (char **pair = pairs; *pair; pair++) {
        char *equals = strchr(*pair, '=');
        if (!equals)
            continue;
        gint64 number = g_ascii_strtoll(equals + 1, NULL, 10);
        g_hash_table_insert(table, g_strndup(*pair, (gsize)(equals - *pair)),
                            numbers ? g_memdup2(&number, sizeof number) : g_strdup(equals + 1));
    }
    return table;
}

/* Takes seven words: variant, family, dtype, policy, options, dims, and the name of the dims. */
static ActivationCase *
case_of_words(char **words, GError **error)
{
    g_autoptr(GHashTable) options = table_of_words(words[4], FALSE);
    g_autoptr(GHashTable) sizes = table_of_words(words[5], TRUE);
    CaseWords described = {words[1], words[2], words[3], options, sizes};
    ActivationCase *item = g_new0(ActivationCase, 1);
    item->variant = g_strdup(words[0]);
    item->regime = g_strdup(words[2]);
    item->policy = g_strdup(words[3]);
    item->shape =
        g_strdup_printf("%s | %s %s | %s | %s", words[6], words[1], words[4], words[5], words[3]);
    if (activation_case_describe(&described, item, error))
        return item;
    activation_case_free(item);
    return NULL;
}

/* A member of this kind, or NULL with an error that names it. */
static JsonNode *
member(JsonObject *object, const char *name, JsonNodeType type, GError **error)
{
    JsonNode *node = json_object_get_member(object, name);
    if (node && json_node_get_node_type(node) == type)
        return node;
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "a case has no %s '%s'",
                type == JSON_NODE_OBJECT ? "object" : "value", name);
    return NULL;
}

static ActivationCase *
case_of_object(JsonObject *object, GError **error)
{
    const char *fixed[] = {"variant", "family", "dtype", "policy", "id"};
    const char *inner[] = {"options", "dims", "measured"};
    JsonNode *values[G_N_ELEMENTS(fixed)], *objects[G_N_ELEMENTS(inner)];
    for (guint i = 0; i < G_N_ELEMENTS(fixed); i++) {
        values[i] = member(object, fixed[i], JSON_NODE_VALUE, error);
        if (!values[i] || !json_node_get_string(values[i])) {
            if (error && !*error)
                g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s is no string",
                            fixed[i]);
            return NULL;
        }
    }
    for (guint i = 0; i < G_N_ELEMENTS(inner); i++) {
        objects[i] = member(object, inner[i], JSON_NODE_OBJECT, error);
        if (!objects[i])
            return NULL;
    }
    JsonObject *measured = json_node_get_object(objects[2]);
    g_autofree char *options = words_of_object(json_node_get_object(objects[0]));
    g_autofree char *sizes = words_of_object(json_node_get_object(objects[1]));
    char *words[CSV_WORDS];
    for (int i = 0; i < 4; i++)
        words[i] = (char *)json_node_get_string(values[i]);
    words[4] = options;
    words[5] = sizes;
    words[6] = (char *)json_node_get_string(values[4]);
    ActivationCase *item = case_of_words(words, error);
    if (!item)
        return NULL;
    for (int i = 0; i < CASE_COLUMNS; i++) {
        JsonNode *node = json_object_get_member(measured, case_columns[i]);
        if (!node)
            item->measured[i] = -1;
        else
            item->measured[i] = json_node_get_value_type(node) == G_TYPE_BOOLEAN
                                    ? json_node_get_boolean(node)
                                    : json_node_get_int(node);
    }
    item->forward_at =
        g_strdup(json_object_get_string_member_with_default(measured, "fwd_peak_at", "-"));
    item->backward_at =
        g_strdup(json_object_get_string_member_with_default(measured, "bwd_peak_at", "-"));
    return item;
}

static gboolean
load_json(const char *path, GPtrArray *cases, GError **error)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    if (!json_parser_load_from_file(parser, path, error))
        return FALSE;
    JsonNode *root = json_parser_get_root(parser);
    if (!root || !JSON_NODE_HOLDS_ARRAY(root)) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: not a list of cases", path);
        return FALSE;
    }
    JsonArray *list = json_node_get_array(root);
    for (guint i = 0; i < json_array_get_length(list); i++) {
        JsonNode *element = json_array_get_element(list, i);
        if (!JSON_NODE_HOLDS_OBJECT(element)) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s: case %u is no object",
                        path, i + 1);
            return FALSE;
        }
        ActivationCase *item = case_of_object(json_node_get_object(element), error);
        if (!item)
            return FALSE;
        g_ptr_array_add(cases, item);
    }
    return TRUE;
}

static gboolean
load_csv(const char *path, GPtrArray *cases, GError **error)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, error))
        return FALSE;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        if (lines[i][0] == '#' || lines[i][0] == '\0' || g_str_has_prefix(lines[i], "variant,"))
            continue;
        g_auto(GStrv) fields = g_strsplit(lines[i], ",", -1);
        if (g_strv_length(fields) != CSV_COLUMNS) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA, "%s:%u: %u fields, not %d",
                        path, i + 1, g_strv_length(fields), CSV_COLUMNS);
            return FALSE;
        }
        ActivationCase *item = case_of_words(fields, error);
        if (!item)
            return FALSE;
        for (int c = 0; c < CASE_COLUMNS; c++)
            item->measured[c] = g_ascii_strtoll(fields[CSV_WORDS + c], NULL, 10);
        item->forward_at = g_strdup(fields[CSV_WORDS + CASE_COLUMNS]);
        item->backward_at = g_strdup(fields[CSV_WORDS + CASE_COLUMNS + 1]);
        g_ptr_array_add(cases, item);
    }
    return TRUE;
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

GPtrArray *
activation_cases_load(const char *folder, GError **error)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, error);
    if (!dir)
        return NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name; (name = g_dir_read_name(dir));)
        g_ptr_array_add(names, g_build_filename(folder, name, NULL));
    g_ptr_array_sort(names, compare_names);
    g_autoptr(GPtrArray) cases =
        g_ptr_array_new_with_free_func((GDestroyNotify)activation_case_free);
    for (guint i = 0; i < names->len; i++) {
        const char *path = names->pdata[i];
        if (g_str_has_suffix(path, ".json") && !load_json(path, cases, error))
            return NULL;
        if (g_str_has_suffix(path, ".csv") && !load_csv(path, cases, error))
            return NULL;
    }
    return g_steal_pointer(&cases);
}

void
activation_case_compute(const ActivationCase *item, gint64 *computed, ZpActivationBytes *bytes)
{
    *bytes = item->is_loss ? zp_activation_measure_loss(&item->loss)
                           : zp_activation_measure_block(&item->block);
    computed[CASE_KEPT] = bytes->kept_bytes;
    computed[CASE_INPUT_KEPT] = bytes->input_kept;
    computed[CASE_FORWARD_PEAK] = bytes->forward_peak_bytes;
    computed[CASE_BACKWARD_ENTRY] = bytes->backward_entry_bytes;
    computed[CASE_BACKWARD_PEAK] = bytes->backward_peak_bytes;
    computed[CASE_INPUT] = bytes->input_bytes;
    computed[CASE_OUTPUT] = bytes->output_bytes;
    computed[CASE_KEPT_COPIES] = bytes->kept_copy_bytes;
    computed[CASE_FORWARD_WITH_COPIES] = bytes->forward_peak_with_copies_bytes;
    computed[CASE_PARAMETER_GRADIENTS] = bytes->parameter_gradient_bytes;
    computed[CASE_BACKWARD_WITH_GRADIENTS] = bytes->backward_peak_with_gradients_bytes;
    computed[CASE_FLASH_WORKSPACE] = bytes->flash_workspace_bytes;
    computed[CASE_BACKWARD_WITH_WORKSPACE] = bytes->backward_peak_with_workspace_bytes;
}
