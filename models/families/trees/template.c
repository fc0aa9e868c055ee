#include "models/families/trees/template.h"

#include "models/words/names.h"

#include <string.h>

enum { MAX_SPLICES = 6, MAX_DEPTH = 32 };

typedef struct {
    const char *text;
    GHashTable *uses;
    ZpExpressions *expressions;
    ZpTemplate *template;
    gint32 open[MAX_DEPTH]; /* the last node of each depth */
    gint32 n_open;
} Parser;

void
zp_template_free(ZpTemplate *template)
{
    if (template == NULL)
        return;
    g_array_unref(template->nodes);
    g_array_unref(template->parameters);
    g_free(template);
}

static G_GNUC_NORETURN void
broken(const char *line, const char *why)
{
    g_error("family trees: %s: %.*s", why, (int)strcspn(line, "\n"), line);
}

static ZpExpression
expression(const Parser *parser, const char *text, const char **end)
{
    ZpExpression result;
    if (!zp_expressions_compile(parser->expressions, text, end, &result))
        broken(text, "not an expression");
    return result;
}

/* Reads `a,b,c` up to `close`; returns how many. */
static gint32
expressions(const Parser *parser, const char *text, char close, ZpExpression *list,
            const char **end)
{
    gint32 n = 0;
    for (;;) {
        if (n == ZP_TEMPLATE_MAX_DIMS)
            broken(text, "too many dimensions");
        list[n++] = expression(parser, text, &text);
        if (*text == close)
            break;
        if (*text != ',')
            broken(text, "',' expected");
        text++;
    }
    *end = text + 1;
    return n;
}

static void
add_parameter(const Parser *parser, ZpTemplateNode *node, const char *name, ZpTemplateUse use,
              const ZpExpression *dims, gint32 n_dims, ZpExpression condition)
{
    ZpTemplateParameter parameter = {
        .name = g_intern_string(name[0] == '~' ? name + 1 : name),
        .use = use,
        .untrained = name[0] == '~',
        .n_dims = n_dims,
        .condition = condition,
    };
    memcpy(parameter.dims, dims, (gsize)n_dims * sizeof *dims);
    g_array_append_val(parser->template->parameters, parameter);
    node->n_parameters++;
}

static void
add_norm(const Parser *parser, ZpTemplateNode *node, char kind, const ZpExpression *list, gint32 n)
{
    const char *end;
    gboolean block_norm = kind == 'N';
    add_parameter(parser, node, "weight", ZP_TEMPLATE_PLAIN, list, n,
                  expression(parser, block_norm ? "nw" : "qnw", &end));
    add_parameter(parser, node, "bias", ZP_TEMPLATE_PLAIN, list, n,
                  expression(parser, block_norm ? "nb" : "qnb", &end));
    if (block_norm)
        node->norm = list[0];
    else
        node->latent = list[0];
}

/* L(...) X(...) T(...) N(...) Q(...) A(...) F(...) R(...) */
static void
parse_shorthand(const Parser *parser, ZpTemplateNode *node, const char *item)
{
    ZpExpression list[ZP_TEMPLATE_MAX_DIMS], always = {0};
    const char *end;
    gint32 n = expressions(parser, item + 2, ')', list, &end);
    gboolean linear = item[0] == 'L' || item[0] == 'X';
    if (linear && n == 3) {
        add_parameter(parser, node, "weight", ZP_TEMPLATE_MATRIX, list, 2, always);
        add_parameter(parser, node, "bias", ZP_TEMPLATE_PLAIN, &list[item[0] == 'L' ? 0 : 1], 1,
                      list[2]);
    } else if (item[0] == 'T' && n == 2) {
        add_parameter(parser, node, "weight", ZP_TEMPLATE_TABLE, list, 2, always);
    } else if (item[0] == 'A' && n == 4) {
        memcpy(node->core, list, sizeof node->core);
    } else if (item[0] == 'F' && n <= 2) {
        memcpy(node->inner, list, (gsize)n * sizeof *list);
    } else if (item[0] == 'R' && n == 1) {
        node->stream = list[0];
    } else if (item[0] == 'N' || item[0] == 'Q') {
        add_norm(parser, node, item[0], list, n);
    } else {
        broken(item, "wrong number of dimensions");
    }
}

/* name[dims]?c, name{dims}?c, name<dims>?c */
static void
parse_parameter(const Parser *parser, ZpTemplateNode *node, const char *item, gsize name_length)
{
    static const char opens[] = "[{<", closes[] = "]}>";
    gsize which = (gsize)(strchr(opens, item[name_length]) - opens);
    g_autofree char *name = g_strndup(item, name_length);
    ZpExpression list[ZP_TEMPLATE_MAX_DIMS], condition = {0};
    const char *end;
    gint32 n;
    if (closes[which] == '>') { /* '>' is an operator too: cut the item there */
        g_autofree char *inner =
            g_strndup(item + name_length + 1, strcspn(item + name_length + 1, ">"));
        g_autofree char *closed = g_strconcat(inner, "]", NULL);
        n = expressions(parser, closed, ']', list, &end);
        end = item + name_length + strlen(inner) + 2;
    } else {
        n = expressions(parser, item + name_length + 1, closes[which], list, &end);
    }
    if (*end == '?')
        condition = expression(parser, end + 1, &end);
    add_parameter(parser, node, name, (ZpTemplateUse)which, list, n, condition);
}

