/* Which fields of the recorded cases are compared: see check.h. */
#include <gio/gio.h>
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

/* Cases in which a field is altered before it counts as not compared. */
#define MAX_TRIALS 8

typedef enum { FIELD_INPUT, FIELD_COMPARED, FIELD_IGNORED } FieldState;

typedef struct {
    GPatternSpec *pattern;
    char *text;
    FieldState state;
    gboolean used;
} FieldRule;

typedef struct {
    GPtrArray *texts; /* of cases */
    GHashTable *seen; /* path -> GArray of gint: indices of cases */
    GPtrArray *rules;
    int failures;
} Fields;

static void
rule_free(gpointer data)
{
    FieldRule *rule = data;
    g_pattern_spec_free(rule->pattern);
    g_free(rule->text);
    g_free(rule);
}

static void
fail(Fields *fields, const char *path, const char *why)
{
    printf("FAIL %s: %s\n", path, why);
    fields->failures++;
}

static void
read_rules(Fields *fields, const char *list)
{
    static const char *const states[] = {"input", "compared", "ignored", NULL};
    g_autofree char *text = NULL;
    if (!g_file_get_contents(list, &text, NULL, NULL)) {
        fail(fields, list, "no such list");
        return;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if (**line == '#' || **line == '\0')
            continue;
        g_auto(GStrv) parts = g_strsplit(*line, ";", 3);
        int state = 0;
        while (g_strv_length(parts) >= 2 && states[state] != NULL &&
               strcmp(states[state], parts[1]) != 0)
            state++;
        if (g_strv_length(parts) < 2 || states[state] == NULL ||
            (state == FIELD_IGNORED && g_strv_length(parts) < 3)) {
            fail(fields, *line, "is not PATTERN;STATE;REASON");
            continue;
        }
        FieldRule *rule = g_new0(FieldRule, 1);
        rule->used = *parts[0] == '?';
        rule->pattern = g_pattern_spec_new(parts[0] + (rule->used ? 1 : 0));
        rule->text = g_strdup(parts[0]);
        rule->state = (FieldState)state;
        g_ptr_array_add(fields->rules, rule);
    }
}

typedef struct {
    Fields *fields;
    int index;         /* of the case */
    const char *alter; /* the path to alter once, or NULL */
    int skip;          /* places of the path that come before the one to alter */
    int n_places;      /* of the path, so far */
    gboolean altered;
} Walk;

/* A value that differs and has the same type. */
static JsonNode *
other_value(JsonNode *leaf)
{
    JsonNode *node = json_node_new(JSON_NODE_VALUE);
    if (!JSON_NODE_HOLDS_VALUE(leaf))
        json_node_set_int(node, 7);
    else if (json_node_get_value_type(leaf) == G_TYPE_BOOLEAN)
        json_node_set_boolean(node, !json_node_get_boolean(leaf));
    else if (json_node_get_value_type(leaf) == G_TYPE_DOUBLE)
        json_node_set_double(node, json_node_get_double(leaf) * 1.5 + 1.0);
    else if (json_node_get_value_type(leaf) == G_TYPE_INT64)
        json_node_set_int(node, json_node_get_int(leaf) + 1);
    else {
        g_autofree char *text = g_strconcat(json_node_get_string(leaf), "~", NULL);
        json_node_set_string(node, text);
    }
    return node;
}

/* The node that takes the leaf's place, or NULL. */
static JsonNode *
visit_leaf(Walk *walk, const char *path, JsonNode *leaf)
{
    if (walk->alter == NULL) {
        GArray *cases = g_hash_table_lookup(walk->fields->seen, path);
        if (cases == NULL) {
            cases = g_array_new(FALSE, FALSE, sizeof(int));
            g_hash_table_insert(walk->fields->seen, g_strdup(path), cases);
        }
        if (cases->len == 0 || g_array_index(cases, int, cases->len - 1) != walk->index)
            g_array_append_val(cases, walk->index);
        return NULL;
    }
    if (walk->altered || strcmp(path, walk->alter) != 0 || walk->n_places++ < walk->skip)
        return NULL;
    walk->altered = TRUE;
    return other_value(leaf);
}

static JsonNode *visit(Walk *walk, const char *path, JsonNode *node);

static void
visit_object(Walk *walk, const char *path, JsonObject *object)
{
    g_autoptr(GList) keys = json_object_get_members(object);
    for (GList *key = keys; key != NULL; key = key->next) {
        g_autofree char *name = g_strconcat(path, ".", key->data, NULL);
        JsonNode *fresh = visit(walk, name, json_object_get_member(object, key->data));
        if (fresh != NULL) {
            json_object_set_member(object, key->data, fresh);
            return;
        }
    }
}

static void
visit_array(Walk *walk, const char *path, JsonArray *array)
{
    g_autofree char *name = g_strconcat(path, "[]", NULL);
    for (guint i = 0; i < json_array_get_length(array) && !walk->altered; i++) {
        JsonNode *fresh = visit(walk, name, json_array_get_element(array, i));
        if (fresh == NULL)
            continue;
        g_autoptr(JsonArray) rest = json_array_new();
        for (guint k = i + 1; k < json_array_get_length(array); k++)
            json_array_add_element(rest, json_array_dup_element(array, k));
        while (json_array_get_length(array) > i)
            json_array_remove_element(array, i);
        json_array_add_element(array, fresh);
        for (guint k = 0; k < json_array_get_length(rest); k++)
            json_array_add_element(array, json_array_dup_element(rest, k));
    }
}

