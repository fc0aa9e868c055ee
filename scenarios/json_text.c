#include "scenarios/json_text.h"

#include <stdarg.h>
#include <string.h>

/* Where a tolerated liberty was taken first, and how often. */
typedef struct {
    int line, column, count;
} Liberty;

typedef struct {
    const char *p, *end, *line_start;
    int line;
    int depth, n_values;
    gboolean failed; /* nothing sensible follows */
    Liberty comments, commas, python;
    GString *path; /* dotted keys down to here, for messages */
    ZpImportMessages *messages;
} Reader;

static ZpTree *read_value(Reader *reader);

static int
column_of(const Reader *reader, const char *at)
{
    return (int)MIN(at - reader->line_start, G_MAXINT - 1) + 1;
}

static void complain(Reader *reader, int line, int column, const char *mend, const char *format,
                     ...) G_GNUC_PRINTF(5, 6);

static void
complain(Reader *reader, int line, int column, const char *mend, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    zp_import_message_add(reader->messages, ZP_IMPORT_ERROR, line, column, reader->path->str, mend,
                          "%s", text);
}

static void
take_liberty(const Reader *reader, Liberty *liberty, const char *at)
{
    if (liberty->count++ == 0) {
        liberty->line = reader->line;
        liberty->column = column_of(reader, at);
    }
}

static void
next_line(Reader *reader)
{
    reader->line++;
    reader->line_start = reader->p + 1;
}

static void
skip_block_comment(Reader *reader)
{
    int line = reader->line, column = column_of(reader, reader->p);
    for (reader->p += 2; reader->p < reader->end; reader->p++) {
        if (*reader->p == '\n')
            next_line(reader);
        if (*reader->p == '*' && reader->p + 1 < reader->end && reader->p[1] == '/') {
            reader->p += 2;
            return;
        }
    }
    complain(reader, line, column, "close it with */", "this comment is never closed");
    reader->failed = TRUE;
}

/* White space and what people take for it. */
static void
skip_space(Reader *reader)
{
    while (reader->p < reader->end && !reader->failed) {
        char c = *reader->p;
        char next = reader->p + 1 < reader->end ? reader->p[1] : '\0';
        if (c == '#' || (c == '/' && next == '/')) {
            take_liberty(reader, &reader->comments, reader->p);
            while (reader->p < reader->end && *reader->p != '\n')
                reader->p++;
        } else if (c == '/' && next == '*') {
            take_liberty(reader, &reader->comments, reader->p);
            skip_block_comment(reader);
        } else if (c == '\n') {
            next_line(reader);
            reader->p++;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            reader->p++;
        } else {
            return;
        }
    }
}

static gboolean
read_hex(Reader *reader, gunichar *code)
{
    if (reader->end - reader->p < 4)
        return FALSE;
    *code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = g_ascii_xdigit_value(reader->p[i]);
        if (digit < 0)
            return FALSE;
        *code = *code * 16 + (gunichar)digit;
    }
    reader->p += 4;
    return TRUE;
}

/* reader->p stands behind the backslash. */
static gboolean
read_escape(Reader *reader, GString *out)
{
    static const char from[] = "\"\\/bfnrt'", to[] = "\"\\/\b\f\n\r\t'";
    char c = *reader->p++;
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        g_string_append_c(out, to[known - from]);
        return TRUE;
    }
    gunichar code, low;
    if (c != 'u') {
        reader->p--; /* it may be the first byte of a longer character */
        return FALSE;
    }
    if (!read_hex(reader, &code))
        return FALSE;
    if (code >= 0xd800 && code < 0xdc00) {
        if (reader->end - reader->p < 6 || reader->p[0] != '\\' || reader->p[1] != 'u')
            return FALSE;
        reader->p += 2;
        if (!read_hex(reader, &low) || low < 0xdc00 || low > 0xdfff)
            return FALSE;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code == 0 || (code >= 0xdc00 && code <= 0xdfff)) {
        return FALSE;
    }
    g_string_append_unichar(out, code);
    return TRUE;
}

