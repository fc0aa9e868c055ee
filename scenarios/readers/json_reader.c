/* The scalars and the white space of JSON, with the liberties that people take. */
#include "scenarios/readers/json_reader_internal.h"

#include <stdarg.h>
#include <string.h>

int
zp_json_reader_column(const ZpJsonReader *reader, const char *at)
{
    return (int)MIN(at - reader->line_start, G_MAXINT - 1) + 1;
}

void
zp_json_reader_complain(ZpJsonReader *reader, int line, int column, const char *mend,
                        const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    zp_import_message_add(reader->messages, ZP_IMPORT_ERROR, line, column, reader->path->str, mend,
                          "%s", text);
}

void
zp_json_reader_take_liberty(const ZpJsonReader *reader, ZpJsonLiberty *liberty, const char *at)
{
    if (liberty->count++ == 0) {
        liberty->line = reader->line;
        liberty->column = zp_json_reader_column(reader, at);
    }
}

static void
next_line(ZpJsonReader *reader)
{
    reader->line++;
    reader->line_start = reader->p + 1;
}

static void
skip_block_comment(ZpJsonReader *reader)
{
    int line = reader->line, column = zp_json_reader_column(reader, reader->p);
    for (reader->p += 2; reader->p < reader->end; reader->p++) {
        if (*reader->p == '\n')
            next_line(reader);
        if (*reader->p == '*' && reader->p + 1 < reader->end && reader->p[1] == '/') {
            reader->p += 2;
            return;
        }
    }
    zp_json_reader_complain(reader, line, column, "close it with */",
                            "this comment is never closed");
    reader->failed = TRUE;
}

void
zp_json_reader_skip_space(ZpJsonReader *reader)
{
    while (reader->p < reader->end && !reader->failed) {
        char c = *reader->p;
        char next = reader->p + 1 < reader->end ? reader->p[1] : '\0';
        if (c == '#' || (c == '/' && next == '/')) {
            zp_json_reader_take_liberty(reader, &reader->comments, reader->p);
            while (reader->p < reader->end && *reader->p != '\n')
                reader->p++;
        } else if (c == '/' && next == '*') {
            zp_json_reader_take_liberty(reader, &reader->comments, reader->p);
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
read_hex(ZpJsonReader *reader, gunichar *code)
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
read_escape(ZpJsonReader *reader, GString *out)
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

char *
zp_json_reader_string(ZpJsonReader *reader)
{
    const char *open = reader->p;
    char quote = *reader->p++;
    int column = zp_json_reader_column(reader, open);
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
                zp_json_reader_complain(reader, reader->line, zp_json_reader_column(reader, at),
                                        NULL, "this escape is not one that JSON knows");
        } else if ((guchar)c < 0x20 && c != '\r') {
            zp_json_reader_complain(reader, reader->line,
                                    zp_json_reader_column(reader, reader->p - 1), "write \\t",
                                    "a control character stands in the text");
        } else {
            g_string_append_c(out, c);
        }
    }
    zp_json_reader_complain(reader, reader->line, column, "close it on the same line",
                            "the text that opens here is never closed");
    reader->failed = TRUE;
    return NULL;
}

static gboolean
is_word(char c)
{
    return g_ascii_isalnum(c) || c == '_' || c == '-' || c == '+' || c == '.' || (guchar)c >= 0x80;
}

char *
zp_json_reader_word(ZpJsonReader *reader)
{
    const char *start = reader->p;
    while (reader->p < reader->end && is_word(*reader->p))
        reader->p++;
    return g_strndup(start, (gsize)MIN(reader->p - start, (gssize)2 * ZP_TREE_MAX_NUMBER));
}

/* JSON is narrower than most: no +1, 01, .5, 5., 5_000. */
static gboolean
is_json_number(const char *word)
{
    const char *digits = *word == '-' ? word + 1 : word;
    return g_ascii_isdigit(*digits) && !(*digits == '0' && g_ascii_isdigit(digits[1]));
}

ZpTree *
zp_json_reader_bare(ZpJsonReader *reader)
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
    int column = zp_json_reader_column(reader, start);
    g_autoptr(ZpTree) tree = zp_tree_new(ZP_TREE_NULL, reader->line, column);
    tree->text = zp_json_reader_word(reader);
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        if (strcmp(tree->text, words[i].word) != 0)
            continue;
        if (words[i].python)
            zp_json_reader_take_liberty(reader, &reader->python, start);
        tree->kind = words[i].kind;
        tree->boolean = words[i].boolean;
        return g_steal_pointer(&tree);
    }
    if (is_json_number(tree->text) && zp_tree_parse_number(tree, tree->text))
        return g_steal_pointer(&tree);
    if (strlen(tree->text) > ZP_TREE_MAX_NUMBER)
        zp_json_reader_complain(reader, tree->line, column, NULL,
                                "a word of more than %d characters", ZP_TREE_MAX_NUMBER);
    else if (reader->p == start)
        zp_json_reader_complain(reader, tree->line, column, NULL, "a value is missing here");
    else
        zp_json_reader_complain(reader, tree->line, column,
                                "a number in digits, true, false, null, or \"text\"",
                                "%s is not a JSON value", tree->text);
    /* Read on behind a bad word, so that the rest of the file is checked too. */
    reader->failed = reader->p == start;
    tree->kind = ZP_TREE_NULL;
    return reader->failed ? NULL : g_steal_pointer(&tree);
}
