#include "scenarios/imports/huggingface/read_internal.h"

#include "models/families/architecture.h"
#include "scenarios/imports/huggingface/errors.h"
#include "scenarios/imports/huggingface/scan_internal.h"

#include <math.h>
#include <string.h>

typedef struct {
    ZpHfReading *reading;
    GString *wrong;
    GString *missing;
} Reader;

static JsonNode *
member(JsonObject *object, const char *key)
{
    return object ? json_object_get_member(object, key) : NULL;
}

static JsonObject *
member_object(JsonObject *object, const char *key)
{
    JsonNode *node = member(object, key);
    return node && JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
}

/* The node at `a.b`, or at `a` inside the family's object first. */
static JsonNode *
find_node(const ZpHfReading *reading, const char *key)
{
    const char *dot = strchr(key, '.');
    if (dot != NULL) {
        g_autofree char *outer = g_strndup(key, (gsize)(dot - key));
        return member(member_object(reading->root, outer), dot + 1);
    }
    JsonNode *node = NULL;
    if (reading->family->within)
        node = member(member_object(reading->root, reading->family->within), key);
    return node ? node : member(reading->root, key);
}

static void complain(const Reader *reader, const char *key, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

static void
complain(const Reader *reader, const char *key, const char *format, ...)
{
    if (reader->wrong->len > 0)
        g_string_append(reader->wrong, "; ");
    const char *last = strrchr(key, '.');
    int line = zp_hf_scan_line(reader->reading->text, last ? last + 1 : key);
    if (line > 0)
        g_string_append_printf(reader->wrong, "line %d: ", line);
    g_string_append(reader->wrong, key);
    va_list arguments;
    va_start(arguments, format);
    g_string_append_vprintf(reader->wrong, format, arguments);
    va_end(arguments);
}

/* A whole number from 0 to the largest dimension, or a boolean. */
static gboolean
read_number(const Reader *reader, const char *key, JsonNode *node, gint64 *value)
{
    GType type = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_INVALID;
    if (type == G_TYPE_BOOLEAN) {
        *value = json_node_get_boolean(node);
        return TRUE;
    }
    if (type != G_TYPE_INT64 && type != G_TYPE_DOUBLE) {
        complain(reader, key, " must be a whole number or a boolean");
        return FALSE;
    }
    double number = json_node_get_double(node);
    if (!(number >= 0 && number <= (double)ZP_ARCHITECTURE_MAX_DIMENSION) ||
        number != floor(number)) {
        complain(reader, key, " = %g must be a whole number from 0 to %" G_GINT64_FORMAT, number,
                 ZP_ARCHITECTURE_MAX_DIMENSION);
        return FALSE;
    }
    *value = type == G_TYPE_INT64 ? json_node_get_int(node) : (gint64)number;
    return TRUE;
}

/* The first key of the statement that is there and not null; NULL: none. */
static JsonNode *
find_first(const Reader *reader, const ZpFamilyStatement *statement, char **found)
{
    g_auto(GStrv) names = g_strsplit(statement->argument, "|", -1);
    for (gsize i = 0; names[i]; i++) {
        JsonNode *node = find_node(reader->reading, names[i]);
        if (node == NULL)
            continue;
        if (JSON_NODE_HOLDS_NULL(node)) {
            zp_symbols_set_null(reader->reading->symbols, statement->symbol);
            continue;
        }
        *found = g_strdup(names[i]);
        return node;
    }
    return NULL;
}

static void
read_symbol(const Reader *reader, const ZpFamilyStatement *statement)
{
    g_autofree char *key = NULL;
    JsonNode *node = find_first(reader, statement, &key);
    gint64 value;
    if (node != NULL && read_number(reader, key, node, &value))
        zp_symbols_set(reader->reading->symbols, statement->symbol, value);
}

static gboolean
node_matches(JsonNode *node, const char *glob)
{
    if (JSON_NODE_HOLDS_ARRAY(node)) {
        JsonArray *array = json_node_get_array(node);
        for (guint i = 0; i < json_array_get_length(array); i++)
            if (node_matches(json_array_get_element(array, i), glob))
                return TRUE;
        return FALSE;
    }
    return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING &&
           g_pattern_match_simple(glob, json_node_get_string(node));
}

static void
match_symbol(const Reader *reader, const ZpFamilyStatement *statement)
{
    JsonNode *node = find_node(reader->reading, statement->argument);
    if (node && !JSON_NODE_HOLDS_NULL(node))
        zp_symbols_set(reader->reading->symbols, statement->symbol,
                       node_matches(node, statement->text));
}

static void
read_positive(const Reader *reader, const ZpFamilyStatement *statement)
{
    g_autofree char *key = NULL;
    JsonNode *node = find_first(reader, statement, &key);
    if (node == NULL)
        return;
    GType type = JSON_NODE_HOLDS_VALUE(node) ? json_node_get_value_type(node) : G_TYPE_INVALID;
    if (type != G_TYPE_INT64 && type != G_TYPE_DOUBLE) {
        complain(reader, key, " must be a number");
        return;
    }
    double number = json_node_get_double(node);
    if (!(number >= 0))
        complain(reader, key, " = %g must not be negative", number);
    else
        zp_symbols_set(reader->reading->symbols, statement->symbol, number > 0);
}

static void
read_word(const Reader *reader, const ZpFamilyStatement *statement)
{
    g_autofree char *key = NULL;
    JsonNode *node = find_first(reader, statement, &key);
    g_auto(GStrv) choices = g_strsplit(statement->text, " ", -1);
    for (gsize i = 0; node && choices[i]; i++) {
        char *value = strchr(choices[i], '=');
        g_assert(value != NULL);
        *value = '\0';
        if (!node_matches(node, choices[i]))
            continue;
        zp_symbols_set(reader->reading->symbols, statement->symbol,
                       g_ascii_strtoll(value + 1, NULL, 10));
        return;
    }
}

static void
read_list(const Reader *reader, const ZpFamilyStatement *statement)
{
    JsonNode *node = find_node(reader->reading, statement->argument);
    if (node == NULL || JSON_NODE_HOLDS_NULL(node))
        return;
    if (!JSON_NODE_HOLDS_ARRAY(node)) {
        complain(reader, statement->argument, " must be an array of block numbers");
        return;
    }
    JsonArray *array = json_node_get_array(node);
    GArray *blocks = g_array_new(FALSE, FALSE, sizeof(gint64));
    g_hash_table_replace(reader->reading->lists, g_strdup(statement->symbol), blocks);
    g_autofree char *has = g_strconcat("has_", statement->symbol, NULL);
    zp_symbols_set(reader->reading->symbols, has, 1);
    for (guint i = 0; i < json_array_get_length(array); i++) {
        gint64 block;
        if (!read_number(reader, statement->argument, json_array_get_element(array, i), &block))
            return;
        g_array_append_val(blocks, block);
    }
}

static void
count_entries(const Reader *reader, const ZpFamilyStatement *statement)
{
    JsonNode *node = find_node(reader->reading, statement->argument);
    if (node && JSON_NODE_HOLDS_ARRAY(node))
        zp_symbols_set(reader->reading->symbols, statement->symbol,
                       json_array_get_length(json_node_get_array(node)));
    else if (node && JSON_NODE_HOLDS_OBJECT(node))
        zp_symbols_set(reader->reading->symbols, statement->symbol,
                       json_object_get_size(json_node_get_object(node)));
}

/* A needed symbol is a dimension: it must be there and positive. */
static void
check_need(const Reader *reader, const char *symbol)
{
    const ZpFamily *family = reader->reading->family;
    const char *key = symbol;
    g_auto(GStrv) keys = NULL;
    for (guint i = 0; i < family->statements->len; i++) {
        const ZpFamilyStatement *s = g_ptr_array_index(family->statements, i);
        if (s->verb == ZP_FAMILY_READ && strcmp(s->symbol, symbol) == 0) {
            g_strfreev(keys);
            keys = g_strsplit(s->argument, "|", -1);
            key = keys[0];
        }
    }
    if (zp_symbols_is_set(reader->reading->symbols, symbol)) {
        if (zp_symbols_get(reader->reading->symbols, symbol) <= 0)
            complain(reader, key, " = 0 must be positive");
        return;
    }
    for (gsize i = 0; keys && keys[i]; i++) /* wrong values are reported where they are read */
        if (strstr(reader->wrong->str, keys[i]) != NULL)
            return;
    g_string_append_printf(reader->missing, "%s%s", reader->missing->len ? ", " : "", key);
    if (reader->reading->family->within)
        g_string_append_printf(reader->missing, " (in %s)", reader->reading->family->within);
}

static void
read_statement(const Reader *reader, const ZpFamilyStatement *statement)
{
    if (statement->verb == ZP_FAMILY_READ)
        read_symbol(reader, statement);
    else if (statement->verb == ZP_FAMILY_MATCH)
        match_symbol(reader, statement);
    else if (statement->verb == ZP_FAMILY_POSITIVE)
        read_positive(reader, statement);
    else if (statement->verb == ZP_FAMILY_WORD)
        read_word(reader, statement);
    else if (statement->verb == ZP_FAMILY_LIST)
        read_list(reader, statement);
    else if (statement->verb == ZP_FAMILY_COUNT)
        count_entries(reader, statement);
}

gboolean
zp_hf_read(ZpHfReading *reading, GError **error)
{
    g_autoptr(GString) wrong = g_string_new(NULL);
    g_autoptr(GString) missing = g_string_new(NULL);
    Reader reader = {reading, wrong, missing};
    const GPtrArray *statements = reading->family->statements;
    for (guint i = 0; i < statements->len; i++)
        read_statement(&reader, g_ptr_array_index(statements, i));
    for (guint i = 0; i < statements->len; i++) {
        const ZpFamilyStatement *s = g_ptr_array_index(statements, i);
        if (s->verb == ZP_FAMILY_NEED)
            check_need(&reader, s->symbol);
    }
    if (missing->len > 0)
        g_set_error(error, ZP_HF_ERROR, ZP_HF_ERROR_MISSING, "missing: %s%s%s", missing->str,
                    wrong->len ? "; " : "", wrong->str);
    else if (wrong->len > 0)
        g_set_error_literal(error, ZP_HF_ERROR, ZP_HF_ERROR_RANGE, wrong->str);
    return missing->len == 0 && wrong->len == 0;
}