/* Content of the string that opens at reader->p; NULL after a fatal complaint. */
static char *
read_string(Reader *reader)
{
    const char *open = reader->p;
    char quote = *reader->p++;
    int column = column_of(reader, open);
    g_autoptr(GString) out = g_string_new(NULL);
    while (reader->p < reader->end) {
        char c = *reader->p;
        if (c == quote) {
            reader->p++;
            return g_string_free(g_steal_pointer(&out), FALSE);
        }
        if (c == '\n')
            break;
        reader->p++;
        if (c == '\\') {
            const char *at = reader->p - 1;
            if (reader->p >= reader->end)
                break;
            if (!read_escape(reader, out))
                complain(reader, reader->line, column_of(reader, at), NULL,
                         "this escape is not one that JSON knows");
        } else if ((guchar)c < 0x20 && c != '\r') {
            complain(reader, reader->line, column_of(reader, reader->p - 1), "write \\t",
                     "a control character stands in the text");
        } else {
            g_string_append_c(out, c);
        }
    }
    complain(reader, reader->line, column, "close it on the same line",
             "the text that opens here is never closed");
    reader->failed = TRUE;
    return NULL;
}

static gboolean
is_word(char c)
{
    return g_ascii_isalnum(c) || c == '_' || c == '-' || c == '+' || c == '.' || (guchar)c >= 0x80;
}

static char *
read_word(Reader *reader)
{
    const char *start = reader->p;
    while (reader->p < reader->end && is_word(*reader->p))
        reader->p++;
    return g_strndup(start, (gsize)MIN(reader->p - start, 2 * ZP_TREE_MAX_NUMBER));
}

/* JSON is narrower than most: no +1, 01, .5, 5., 5_000. */
static gboolean
is_json_number(const char *word)
{
    const char *digits = *word == '-' ? word + 1 : word;
    return g_ascii_isdigit(*digits) && !(*digits == '0' && g_ascii_isdigit(digits[1]));
}

static ZpTree *
read_bare(Reader *reader)
{
    static const struct {
        const char *word;
        ZpTreeKind kind;
        gboolean boolean, python;
    } words[] = {
        {"true", ZP_TREE_BOOLEAN, TRUE, FALSE},  {"false", ZP_TREE_BOOLEAN, FALSE, FALSE},
        {"null", ZP_TREE_NULL, FALSE, FALSE},    {"True", ZP_TREE_BOOLEAN, TRUE, TRUE},
        {"False", ZP_TREE_BOOLEAN, FALSE, TRUE}, {"None", ZP_TREE_NULL, FALSE, TRUE},
    };
    const char *start = reader->p;
    int column = column_of(reader, start);
    g_autoptr(ZpTree) tree = zp_tree_new(ZP_TREE_NULL, reader->line, column);
    tree->text = read_word(reader);
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        if (strcmp(tree->text, words[i].word) != 0)
            continue;
        if (words[i].python)
            take_liberty(reader, &reader->python, start);
        tree->kind = words[i].kind;
        tree->boolean = words[i].boolean;
        return g_steal_pointer(&tree);
    }
    if (is_json_number(tree->text) && zp_tree_parse_number(tree, tree->text))
        return g_steal_pointer(&tree);
    if (strlen(tree->text) > ZP_TREE_MAX_NUMBER)
        complain(reader, tree->line, column, NULL, "a word of more than %d characters",
                 ZP_TREE_MAX_NUMBER);
    else if (reader->p == start)
        complain(reader, tree->line, column, NULL, "a value is missing here");
    else
        complain(reader, tree->line, column, "a number in digits, true, false, null, or \"text\"",
                 "%s is not a JSON value", tree->text);
    /* Read on behind a bad word, so that the rest of the file is checked too. */
    reader->failed = reader->p == start;
    tree->kind = ZP_TREE_NULL;
    return reader->failed ? NULL : g_steal_pointer(&tree);
}

/* The key at reader->p up to and with its colon; NULL after a fatal complaint. */
static char *
read_key(Reader *reader)
{
    g_autofree char *key = NULL;
    const char *start = reader->p;
    if (*start == '"' || *start == '\'') {
        if (*start == '\'')
            take_liberty(reader, &reader->python, start);
        key = read_string(reader);
        if (!key)
            return NULL;
    } else {
        key = read_word(reader);
        g_autofree char *mend = g_strdup_printf("\"%s\"", key);
        complain(reader, reader->line, column_of(reader, start), *key ? mend : NULL,
                 *key ? "a key must stand in double quotes" : "a key is missing here");
        if (!*key) {
            reader->failed = TRUE;
            return NULL;
        }
    }
    int line = reader->line, column = column_of(reader, reader->p);
    skip_space(reader);
    if (!reader->failed && (reader->p >= reader->end || *reader->p != ':')) {
        complain(reader, line, column, NULL, "a colon is missing after the key %s", key);
        reader->failed = TRUE;
    }
    if (reader->failed)
        return NULL;
    reader->p++;
    return g_steal_pointer(&key);
}