static JsonNode *
visit(Walk *walk, const char *path, JsonNode *node)
{
    if (JSON_NODE_HOLDS_OBJECT(node))
        visit_object(walk, path, json_node_get_object(node));
    else if (JSON_NODE_HOLDS_ARRAY(node))
        visit_array(walk, path, json_node_get_array(node));
    else
        return visit_leaf(walk, path, node);
    return NULL;
}

static const char *
kind_of(JsonNode *root)
{
    JsonObject *object = json_node_get_object(root);
    return json_object_get_string_member_with_default(object, "kind", "case");
}

/* FALSE where the case still passes with the field altered behind `skip` others of its path, or
 * has no such field; `n_places` counts those of the path up to it. */
static gboolean
is_noticed_at(Fields *fields, int index, const char *path, int skip, int *n_places,
              gboolean (*passes)(const char *text))
{
    g_autoptr(JsonNode) root =
        json_from_string(g_ptr_array_index(fields->texts, (guint)index), NULL);
    g_autofree char *kind = g_strdup(kind_of(root));
    Walk walk = {.fields = fields, .index = index, .alter = path, .skip = skip};
    visit(&walk, kind, root);
    *n_places = walk.n_places;
    g_autofree char *text = json_to_string(root, FALSE);
    return walk.altered && !passes(text);
}

/* The first place of the field, that in the middle, or the last. */
static gboolean
is_noticed(Fields *fields, int index, const char *path, gboolean (*passes)(const char *text))
{
    int n = 0, ignored = 0;
    (void)is_noticed_at(fields, index, path, G_MAXINT, &n, passes);
    return is_noticed_at(fields, index, path, 0, &ignored, passes) ||
           is_noticed_at(fields, index, path, n / 2, &ignored, passes) ||
           is_noticed_at(fields, index, path, n - 1, &ignored, passes);
}

static FieldRule *
rule_of(const Fields *fields, const char *path)
{
    for (guint r = 0; r < fields->rules->len; r++) {
        FieldRule *rule = g_ptr_array_index(fields->rules, r);
        if (g_pattern_spec_match_string(rule->pattern, path))
            return rule;
    }
    return NULL;
}

static void
check_field(Fields *fields, const char *path, const GArray *cases,
            gboolean (*passes)(const char *text))
{
    FieldRule *rule = rule_of(fields, path);
    if (rule == NULL) {
        fail(fields, path, "is neither compared nor listed as not compared");
        return;
    }
    rule->used = TRUE;
    if (rule->state != FIELD_COMPARED)
        return;
    for (guint i = 0; i < cases->len && i < MAX_TRIALS; i++) {
        guint at = i * cases->len / MIN(cases->len, MAX_TRIALS);
        if (is_noticed(fields, g_array_index(cases, int, at), path, passes))
            return;
    }
    fail(fields, path, "is said to be compared, but nobody notices when it is altered");
}

static char *
read_case(const char *path)
{
    g_autoptr(GFile) file = g_file_new_for_path(path);
    g_autoptr(GInputStream) raw = G_INPUT_STREAM(g_file_read(file, NULL, NULL));
    g_autoptr(GZlibDecompressor) gzip = g_zlib_decompressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP);
    g_autoptr(JsonParser) parser = json_parser_new();
    if (raw == NULL)
        return NULL;
    g_autoptr(GInputStream) plain = g_str_has_suffix(path, ".gz")
                                        ? g_converter_input_stream_new(raw, G_CONVERTER(gzip))
                                        : g_object_ref(raw);
    if (!json_parser_load_from_stream(parser, plain, NULL, NULL))
        return NULL;
    return json_to_string(json_parser_get_root(parser), FALSE);
}

static void
add_case(Fields *fields, const char *path)
{
    char *text = read_case(path);
    if (text == NULL) {
        fail(fields, path, "cannot be read");
        return;
    }
    g_autoptr(JsonNode) root = json_from_string(text, NULL);
    Walk walk = {.fields = fields, .index = (int)fields->texts->len};
    g_ptr_array_add(fields->texts, text);
    visit(&walk, kind_of(root), root);
}

static int
by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void
add_folder(Fields *fields, const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (const char *name = dir ? g_dir_read_name(dir) : NULL; name; name = g_dir_read_name(dir))
        if (g_str_has_suffix(name, ".json") || g_str_has_suffix(name, ".json.gz"))
            g_ptr_array_add(names, g_build_filename(folder, name, NULL));
    g_ptr_array_sort(names, by_text);
    for (guint i = 0; i < names->len; i++)
        add_case(fields, g_ptr_array_index(names, i));
}

int
check_fields(const char *list, gboolean (*passes)(const char *text), char **paths, int n_paths)
{
    Fields fields = {
        .texts = g_ptr_array_new_with_free_func(g_free),
        .seen =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_array_unref),
        .rules = g_ptr_array_new_with_free_func(rule_free),
    };
    read_rules(&fields, list);
    for (int i = 0; i < n_paths; i++)
        add_folder(&fields, paths[i]);
    guint n = 0;
    g_autofree gpointer *names = g_hash_table_get_keys_as_array(fields.seen, &n);
    qsort(names, n, sizeof(gpointer), by_text);
    for (guint i = 0; i < n; i++)
        check_field(&fields, names[i], g_hash_table_lookup(fields.seen, names[i]), passes);
    for (guint r = 0; r < fields.rules->len; r++) {
        const FieldRule *rule = g_ptr_array_index(fields.rules, r);
        if (!rule->used)
            fail(&fields, rule->text, "no case has such a field");
    }
    printf("%u fields of %u cases, %d failed\n", n, fields.texts->len, fields.failures);
    int failures = fields.failures + (fields.texts->len == 0);
    g_ptr_array_unref(fields.texts);
    g_hash_table_unref(fields.seen);
    g_ptr_array_unref(fields.rules);
    return failures;
}
