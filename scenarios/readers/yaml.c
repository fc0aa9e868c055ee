#include "scenarios/readers/readers.h"

#include <string.h>
#include <yaml.h>

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(yaml_parser_t, yaml_parser_delete)

typedef struct {
    ZpTree *stack[ZP_TREE_MAX_DEPTH + 1];
    int depth; /* containers open */
    char *key; /* read, its value awaited */
    int key_line, key_column;
    ZpTree *root;
    int n_values;
    ZpImportMessages *messages;
} Builder;

static void
complain(Builder *builder, const yaml_mark_t *mark, const char *key, const char *mend,
         const char *text)
{
    zp_import_message_add(builder->messages, ZP_IMPORT_ERROR, (int)MIN(mark->line, 1 << 30) + 1,
                          (int)MIN(mark->column, 1 << 30) + 1, key, mend, "%s", text);
}

/* The tree's kind for a plain scalar, after YAML 1.1's resolver in PyYAML. */
static void
resolve_plain(ZpTree *tree)
{
    static const char *const yes[] = {"true", "yes", "on"};
    static const char *const no[] = {"false", "no", "off"};
    const char *text = tree->text;
    for (gsize i = 0; i < G_N_ELEMENTS(yes); i++) {
        tree->boolean = tree->boolean || g_ascii_strcasecmp(text, yes[i]) == 0;
        if (tree->boolean || g_ascii_strcasecmp(text, no[i]) == 0) {
            tree->kind = ZP_TREE_BOOLEAN;
            return;
        }
    }
    if (!*text || strcmp(text, "~") == 0 || g_ascii_strcasecmp(text, "null") == 0) {
        tree->kind = ZP_TREE_NULL;
        return;
    }
    const char *digits = text + (*text == '-' || *text == '+');
    gboolean octal = *digits == '0' && g_ascii_isdigit(digits[1]);
    gboolean text_after_all = strpbrk(text, "eE") && !strchr(text, '.');
    if (octal || text_after_all || !zp_tree_parse_number(tree, text))
        tree->kind = ZP_TREE_STRING;
}

/* Puts a value where it belongs; takes it. */
static gboolean
place(Builder *builder, const yaml_event_t *event, ZpTree *value)
{
    if (builder->depth == 0) {
        builder->root = value;
        return TRUE;
    }
    ZpTree *parent = builder->stack[builder->depth - 1];
    g_assert(parent);
    if (parent->kind == ZP_TREE_ARRAY) {
        zp_tree_add(parent, value);
        return TRUE;
    }
    if (!builder->key) {
        if (value->kind == ZP_TREE_ARRAY || value->kind == ZP_TREE_OBJECT) {
            complain(builder, &event->start_mark, "", NULL, "a key must be a plain word");
            zp_tree_free(value);
            return FALSE;
        }
        builder->key = g_steal_pointer(&value->text);
        builder->key_line = value->line;
        builder->key_column = value->column;
        zp_tree_free(value);
        return TRUE;
    }
    const ZpTree *first = zp_tree_find(parent, builder->key);
    if (first) {
        g_autofree char *text =
            g_strdup_printf("duplicate key: it stands in line %d already", first->key_line);
        complain(builder, &event->start_mark, builder->key, "keep one of the two", text);
    }
    value->key = g_steal_pointer(&builder->key);
    value->key_line = builder->key_line;
    value->key_column = builder->key_column;
    zp_tree_add(parent, value);
    return TRUE;
}

static gboolean
open_container(Builder *builder, const yaml_event_t *event, ZpTreeKind kind)
{
    if (builder->depth >= ZP_TREE_MAX_DEPTH) {
        complain(builder, &event->start_mark, "", NULL, "nested too deeply");
        return FALSE;
    }
    ZpTree *tree =
        zp_tree_new(kind, (int)event->start_mark.line + 1, (int)event->start_mark.column + 1);
    if (!place(builder, event, tree))
        return FALSE;
    builder->stack[builder->depth++] = tree;
    return TRUE;
}

static gboolean
add_scalar(Builder *builder, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    gsize length = event->data.scalar.length;
    if (event->data.scalar.anchor || event->data.scalar.tag || memchr(text, '\0', length)) {
        complain(builder, &event->start_mark, "", "write the value itself",
                 "anchors, tags and NUL characters are not read here");
        return FALSE;
    }
    ZpTree *tree = zp_tree_new(ZP_TREE_STRING, (int)event->start_mark.line + 1,
                               (int)event->start_mark.column + 1);
    tree->text = g_strndup(text, length);
    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        resolve_plain(tree);
    return place(builder, event, tree);
}

/* FALSE: stop reading. */
static gboolean
take_event(Builder *builder, const yaml_event_t *event)
{
    if (++builder->n_values > ZP_TREE_MAX_VALUES) {
        complain(builder, &event->start_mark, "", NULL, "too many values for a settings file");
        return FALSE;
    }
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return add_scalar(builder, event);
    case YAML_MAPPING_START_EVENT:
        return open_container(builder, event, ZP_TREE_OBJECT);
    case YAML_SEQUENCE_START_EVENT:
        return open_container(builder, event, ZP_TREE_ARRAY);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        builder->depth--;
        return TRUE;
    case YAML_ALIAS_EVENT:
        complain(builder, &event->start_mark, "", "write the value itself",
                 "aliases (*name) are not read here");
        return FALSE;
    case YAML_DOCUMENT_START_EVENT:
        if (builder->root) {
            complain(builder, &event->start_mark, "", "keep one document", "a second document");
            return FALSE;
        }
        return TRUE;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return TRUE;
    case YAML_STREAM_END_EVENT:
        return FALSE;
    }
    g_assert_not_reached();
}

ZpTree *
zp_yaml_parse(const char *text, gsize length, ZpImportMessages *messages)
{
    Builder builder = {.messages = messages};
    int line;
    if (length > ZP_TREE_MAX_BYTES) {
        zp_import_message_add(messages, ZP_IMPORT_ERROR, 0, 0, "", NULL,
                              "%" G_GSIZE_FORMAT " bytes: no settings file is that large", length);
        return NULL;
    }
    if (!zp_tree_check_text(text, length, &line)) {
        zp_import_message_add(messages, ZP_IMPORT_ERROR, line, 0, "", "save it as UTF-8",
                              "a byte that is not UTF-8 text");
        return NULL;
    }
    g_auto(yaml_parser_t) parser;
    gboolean ready = yaml_parser_initialize(&parser);
    g_assert(ready);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    for (gboolean more = TRUE; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            complain(&builder, &parser.problem_mark, "",
                     memchr(text, '\t', length) ? "indent with spaces, not tabs" : NULL,
                     parser.problem ? parser.problem : "this is not YAML");
            break;
        }
        more = take_event(&builder, &event);
        yaml_event_delete(&event);
    }
    g_free(builder.key);
    if (!builder.root && zp_import_message_verdict(messages) != ZP_IMPORT_REFUSED)
        zp_import_message_add(messages, ZP_IMPORT_ERROR, 0, 0, "", NULL, "the file is empty");
    return builder.root;
}