static void
complain_open(Reader *reader, const ZpTree *tree)
{
    complain(reader, tree->line, tree->column, "close it", "%s that opens here is never closed",
             zp_tree_kind_name(tree->kind));
    reader->failed = TRUE;
}

/* After a member: TRUE if another follows. */
static gboolean
read_separator(Reader *reader, const ZpTree *parent, char close)
{
    int line = reader->line, column = column_of(reader, reader->p);
    skip_space(reader);
    if (reader->failed)
        return FALSE;
    if (reader->p >= reader->end) {
        complain_open(reader, parent);
        return FALSE;
    }
    const char *comma = reader->p;
    if (*comma == close) {
        reader->p++;
        return FALSE;
    }
    int comma_line = reader->line, comma_column = column_of(reader, comma);
    if (*comma != ',') {
        if (*comma == ']' || *comma == '}' || *comma == ':') {
            complain(reader, comma_line, comma_column, NULL, "%c does not fit %s opened in line %d",
                     *comma, zp_tree_kind_name(parent->kind), parent->line);
            reader->failed = TRUE;
            return FALSE;
        }
        complain(reader, line, column, "put a comma here", "a comma is missing");
        return TRUE;
    }
    reader->p++;
    skip_space(reader);
    if (!reader->failed && reader->p >= reader->end)
        complain_open(reader, parent);
    if (!reader->failed && *reader->p == close) {
        if (reader->commas.count++ == 0)
            reader->commas = (Liberty){comma_line, comma_column, 1};
        reader->p++;
        return FALSE;
    }
    return !reader->failed;
}

static void
read_member(Reader *reader, ZpTree *parent, GHashTable *seen)
{
    int line = reader->line, column = column_of(reader, reader->p);
    gsize above = reader->path->len;
    g_autofree char *key = NULL;
    if (parent->kind == ZP_TREE_OBJECT) {
        key = read_key(reader);
        if (!key)
            return;
        g_string_append_printf(reader->path, "%s%.64s", above ? "." : "", key);
        skip_space(reader);
    }
    ZpTree *member = reader->failed ? NULL : read_value(reader);
    if (member && key) {
        member->key_line = line;
        member->key_column = column;
        const ZpTree *first = g_hash_table_lookup(seen, key);
        if (first)
            complain(reader, line, column, "keep one of the two",
                     "duplicate key: it stands in line %d already; DeepSpeed refuses the file, "
                     "other readers take the last one silently",
                     first->key_line);
        member->key = g_steal_pointer(&key);
        if (!first)
            g_hash_table_insert(seen, member->key, member);
    }
    g_string_truncate(reader->path, above);
    if (member)
        zp_tree_add(parent, member);
}

static ZpTree *
read_members(Reader *reader, ZpTreeKind kind, char close)
{
    g_autoptr(ZpTree) tree = zp_tree_new(kind, reader->line, column_of(reader, reader->p));
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    reader->p++;
    if (++reader->depth > ZP_TREE_MAX_DEPTH) {
        complain(reader, tree->line, tree->column, NULL, "nested deeper than %d levels",
                 ZP_TREE_MAX_DEPTH);
        reader->failed = TRUE;
        return NULL;
    }
    skip_space(reader);
    if (!reader->failed && reader->p >= reader->end)
        complain_open(reader, tree);
    else if (!reader->failed && *reader->p == close)
        reader->p++;
    else
        while (!reader->failed) {
            read_member(reader, tree, seen);
            if (reader->failed || !read_separator(reader, tree, close))
                break;
        }
    reader->depth--;
    /* What was read before a fatal error is still worth checking. */
    return g_steal_pointer(&tree);
}

