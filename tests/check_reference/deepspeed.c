#include <gio/gio.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "deepspeed_case.h"

void
ds_diverge(DsCheck *check, const char *format, ...)
{
    if (check->divergence->len > 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    g_string_append_vprintf(check->divergence, format, arguments);
    va_end(arguments);
}

gboolean
ds_failed(const DsCheck *check)
{
    return check->divergence->len > 0;
}

void
ds_expect_int(DsCheck *check, const char *what, gint64 ours, gint64 theirs)
{
    check->n_compared++;
    if (ours != theirs)
        ds_diverge(check, "%s: ours %" G_GINT64_FORMAT ", theirs %" G_GINT64_FORMAT, what, ours,
                   theirs);
}

void
ds_expect_list(DsCheck *check, const char *what, GPtrArray *ours, JsonArray *theirs)
{
    guint n = theirs != NULL ? json_array_get_length(theirs) : 0;
    for (guint i = 0; i < MAX(n, ours->len); i++) {
        const char *mine = i < ours->len ? ours->pdata[i] : "(nothing)";
        const char *other = i < n ? json_array_get_string_element(theirs, i) : "(nothing)";
        if (other == NULL)
            other = "(not a string)";
        check->n_compared++;
        if (strcmp(mine, other) != 0) {
            const char *before = i > 0 ? (const char *)ours->pdata[i - 1] : "";
            ds_diverge(check, "%s, entry %u after '%s': ours '%s', theirs '%s'", what, i, before,
                       mine, other);
            return;
        }
    }
}

gint64
ds_int(JsonObject *object, const char *key, gint64 fallback)
{
    return object != NULL && json_object_has_member(object, key)
               ? json_object_get_int_member(object, key)
               : fallback;
}

gboolean
ds_flag(JsonObject *object, const char *key)
{
    return object != NULL && json_object_has_member(object, key) &&
           json_object_get_boolean_member(object, key);
}

const char *
ds_text(JsonObject *object, const char *key, const char *fallback)
{
    JsonNode *node = object != NULL ? json_object_get_member(object, key) : NULL;
    return node != NULL && JSON_NODE_HOLDS_VALUE(node) ? json_node_get_string(node) : fallback;
}

JsonObject *
ds_object(JsonObject *object, const char *key)
{
    JsonNode *node = object != NULL ? json_object_get_member(object, key) : NULL;
    return node != NULL && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

JsonArray *
ds_array(JsonObject *object, const char *key)
{
    JsonNode *node = object != NULL ? json_object_get_member(object, key) : NULL;
    return node != NULL && JSON_NODE_HOLDS_ARRAY(node) ? json_node_get_array(node) : NULL;
}

void
ds_fill_job(ZpJob *job, gint32 ranks, int stage)
{
    *job = (ZpJob){
        .runtime = "deepspeed",
        .precision = {.parameter = ZP_DTYPE_BF16,
                      .gradient = ZP_DTYPE_BF16,
                      .gathered = ZP_DTYPE_BF16,
                      .reduce = ZP_DTYPE_BF16,
                      .master = ZP_DTYPE_FP32,
                      .moments = ZP_DTYPE_FP32},
        .training = {.micro_batch = 1, .sequence = 1, .accumulation = 1},
        .world = {.ranks = ranks, .shard_group = ranks},
        .zero = {.stage = stage},
        .network = {.link_bytes_per_s = 1e11,
                    .link_efficiency = 1.0,
                    .gpus_per_node = ranks,
                    .network_bytes_per_s = 1e10,
                    .network_efficiency = 1.0,
                    .host_to_device_bytes_per_s = 1e10,
                    .device_to_host_bytes_per_s = 1e10},
        .device = {.flops_per_s = 1e14,
                   .flops_efficiency = 1.0,
                   .memory_bytes_per_s = 1e12,
                   .memory_efficiency = 1.0},
        .simulation = {.simulated_ranks = 1, .steps = 1, .slow_rank = ZP_MODEL_NONE},
    };
}

/* Plain JSON, or compressed with gzip. */
static gboolean
load(JsonParser *parser, const char *path, GError **error)
{
    if (!g_str_has_suffix(path, ".gz"))
        return json_parser_load_from_file(parser, path, error);
    g_autoptr(GFile) file = g_file_new_for_path(path);
    g_autoptr(GFileInputStream) compressed = g_file_read(file, NULL, error);
    if (compressed == NULL)
        return FALSE;
    g_autoptr(GZlibDecompressor) gzip = g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP);
    g_autoptr(GInputStream) plain =
        g_converter_input_stream_new(G_INPUT_STREAM(compressed), G_CONVERTER(gzip));
    return json_parser_load_from_stream(parser, plain, NULL, error);
}

static void
check_root(DsCheck *check, JsonObject *root)
{
    const char *kind = ds_text(root, "kind", "");
    if (strcmp(kind, "coordinator") == 0)
        ds_check_coordinator(check, root);
    else if (g_str_has_prefix(kind, "arithmetic_"))
        ds_check_arithmetic(check, kind + strlen("arithmetic_"), root);
    else if (strcmp(kind, "engine_run") == 0)
        ds_check_run(check, root);
    else
        ds_diverge(check, "unknown kind '%s' (coordinator, arithmetic_*, engine_run)", kind);
    if (!ds_failed(check) && check->n_compared == 0 && !check->skipped)
        ds_diverge(check, "nothing to compare in this case");
}

gboolean
ds_passes(const char *text)
{
    g_autoptr(JsonNode) node = json_from_string(text, NULL);
    if (node == NULL || !JSON_NODE_HOLDS_OBJECT(node))
        return FALSE;
    DsCheck check = {.divergence = g_string_new(NULL)};
    check_root(&check, json_node_get_object(node));
    gboolean passed = !ds_failed(&check);
    g_string_free(check.divergence, TRUE);
    return passed;
}

static gboolean
check_file(const char *path)
{
    g_autoptr(JsonParser) parser = json_parser_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *base = g_path_get_basename(path);
    if (!load(parser, path, &error)) {
        printf("FAIL %s: %s\n", base, error->message);
        return FALSE;
    }
    JsonNode *node = json_parser_get_root(parser);
    if (node == NULL || !JSON_NODE_HOLDS_OBJECT(node)) {
        printf("FAIL %s: not a JSON object\n", base);
        return FALSE;
    }
    JsonObject *root = json_node_get_object(node);
    DsCheck check = {.divergence = g_string_new(NULL)};
    check_root(&check, root);
    gboolean passed = !ds_failed(&check);
    if (check.skipped)
        printf("skip %s: recorded as an artifact of the recording machine\n",
               ds_text(root, "id", base));
    else if (passed)
        printf("pass %s (%" G_GINT64_FORMAT " comparisons)\n", ds_text(root, "id", base),
               check.n_compared);
    else
        printf("FAIL %s: %s\n", ds_text(root, "id", base), check.divergence->str);
    g_string_free(check.divergence, TRUE);
    return passed;
}

static int
compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* *.json and *.json.gz of a directory in the order of their names, or the file itself. */
static void
collect(const char *path, GPtrArray *files)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    if (dir == NULL) {
        g_ptr_array_add(files, g_strdup(path));
        return;
    }
    guint first = files->len;
    for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir))
        if (g_str_has_suffix(name, ".json") || g_str_has_suffix(name, ".json.gz"))
            g_ptr_array_add(files, g_build_filename(path, name, NULL));
    if (files->len > first)
        qsort(files->pdata + first, files->len - first, sizeof(gpointer), compare_names);
}

int
check_deepspeed(char **paths, int n_paths)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    for (int i = 0; i < n_paths; i++)
        collect(paths[i], files);
    int failures = 0;
    for (guint i = 0; i < files->len; i++)
        failures += !check_file(files->pdata[i]);
    printf("deepspeed: %u cases, %d failed\n", files->len, failures);
    return files->len == 0 ? 1 : failures;
}