static void
parse_layer(ZpTemplateNode *node, const char *item)
{
    static const struct {
        const char *name;
        ZpLayerKind kind;
    } kinds[] = {
        {"embedding", ZP_LAYER_EMBEDDING},
        {"attention", ZP_LAYER_ATTENTION},
        {"mlp", ZP_LAYER_MLP},
        {"norm", ZP_LAYER_NORM},
        {"head", ZP_LAYER_HEAD},
        {"other", ZP_LAYER_OTHER},
    };
    g_auto(GStrv) parts = g_strsplit(item, ".", 2);
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(parts[0], kinds[i].name) == 0) {
            node->layer_kind = kinds[i].kind;
            node->layer_name = g_intern_string(parts[1] ? parts[1] : parts[0]);
            return;
        }
    }
    broken(item, "unknown layer kind");
}

static void
parse_item(const Parser *parser, ZpTemplateNode *node, const char *item)
{
    const char *end;
    gsize name_length = strcspn(item, "[{<");
    if (item[0] != '\0' && item[1] == '(' && strchr("LXTNQAFR", item[0]))
        parse_shorthand(parser, node, item);
    else if (item[0] == '@')
        parse_layer(node, item + 1);
    else if (item[0] == '>')
        node->call_order = (gint32)g_ascii_strtoll(item + 1, NULL, 10);
    else if (item[0] == '?')
        node->condition = expression(parser, item + 1, &end);
    else if (item[0] == '*')
        node->repeat = expression(parser, item + 1, &end);
    else if (strcmp(item, "!block") == 0)
        node->block = TRUE;
    else if (strcmp(item, "!expert") == 0)
        node->expert = TRUE;
    else if (g_str_has_prefix(item, "tie:")) {
        gsize length = strcspn(item + 4, "?");
        g_autofree char *path = g_strndup(item + 4, length);
        node->tie = zp_names_intern(path);
        node->tie_condition =
            expression(parser, item[4 + length] ? item + 5 + length : "tied", &end);
    } else if (item[name_length] != '\0')
        parse_parameter(parser, node, item, name_length);
    else
        broken(item, "unknown item");
}

/* Replaces each {KEY} by what the family uses for it. */
static char *
substitute(const Parser *parser, const char *spelling)
{
    GString *result = g_string_new(NULL);
    const char *open;
    while ((open = strchr(spelling, '{')) != NULL) {
        gsize length = strcspn(open, "}");
        g_autofree char *key = g_strndup(open + 1, length - 1);
        const char *value = g_hash_table_lookup(parser->uses, key);
        if (value == NULL || open[length] == '\0')
            broken(spelling, "no such use");
        g_string_append_len(result, spelling, open - spelling);
        g_string_append(result, value);
        spelling = open + length + 1;
    }
    g_string_append(result, spelling);
    return g_string_free(result, FALSE);
}

static void
close_nodes(Parser *parser, gint32 depth)
{
    gint32 end = (gint32)parser->template->nodes->len;
    while (parser->n_open > depth)
        g_array_index(parser->template->nodes, ZpTemplateNode, parser->open[--parser->n_open]).end =
            end;
}

static void
parse_line(Parser *parser, const char *line, gint32 depth)
{
    g_autofree char *copy = g_strndup(line, strcspn(line, "\n"));
    g_auto(GStrv) words = g_strsplit(g_strstrip(copy), " ", -1);
    if (depth > parser->n_open || depth >= MAX_DEPTH || words[0] == NULL || words[1] == NULL)
        broken(line, "indentation or class missing");
    close_nodes(parser, depth);
    g_autofree char *class = substitute(parser, words[1]);
    ZpTemplateNode node = {
        .name = g_intern_string(words[0]),
        .class_name = g_intern_string(class),
        .first_parameter = (gint32)parser->template->parameters->len,
    };
    for (gsize i = 2; words[i]; i++)
        if (words[i][0] != '\0')
            parse_item(parser, &node, words[i]);
    parser->open[parser->n_open++] = (gint32)parser->template->nodes->len;
    g_array_append_val(parser->template->nodes, node);
}

static void
parse_section(Parser *parser, const char *name, gint32 base_depth, int splices)
{
    g_autofree char *title = g_strdup_printf("\ntree %s\n", name);
    const char *line = strstr(parser->text, title);
    if (line == NULL || splices > MAX_SPLICES)
        broken(name, "no such tree");
    line += strlen(title);
    for (; *line != '\0' && !g_str_has_prefix(line, "tree ");
         line += strcspn(line, "\n"), line += *line != '\0') {
        gsize indent = strspn(line, " ");
        if (line[indent] == '\n' || line[indent] == '\0' || (indent == 0 && line[0] == '#'))
            continue;
        gint32 depth = base_depth + (gint32)indent / 2;
        if (g_str_has_prefix(line + indent, "+ ")) {
            const char *other = line + indent + 2;
            g_autofree char *spelling = g_strndup(other, strcspn(other, " \n"));
            g_autofree char *other_name = substitute(parser, spelling);
            parse_section(parser, other_name, depth, splices + 1);
        } else {
            parse_line(parser, line + indent, depth);
        }
    }
}

ZpTemplate *
zp_template_parse(const char *text, const char *name, GHashTable *uses, ZpExpressions *compiled)
{
    ZpTemplate *template = g_new0(ZpTemplate, 1);
    template->nodes = g_array_new(FALSE, TRUE, sizeof(ZpTemplateNode));
    template->parameters = g_array_new(FALSE, TRUE, sizeof(ZpTemplateParameter));
    Parser parser = {.text = text, .uses = uses, .expressions = compiled, .template = template};
    parse_section(&parser, name, 0, 0);
    close_nodes(&parser, 0);
    return template;
}
