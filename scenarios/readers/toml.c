#include "scenarios/readers/readers.h"

#include <stdarg.h>
#include <string.h>

typedef struct {
    const char *p, *end, *line_start;
    int line, depth, n_values;
    gboolean failed;   /* in this line */
    gboolean finished; /* a bound is broken: do not read on */
    ZpImportMessages *messages;
} Reader;

static ZpTree *read_value(Reader *reader);
static void read_assignment(Reader *reader, ZpTree *table);

static void complain(Reader *reader, const char *mend, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void
complain(Reader *reader, const char *mend, const char *format, ...)
{
    if (reader->failed)
        return; /* one complaint a line */
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    zp_import_message_add(reader->messages, ZP_IMPORT_ERROR, reader->line,
                          (int)MIN(reader->p - reader->line_start, G_MAXINT - 1) + 1, "", mend,
                          "%s", text);
    reader->failed = TRUE;
}

static char
peek(const Reader *reader)
{
    return reader->p < reader->end ? *reader->p : '\0';
}

static void
skip_blanks(Reader *reader)
{
    while (peek(reader) == ' ' || peek(reader) == '\t' || peek(reader) == '\r')
        reader->p++;
    if (peek(reader) == '#')
        while (reader->p < reader->end && *reader->p != '\n')
            reader->p++;
}

/* Inside brackets lines may break. */
static void
skip_space(Reader *reader)
{
    skip_blanks(reader);
    while (peek(reader) == '\n') {
        reader->p++;
        reader->line++;
        reader->line_start = reader->p;
        skip_blanks(reader);
    }
}

static void
skip_line(Reader *reader)
{
    while (reader->p < reader->end && *reader->p != '\n')
        reader->p++;
}

static gboolean
read_escape(Reader *reader, GString *out)
{
    static const char from[] = "\"\\bfnrt", to[] = "\"\\\b\f\n\r\t";
    char c = peek(reader);
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        reader->p++;
        g_string_append_c(out, to[known - from]);
        return TRUE;
    }
    int digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (!digits || reader->end - reader->p <= digits)
        return FALSE;
    gunichar code = 0;
    for (int i = 1; i <= digits; i++) {
        int digit = g_ascii_xdigit_value(reader->p[i]);
        if (digit < 0)
            return FALSE;
        code = code * 16 + (gunichar)digit;
    }
    if (code == 0 || !g_unichar_validate(code))
        return FALSE;
    reader->p += digits + 1;
    g_string_append_unichar(out, code);
    return TRUE;
}

static char *
read_string(Reader *reader)
{
    char quote = *reader->p;
    g_autoptr(GString) out = g_string_new(NULL);
    if (reader->end - reader->p >= 3 && reader->p[1] == quote && reader->p[2] == quote) {
        complain(reader, NULL, "texts of several lines are not supported");
        return NULL;
    }
    for (reader->p++; reader->p < reader->end && *reader->p != '\n'; reader->p++) {
        if (*reader->p == quote) {
            reader->p++;
            return g_string_free(g_steal_pointer(&out), FALSE);
        }
        if (*reader->p == '\\' && quote == '"') {
            reader->p++;
            if (!read_escape(reader, out)) {
                complain(reader, NULL, "this escape is not one that TOML knows");
                return NULL;
            }
            reader->p--;
        } else {
            g_string_append_c(out, *reader->p);
        }
    }
    complain(reader, "close it on the same line", "the text that opens here is never closed");
    return NULL;
}

static char *
read_name(Reader *reader)
{
    if (peek(reader) == '"' || peek(reader) == '\'')
        return read_string(reader);
    const char *start = reader->p;
    while (g_ascii_isalnum(peek(reader)) || peek(reader) == '_' || peek(reader) == '-')
        reader->p++;
    if (reader->p == start) {
        complain(reader, NULL, "a key is missing here");
        return NULL;
    }
    return g_strndup(start, (gsize)(reader->p - start));
}

static ZpTree *
add_member(Reader *reader, ZpTree *table, char *name, ZpTree *member)
{
    /* Tables count like values: finding one takes time that grows with their number. */
    reader->finished = reader->finished || ++reader->n_values > ZP_TREE_MAX_VALUES;
    member->key = name;
    member->key_line = reader->line;
    member->key_column = 1;
    zp_tree_add(table, member);
    return member;
}