static ZpTree *
read_value(Reader *reader)
{
    if (++reader->n_values > ZP_TREE_MAX_VALUES) {
        complain(reader, reader->line, 0, NULL, "more than %d values", ZP_TREE_MAX_VALUES);
        reader->failed = TRUE;
        return NULL;
    }
    const char *start = reader->p;
    switch (start < reader->end ? *start : '\0') {
    case '{':
        return read_members(reader, ZP_TREE_OBJECT, '}');
    case '[':
        return read_members(reader, ZP_TREE_ARRAY, ']');
    case '(':
        take_liberty(reader, &reader->python, start);
        return read_members(reader, ZP_TREE_ARRAY, ')');
    case '\'':
        take_liberty(reader, &reader->python, start);
        G_GNUC_FALLTHROUGH;
    case '"': {
        g_autoptr(ZpTree) tree =
            zp_tree_new(ZP_TREE_STRING, reader->line, column_of(reader, start));
        tree->text = read_string(reader);
        return tree->text ? g_steal_pointer(&tree) : NULL;
    }
    default:
        return read_bare(reader);
    }
}

static void
report_liberties(Reader *reader, ZpJsonMode mode)
{
    ZpImportSeverity severity = mode == ZP_JSON_STRICT ? ZP_IMPORT_ERROR : ZP_IMPORT_WARNING;
    const Liberty *comments = &reader->comments, *commas = &reader->commas;
    if (comments->count)
        zp_import_message_add(reader->messages, severity, comments->line, comments->column, "",
                              "remove the comments",
                              "comments are not JSON (%d of them): read without them here, but "
                              "the loader of the HF Trainer and accelerate will refuse the file",
                              comments->count);
    if (commas->count)
        zp_import_message_add(reader->messages, severity, commas->line, commas->column, "",
                              "remove the comma before the closing bracket",
                              "trailing commas are not JSON (%d of them): read here, but the "
                              "loader of the HF Trainer and accelerate will refuse the file",
                              commas->count);
    if (reader->python.count)
        complain(reader, reader->python.line, reader->python.column,
                 "write it out with Python's json.dump, or use double quotes, true, false, null",
                 "this is Python, not JSON: single quotes, True, False, None or tuples");
}

static gboolean
check_bytes(Reader *reader, gsize length)
{
    int line;
    if (length > ZP_TREE_MAX_BYTES) {
        complain(reader, 0, 0, NULL, "%" G_GSIZE_FORMAT " bytes: no settings file is that large",
                 length);
        return FALSE;
    }
    if (length >= 2 && ((reader->p[0] == '\xff' && reader->p[1] == '\xfe') ||
                        (reader->p[0] == '\xfe' && reader->p[1] == '\xff'))) {
        complain(reader, 1, 1, "save it as UTF-8", "the file is UTF-16, not UTF-8");
        return FALSE;
    }
    if (!zp_tree_check_text(reader->p, length, &line)) {
        complain(reader, line, 0, "save it as UTF-8", "a byte that is not UTF-8 text");
        return FALSE;
    }
    if (length >= 3 && memcmp(reader->p, "\xef\xbb\xbf", 3) == 0) {
        reader->p += 3;
        reader->line_start = reader->p;
        zp_import_message_add(reader->messages, ZP_IMPORT_NOTE, 1, 1, "",
                              "save it as UTF-8 without a byte order mark",
                              "the file begins with a byte order mark: read here, but a strict "
                              "loader may refuse it");
    }
    if (memchr(reader->p, '\r', (gsize)(reader->end - reader->p)))
        zp_import_message_add(reader->messages, ZP_IMPORT_NOTE, 0, 0, "", NULL,
                              "lines end in CR LF (a Windows editor): harmless in JSON");
    return TRUE;
}

ZpTree *
zp_json_text_parse(const char *text, gsize length, ZpJsonMode mode, ZpImportMessages *messages)
{
    g_autoptr(GString) path = g_string_new(NULL);
    Reader reader = {.p = text,
                     .end = text + length,
                     .line_start = text,
                     .line = 1,
                     .path = path,
                     .messages = messages};
    if (!check_bytes(&reader, length))
        return NULL;
    skip_space(&reader);
    if (!reader.failed && reader.p >= reader.end) {
        complain(&reader, 0, 0, NULL, "the file is empty");
        return NULL;
    }
    g_autoptr(ZpTree) root = reader.failed ? NULL : read_value(&reader);
    skip_space(&reader);
    if (root && !reader.failed && reader.p < reader.end)
        complain(&reader, reader.line, column_of(&reader, reader.p), NULL,
                 "something follows after the end of the document");
    report_liberties(&reader, mode);
    return g_steal_pointer(&root);
}
