#include "scenarios/readers/json_reader_internal.h"
#include "scenarios/readers/readers.h"

#include <string.h>

static ZpTree *read_value(ZpJsonReader *reader);

/* The key at reader->p up to and with its colon; NULL after a fatal complaint. */
static char *
read_key(ZpJsonReader *reader)
{
    g_autofree char *key = NULL;
    const char *start = reader->p;
    if (*start == '"' || *start == '\'') {
        if (*start == '\'')
            zp_json_reader_take_liberty(reader, &reader->python, start);
        key = zp_json_reader_string(reader);
        if (!key)
            return NULL;
    } else {
        key = zp_json_reader_word(reader);
        g_autofree char *mend = g_strdup_printf("\"%s\"", key);
        zp_json_reader_complain(
            reader, reader->line, zp_json_reader_column(reader, start), *key ? mend : NULL,
            *key ? "a key must stand in double quotes" : "a key is missing here");
        if (!*key) {
            reader->failed = TRUE;
            return NULL;
        }
    }
    int line = reader->line, column = zp_json_reader_column(reader, reader->p);
    zp_json_reader_skip_space(reader);
    if (!reader->failed && (reader->p >= reader->end || *reader->p != ':')) {
        zp_json_reader_complain(reader, line, column, NULL, "a colon is missing after the key %s",
                                key);
        reader->failed = TRUE;
    }
    if (reader->failed)
        return NULL;
    reader->p++;
    return g_steal_pointer(&key);
}

static void
complain_open(ZpJsonReader *reader, const ZpTree *tree)
{
    zp_json_reader_complain(reader, tree->line, tree->column, "close it",
                            "%s that opens here is never closed", zp_tree_kind_name(tree->kind));
    reader->failed = TRUE;
}

/* After a member: TRUE if another follows. */
static gboolean
read_separator(ZpJsonReader *reader, const ZpTree *parent, char close)
{
    int line = reader->line, column = zp_json_reader_column(reader, reader->p);
    zp_json_reader_skip_space(reader);
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
    int comma_line = reader->line, comma_column = zp_json_reader_column(reader, comma);
    if (*comma != ',') {
        if (*comma == ']' || *comma == '}' || *comma == ':') {
            zp_json_reader_complain(reader, comma_line, comma_column, NULL,
                                    "%c does not fit %s opened in line %d", *comma,
                                    zp_tree_kind_name(parent->kind), parent->line);
            reader->failed = TRUE;
            return FALSE;
        }
        zp_json_reader_complain(reader, line, column, "put a comma here", "a comma is missing");
        return TRUE;
    }
    reader->p++;
    zp_json_reader_skip_space(reader);
    if (!reader->failed && reader->p >= reader->end)
        complain_open(reader, parent);
    if (!reader->failed && *reader->p == close) {
        if (reader->commas.count++ == 0)
            reader->commas = (ZpJsonLiberty){comma_line, comma_column, 1};
        reader->p++;
        return FALSE;
    }
    return !reader->failed;
}

static void
read_member(ZpJsonReader *reader, ZpTree *parent, GHashTable *seen)
{
    int line = reader->line, column = zp_json_reader_column(reader, reader->p);
    gsize above = reader->path->len;
    g_autofree char *key = NULL;
    if (parent->kind == ZP_TREE_OBJECT) {
        key = read_key(reader);
        if (!key)
            return;
        g_string_append_printf(reader->path, "%s%.64s", above ? "." : "", key);
        zp_json_reader_skip_space(reader);
    }
    ZpTree *member = reader->failed ? NULL : read_value(reader);
    if (member && key) {
        member->key_line = line;
        member->key_column = column;
        const ZpTree *first = g_hash_table_lookup(seen, key);
        if (first)
            zp_json_reader_complain(
                reader, line, column, "keep one of the two",
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
read_members(ZpJsonReader *reader, ZpTreeKind kind, char close)
{
    g_autoptr(ZpTree) tree =
        zp_tree_new(kind, reader->line, zp_json_reader_column(reader, reader->p));
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    reader->p++;
    if (++reader->depth > ZP_TREE_MAX_DEPTH) {
        zp_json_reader_complain(reader, tree->line, tree->column, NULL,
                                "nested deeper than %d levels", ZP_TREE_MAX_DEPTH);
        reader->failed = TRUE;
        return NULL;
    }
    zp_json_reader_skip_space(reader);
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
read_value(ZpJsonReader *reader)
{
    if (++reader->n_values > ZP_TREE_MAX_VALUES) {
        zp_json_reader_complain(reader, reader->line, 0, NULL, "more than %d values",
                                ZP_TREE_MAX_VALUES);
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
        zp_json_reader_take_liberty(reader, &reader->python, start);
        return read_members(reader, ZP_TREE_ARRAY, ')');
    case '\'':
        zp_json_reader_take_liberty(reader, &reader->python, start);
        G_GNUC_FALLTHROUGH;
    case '"': {
        g_autoptr(ZpTree) tree =
            zp_tree_new(ZP_TREE_STRING, reader->line, zp_json_reader_column(reader, start));
        tree->text = zp_json_reader_string(reader);
        return tree->text ? g_steal_pointer(&tree) : NULL;
    }
    default:
        return zp_json_reader_bare(reader);
    }
}

static void
report_liberties(ZpJsonReader *reader, ZpJsonMode mode)
{
    ZpImportSeverity severity = mode == ZP_JSON_STRICT ? ZP_IMPORT_ERROR : ZP_IMPORT_WARNING;
    const ZpJsonLiberty *comments = &reader->comments, *commas = &reader->commas;
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
        zp_json_reader_complain(
            reader, reader->python.line, reader->python.column,
            "write it out with Python's json.dump, or use double quotes, true, false, null",
            "this is Python, not JSON: single quotes, True, False, None or tuples");
}

static gboolean
check_bytes(ZpJsonReader *reader, gsize length)
{
    int line;
    if (length > ZP_TREE_MAX_BYTES) {
        zp_json_reader_complain(reader, 0, 0, NULL,
                                "%" G_GSIZE_FORMAT " bytes: no settings file is that large",
                                length);
        return FALSE;
    }
    if (length >= 2 && ((reader->p[0] == '\xff' && reader->p[1] == '\xfe') ||
                        (reader->p[0] == '\xfe' && reader->p[1] == '\xff'))) {
        zp_json_reader_complain(reader, 1, 1, "save it as UTF-8", "the file is UTF-16, not UTF-8");
        return FALSE;
    }
    if (!zp_tree_check_text(reader->p, length, &line)) {
        zp_json_reader_complain(reader, line, 0, "save it as UTF-8",
                                "a byte that is not UTF-8 text");
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
    ZpJsonReader reader = {.p = text,
                           .end = text + length,
                           .line_start = text,
                           .line = 1,
                           .path = path,
                           .messages = messages};
    if (!check_bytes(&reader, length))
        return NULL;
    zp_json_reader_skip_space(&reader);
    if (!reader.failed && reader.p >= reader.end) {
        zp_json_reader_complain(&reader, 0, 0, NULL, "the file is empty");
        return NULL;
    }
    g_autoptr(ZpTree) root = reader.failed ? NULL : read_value(&reader);
    zp_json_reader_skip_space(&reader);
    if (root && !reader.failed && reader.p < reader.end)
        zp_json_reader_complain(&reader, reader.line, zp_json_reader_column(&reader, reader.p),
                                NULL, "something follows after the end of the document");
    report_liberties(&reader, mode);
    return g_steal_pointer(&root);
}
