#include "models/families/trees/families.h"

#include "models/families/trees/error.h"
#include "models/words/resources.h"

#include <string.h>

const char *
zp_families_trees(void)
{
    return zp_resources_text("catalog/trees.txt");
}

static void
statement_free(gpointer data)
{
    ZpFamilyStatement *statement = data;
    g_free(statement->symbol);
    g_free(statement->argument);
    g_free(statement->text);
    g_free(statement);
}

void
zp_family_free(ZpFamily *family)
{
    if (family == NULL)
        return;
    g_free(family->name);
    g_free(family->title);
    g_free(family->tree);
    g_free(family->within);
    g_hash_table_unref(family->uses);
    g_strfreev(family->types);
    g_ptr_array_unref(family->statements);
    g_free(family);
}

static G_GNUC_NORETURN void
broken(const char *line)
{
    g_error("family table: cannot read '%s'", line);
}

static const struct {
    const char *name;
    ZpFamilyVerb verb;
    int n_words; /* before the text, the verb not counted; 0: all words are symbols */
    gboolean has_symbol;
} verbs[] = {
    {"read", ZP_FAMILY_READ, 2, TRUE},         {"match", ZP_FAMILY_MATCH, 2, TRUE},
    {"positive", ZP_FAMILY_POSITIVE, 2, TRUE}, {"word", ZP_FAMILY_WORD, 2, TRUE},
    {"list", ZP_FAMILY_LIST, 2, TRUE},         {"count", ZP_FAMILY_COUNT, 2, TRUE},
    {"need", ZP_FAMILY_NEED, 0, TRUE},         {"drop", ZP_FAMILY_DROP, 0, TRUE},
    {"missing", ZP_FAMILY_MISSING, 2, TRUE},   {"default", ZP_FAMILY_DEFAULT, 2, TRUE},
    {"fix", ZP_FAMILY_FIX, 2, TRUE},           {"each", ZP_FAMILY_EACH, 2, TRUE},
    {"demand", ZP_FAMILY_DEMAND, 1, FALSE},    {"refuse", ZP_FAMILY_REFUSE, 1, FALSE},
    {"note", ZP_FAMILY_NOTE, 1, FALSE},        {"choose", ZP_FAMILY_CHOOSE, 1, FALSE},
};

static void
add_statement(ZpFamily *family, ZpFamilyVerb verb, const char *symbol, const char *argument,
              const char *text)
{
    ZpFamilyStatement *statement = g_new0(ZpFamilyStatement, 1);
    statement->verb = verb;
    statement->symbol = g_strdup(symbol);
    statement->argument = g_strdup(argument);
    statement->text = g_strdup(text);
    g_ptr_array_add(family->statements, statement);
}

static void
parse_statement(ZpFamily *family, const char *line, char **words, guint n)
{
    for (gsize v = 0; v < G_N_ELEMENTS(verbs); v++) {
        if (strcmp(words[0], verbs[v].name) != 0)
            continue;
        if (verbs[v].n_words == 0) {
            for (guint i = 1; i < n; i++)
                add_statement(family, verbs[v].verb, words[i], "", "");
            return;
        }
        guint fixed = (guint)verbs[v].n_words;
        if (n < fixed + 1)
            broken(line);
        g_autofree char *text = g_strjoinv(" ", words + fixed + 1);
        add_statement(family, verbs[v].verb, verbs[v].has_symbol ? words[1] : "", words[fixed],
                      text);
        return;
    }
    broken(line);
}

static void
set_string(char **field, const char *value)
{
    g_free(*field);
    *field = g_strdup(value);
}

static const char *
find_section(const char *name)
{
    g_autofree char *title = g_strdup_printf("\nfamily %s\n", name);
    const char *found = strstr(zp_resources_text("catalog/families.txt"), title);
    return found ? found + strlen(title) : NULL;
}

static void
parse_line(ZpFamily *family, const char *line, char **parent)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    guint n = g_strv_length(words);
    if (n < 2)
        broken(line);
    g_autofree char *rest = g_strjoinv(" ", words + 1);
    if (strcmp(words[0], "types") == 0) {
        g_strfreev(family->types);
        family->types = g_strdupv(words + 1);
    } else if (strcmp(words[0], "title") == 0) {
        set_string(&family->title, rest);
    } else if (strcmp(words[0], "within") == 0) {
        set_string(&family->within, rest);
    } else if (strcmp(words[0], "use") == 0 && n <= 3) {
        g_hash_table_replace(family->uses, g_strdup(words[1]), g_strdup(n == 3 ? words[2] : ""));
    } else if (strcmp(words[0], "tree") == 0) {
        set_string(&family->tree, rest);
    } else if (strcmp(words[0], "like") == 0) {
        set_string(parent, rest);
    } else {
        parse_statement(family, line, words, n);
    }
}