/* Walks a.b.c from `table`, making tables on the way; gives the last one and its last name. */
static ZpTree *
read_dotted(Reader *reader, ZpTree *table, char **last)
{
    for (int depth = 0;; depth++) {
        skip_blanks(reader);
        g_autofree char *name = read_name(reader);
        if (!name)
            return NULL;
        skip_blanks(reader);
        if (peek(reader) != '.') {
            *last = g_steal_pointer(&name);
            return table;
        }
        if (depth >= ZP_TREE_MAX_DEPTH) {
            complain(reader, NULL, "nested deeper than %d levels", ZP_TREE_MAX_DEPTH);
            return NULL;
        }
        reader->p++;
        ZpTree *next = zp_tree_find(table, name);
        if (next && next->kind != ZP_TREE_OBJECT) {
            complain(reader, NULL, "%s is a value already (line %d), not a table", name,
                     next->key_line);
            return NULL;
        }
        if (!next)
            next = add_member(reader, table, g_steal_pointer(&name),
                              zp_tree_new(ZP_TREE_OBJECT, reader->line, 1));
        table = next;
    }
}

/* TOML allows 1_000; an underscore stands between digits. */
static char *
without_underscores(const char *word)
{
    g_autoptr(GString) out = g_string_new(NULL);
    for (const char *p = word; *p; p++) {
        if (*p != '_')
            g_string_append_c(out, *p);
        else if (p == word || !g_ascii_isdigit(p[-1]) || !g_ascii_isdigit(p[1]))
            return NULL;
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static ZpTree *
read_bare(Reader *reader)
{
    const char *start = reader->p;
    while (g_ascii_isalnum(peek(reader)) || (peek(reader) && strchr("_-+.:", peek(reader))))
        reader->p++;
    g_autofree char *word = g_strndup(start, (gsize)MIN(reader->p - start, 200));
    g_autoptr(ZpTree) tree =
        zp_tree_new(ZP_TREE_BOOLEAN, reader->line, (int)(start - reader->line_start) + 1);
    tree->text = g_strdup(word);
    tree->boolean = strcmp(word, "true") == 0;
    if (tree->boolean || strcmp(word, "false") == 0)
        return g_steal_pointer(&tree);
    g_autofree char *digits = without_underscores(word);
    const char *first = digits ? digits + (*digits == '-' || *digits == '+') : "";
    gboolean leading_zero = *first == '0' && g_ascii_isdigit(first[1]);
    if (digits && !leading_zero && zp_tree_parse_number(tree, digits))
        return g_steal_pointer(&tree);
    complain(reader, "a number, true, false, or \"text\"", "%.60s is not a value that is read here",
             *word ? word : "this");
    return NULL;
}

static ZpTree *
read_list(Reader *reader)
{
    g_autoptr(ZpTree) list =
        zp_tree_new(ZP_TREE_ARRAY, reader->line, (int)(reader->p - reader->line_start) + 1);
    reader->p++;
    for (skip_space(reader); peek(reader) != ']'; skip_space(reader)) {
        ZpTree *member = read_value(reader);
        if (!member)
            return NULL;
        zp_tree_add(list, member);
        skip_space(reader);
        if (peek(reader) == ',')
            reader->p++;
        else if (peek(reader) != ']') {
            complain(reader, NULL, "a comma or ] is missing in the list of line %d", list->line);
            return NULL;
        }
    }
    reader->p++;
    return g_steal_pointer(&list);
}

static ZpTree *
read_inline_table(Reader *reader)
{
    g_autoptr(ZpTree) table =
        zp_tree_new(ZP_TREE_OBJECT, reader->line, (int)(reader->p - reader->line_start) + 1);
    reader->p++;
    for (skip_blanks(reader); peek(reader) != '}'; skip_blanks(reader)) {
        read_assignment(reader, table);
        if (reader->failed)
            return NULL;
        skip_blanks(reader);
        if (peek(reader) == ',')
            reader->p++;
        else if (peek(reader) != '}') {
            complain(reader, NULL, "a comma or } is missing");
            return NULL;
        }
    }
    reader->p++;
    return g_steal_pointer(&table);
}

static ZpTree *
read_value(Reader *reader)
{
    if (++reader->n_values > ZP_TREE_MAX_VALUES || reader->depth >= ZP_TREE_MAX_DEPTH) {
        complain(reader, NULL,
                 reader->depth >= ZP_TREE_MAX_DEPTH ? "nested too deeply" : "too many values");
        reader->finished = TRUE;
        return NULL;
    }
    char c = peek(reader);
    if (c == '"' || c == '\'') {
        g_autoptr(ZpTree) tree =
            zp_tree_new(ZP_TREE_STRING, reader->line, (int)(reader->p - reader->line_start) + 1);
        tree->text = read_string(reader);
        return tree->text ? g_steal_pointer(&tree) : NULL;
    }
    if (c != '[' && c != '{')
        return read_bare(reader);
    reader->depth++;
    ZpTree *tree = c == '[' ? read_list(reader) : read_inline_table(reader);
    reader->depth--;
    return tree;
}

static void
read_assignment(Reader *reader, ZpTree *table)
{
    g_autofree char *name = NULL;
    ZpTree *owner = read_dotted(reader, table, &name);
    if (!owner)
        return;
    if (peek(reader) != '=') {
        complain(reader, "write key = value", "an equals sign is missing after %s", name);
        return;
    }
    int line = reader->line;
    reader->p++;
    skip_blanks(reader);
    ZpTree *value = read_value(reader);
    if (!value)
        return;
    const ZpTree *first = zp_tree_find(owner, name);
    if (first) {
        complain(reader, "keep one of the two", "%s is set in line %d already", name,
                 first->key_line);
        zp_tree_free(value);
        return;
    }
    add_member(reader, owner, g_steal_pointer(&name), value)->key_line = line;
}

/* "[a.b]": gives the table that the lines below belong to, or NULL. */
static ZpTree *
read_header(Reader *reader, ZpTree *root, GHashTable *opened)
{
    g_autofree char *name = NULL;
    reader->p++;
    if (peek(reader) == '[') {
        complain(reader, NULL, "lists of tables ([[...]]) are not supported");
        return NULL;
    }
    ZpTree *owner = read_dotted(reader, root, &name);
    if (!owner)
        return NULL;
    if (peek(reader) != ']') {
        complain(reader, "close it with ]", "the name of the table does not end");
        return NULL;
    }
    reader->p++;
    ZpTree *table = zp_tree_find(owner, name);
    if (table && (table->kind != ZP_TREE_OBJECT || g_hash_table_contains(opened, table))) {
        complain(reader, "write its keys under one heading",
                 "the table %s stands in line %d already", name, table->key_line);
        return NULL;
    }
    if (!table)
        table = add_member(reader, owner, g_steal_pointer(&name),
                           zp_tree_new(ZP_TREE_OBJECT, reader->line, 1));
    g_hash_table_add(opened, table);
    return table;
}

static void
read_line(Reader *reader, ZpTree *root, ZpTree **table, GHashTable *opened)
{
    reader->failed = FALSE;
    skip_blanks(reader);
    if (reader->p < reader->end && *reader->p != '\n') {
        if (*reader->p == '[')
            *table = read_header(reader, root, opened);
        else if (*table)
            read_assignment(reader, *table);
        else
            skip_line(reader); /* below a heading that was refused */
        skip_blanks(reader);
        if (!reader->failed && reader->p < reader->end && *reader->p != '\n')
            complain(reader, "one key = value a line", "something follows after the value");
    }
    skip_line(reader);
    if (reader->p < reader->end) {
        reader->p++;
        reader->line++;
        reader->line_start = reader->p;
    }
}

ZpTree *
zp_toml_parse(const char *text, gsize length, ZpImportMessages *messages)
{
    Reader reader = {
        .p = text, .end = text + length, .line_start = text, .line = 1, .messages = messages};
    int line;
    if (length > ZP_TREE_MAX_BYTES) {
        complain(&reader, NULL, "%" G_GSIZE_FORMAT " bytes: no settings file is that large",
                 length);
        return NULL;
    }
    if (!zp_tree_check_text(text, length, &line)) {
        reader.line = line;
        complain(&reader, "save it as UTF-8", "a byte that is not UTF-8 text");
        return NULL;
    }
    g_autoptr(GHashTable) opened = g_hash_table_new(NULL, NULL);
    g_autoptr(ZpTree) root = zp_tree_new(ZP_TREE_OBJECT, 1, 1);
    ZpTree *table = root;
    while (reader.p < reader.end && !reader.finished && !zp_import_message_is_full(messages))
        read_line(&reader, root, &table, opened);
    if (reader.finished && zp_import_message_verdict(messages) != ZP_IMPORT_REFUSED) {
        reader.failed = FALSE;
        complain(&reader, NULL, "more than %d values and tables", ZP_TREE_MAX_VALUES);
    }
    return g_steal_pointer(&root);
}