static void
parse_section(ZpFamily *family, const char *section, char **parent)
{
    while (*section != '\0' && !g_str_has_prefix(section, "family ")) {
        gsize length = strcspn(section, "\n");
        g_autofree char *line = g_strndup(section, length);
        if (g_strstrip(line)[0] != '\0' && line[0] != '#')
            parse_line(family, line, parent);
        section += length;
        section += *section == '\n';
    }
}

static gboolean
says(const ZpFamily *family, ZpFamilyVerb verb, const char *symbol)
{
    for (guint i = 0; i < family->statements->len; i++) {
        const ZpFamilyStatement *own = g_ptr_array_index(family->statements, i);
        if (own->verb == verb && strcmp(own->symbol, symbol) == 0)
            return TRUE;
    }
    return FALSE;
}

/* Appends what `parent` says and `family` does not; defaults need no test, the first one wins. */
static void
inherit(ZpFamily *family, const ZpFamily *parent)
{
    GHashTableIter iter;
    gpointer key, value;
    g_hash_table_iter_init(&iter, parent->uses);
    while (g_hash_table_iter_next(&iter, &key, &value))
        if (!g_hash_table_contains(family->uses, key))
            g_hash_table_insert(family->uses, g_strdup(key), g_strdup(value));
    if (family->tree == NULL)
        family->tree = g_strdup(parent->tree);
    if (family->within == NULL)
        family->within = g_strdup(parent->within);
    for (guint i = 0; i < parent->statements->len; i++) {
        const ZpFamilyStatement *s = g_ptr_array_index(parent->statements, i);
        gboolean unique = s->verb != ZP_FAMILY_DEFAULT && s->symbol[0] != '\0';
        if (unique && (says(family, s->verb, s->symbol) ||
                       (s->verb == ZP_FAMILY_NEED && says(family, ZP_FAMILY_DROP, s->symbol))))
            continue;
        add_statement(family, s->verb, s->symbol, s->argument, s->text);
    }
}

static ZpFamily *
load_section(const char *name, const char *section)
{
    ZpFamily *family = g_new0(ZpFamily, 1);
    family->name = g_strdup(name);
    family->uses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    family->statements = g_ptr_array_new_with_free_func(statement_free);
    g_autofree char *parent_name = NULL;
    parse_section(family, section, &parent_name);
    if (parent_name) {
        ZpFamily *parent = zp_family_load(parent_name);
        if (parent == NULL)
            broken(parent_name);
        inherit(family, parent);
        zp_family_free(parent);
    }
    if (family->title == NULL)
        family->title = g_strdup(name);
    if (family->types == NULL)
        family->types = g_new0(char *, 1);
    return family;
}

ZpFamily *
zp_family_load(const char *name)
{
    const char *section = find_section(name);
    return section ? load_section(name, section) : NULL;
}

/* Calls back with the name and body of each section until one returns non-NULL. */
static ZpFamily *
each_section(ZpFamily *(*visit)(const char *name, const char *body, gpointer data), gpointer data)
{
    const char *at = zp_resources_text("catalog/families.txt");
    while ((at = strstr(at, "\nfamily ")) != NULL) {
        at += strlen("\nfamily ");
        gsize length = strcspn(at, "\n");
        g_autofree char *name = g_strndup(at, length);
        ZpFamily *found = visit(name, at + length + 1, data);
        if (found)
            return found;
    }
    return NULL;
}

/* Only the `types` line is looked at before a section is parsed. */
static ZpFamily *
visit_type(const char *name, const char *body, gpointer data)
{
    const char *wanted = data;
    for (; *body != '\0' && !g_str_has_prefix(body, "family ");
         body += strcspn(body, "\n"), body += *body != '\0') {
        if (!g_str_has_prefix(body, "types "))
            continue;
        g_autofree char *line = g_strndup(body + 6, strcspn(body + 6, "\n"));
        g_auto(GStrv) types = g_strsplit(line, " ", -1);
        if (g_strv_contains((const char *const *)types, wanted))
            return zp_family_load(name);
    }
    return NULL;
}

ZpFamily *
zp_family_load_type(const char *model_type)
{
    return each_section(visit_type, (gpointer)model_type);
}

static ZpFamily *
visit_all(const char *name, const char *body, gpointer data)
{
    g_ptr_array_add(data, load_section(name, body));
    return NULL;
}

GPtrArray *
zp_families_load_all(void)
{
    GPtrArray *all = g_ptr_array_new_with_free_func((GDestroyNotify)zp_family_free);
    each_section(visit_all, all);
    return all;
}

static gint64
evaluate(ZpSymbols *symbols, const char *text, gboolean *valid)
{
    g_autoptr(ZpExpressions) expressions = zp_expressions_new(symbols);
    ZpExpression expression;
    const char *end;
    if (!zp_expressions_compile(expressions, text, &end, &expression) || *end != '\0')
        broken(text);
    gint64 value;
    *valid = zp_expressions_eval(expressions, expression, &value);
    return value;
}

/* "{h} is not a multiple of {heads}" with the values in place. */
static char *
fill_in(const ZpSymbols *symbols, const char *text)
{
    GString *result = g_string_new(NULL);
    const char *open;
    while ((open = strchr(text, '{')) != NULL) {
        gsize length = strcspn(open, "}");
        g_autofree char *name = g_strndup(open + 1, length - 1);
        g_string_append_len(result, text, open - text);
        g_string_append_printf(result, "%" G_GINT64_FORMAT, zp_symbols_get(symbols, name));
        text = open + length + (open[length] == '}');
    }
    g_string_append(result, text);
    return g_string_free(result, FALSE);
}

typedef struct {
    GString *wrong;    /* broken demands */
    char *unsupported; /* the first refusal */
    const char *tree;  /* chosen in place of the family's */
    GPtrArray *warnings;
} Findings;

static void
resolve_statement(const ZpFamilyStatement *s, ZpSymbols *symbols, Findings *findings)
{
    gboolean sets = s->verb == ZP_FAMILY_FIX ||
                    (s->verb == ZP_FAMILY_MISSING && zp_symbols_is_absent(symbols, s->symbol)) ||
                    (s->verb == ZP_FAMILY_DEFAULT && !zp_symbols_is_set(symbols, s->symbol));
    gboolean asks = s->verb == ZP_FAMILY_DEMAND || s->verb == ZP_FAMILY_REFUSE ||
                    s->verb == ZP_FAMILY_NOTE || s->verb == ZP_FAMILY_CHOOSE;
    if (!sets && !asks)
        return;
    gboolean valid;
    gint64 value = evaluate(symbols, s->argument, &valid);
    if (sets) {
        zp_symbols_set(symbols, s->symbol, value);
        return;
    }
    if (s->verb == ZP_FAMILY_CHOOSE && value != 0)
        findings->tree = s->text;
    g_autofree char *text = fill_in(symbols, s->text);
    if (s->verb == ZP_FAMILY_NOTE && value != 0 && findings->warnings)
        g_ptr_array_add(findings->warnings, g_steal_pointer(&text));
    else if (s->verb == ZP_FAMILY_REFUSE && value != 0 && !findings->unsupported)
        findings->unsupported = g_steal_pointer(&text);
    else if (s->verb == ZP_FAMILY_DEMAND && (value == 0 || !valid))
        g_string_append_printf(findings->wrong, "%s%s", findings->wrong->len ? "; " : "", text);
}

gboolean
zp_family_resolve(const ZpFamily *family, ZpSymbols *symbols, const char **tree,
                  GPtrArray *warnings, GError **error)
{
    g_autoptr(GString) wrong = g_string_new(NULL);
    Findings findings = {.wrong = wrong, .tree = family->tree, .warnings = warnings};
    for (guint i = 0; i < family->statements->len; i++)
        resolve_statement(g_ptr_array_index(family->statements, i), symbols, &findings);
    g_autofree char *unsupported = findings.unsupported;
    if (unsupported) {
        g_set_error_literal(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_UNSUPPORTED,
                            unsupported);
        return FALSE;
    }
    if (wrong->len > 0) {
        g_set_error_literal(error, ZP_ARCHITECTURE_ERROR, ZP_ARCHITECTURE_ERROR_RANGE, wrong->str);
        return FALSE;
    }
    *tree = findings.tree;
    return TRUE;
}
