#include "models/words/nearest.h"
#include "scenarios/readers/readers.h"

#include <string.h>

typedef struct {
    ZpTree *root;
    ZpImportMessages *messages;
} Parsed;

static Parsed
parse(const char *text, ZpJsonMode mode)
{
    Parsed parsed = {NULL, zp_import_message_list_new("t.json")};
    parsed.root = zp_json_text_parse(text, strlen(text), mode, parsed.messages);
    return parsed;
}

static void
clear(Parsed *parsed)
{
    zp_tree_free(parsed->root);
    zp_import_message_list_free(parsed->messages);
}

static const ZpImportMessage *
message(const Parsed *parsed, guint i)
{
    g_assert_cmpuint(i, <, parsed->messages->list->len);
    return parsed->messages->list->pdata[i];
}

static void
test_positions(void)
{
    Parsed parsed = parse("{\n  \"a\": {\"b\": 5e8},\n  \"c\": [true, null]\n}", ZP_JSON_STRICT);
    g_assert_cmpuint(parsed.messages->list->len, ==, 0);
    const ZpTree *b = zp_tree_path(parsed.root, "a.b");
    g_assert_cmpint(b->kind, ==, ZP_TREE_REAL);
    g_assert_cmpfloat(b->number, ==, 5e8);
    g_assert_cmpint(b->line, ==, 2);
    g_assert_cmpint(b->column, ==, 14);
    g_assert_cmpint(b->key_column, ==, 9);
    const ZpTree *c = zp_tree_find(parsed.root, "c");
    g_assert_cmpint(c->key_line, ==, 3);
    g_assert_cmpuint(c->members->len, ==, 2);
    clear(&parsed);
}

static void
test_numbers(void)
{
    static const char *const good[] = {"0",
                                       "-0",
                                       "12",
                                       "-3",
                                       "5e8",
                                       "2E+8",
                                       "1.000000e+09",
                                       "9223372036854775807",
                                       "123456789012345678901234567890"};
    static const char *const bad[] = {"01",  "+1",       ".5", "5.",    "1e",    "0x10", "5_000",
                                      "NaN", "Infinity", "-",  "1e999", "500MB", "--1"};
    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        Parsed parsed = parse(good[i], ZP_JSON_STRICT);
        g_assert_cmpuint(parsed.messages->list->len, ==, 0);
        g_assert_cmpfloat(parsed.root->number, ==, g_ascii_strtod(good[i], NULL));
        clear(&parsed);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        Parsed parsed = parse(bad[i], ZP_JSON_FORGIVING);
        g_test_message("%s", bad[i]);
        g_assert_cmpint(zp_import_message_verdict(parsed.messages), ==, ZP_IMPORT_REFUSED);
        clear(&parsed);
    }
    Parsed parsed = parse("9223372036854775807", ZP_JSON_STRICT);
    g_assert_cmpint(parsed.root->integer, ==, G_MAXINT64);
    clear(&parsed);
    parsed = parse("9223372036854775808", ZP_JSON_STRICT);
    g_assert_cmpint(parsed.root->kind, ==, ZP_TREE_REAL);
    clear(&parsed);
}

static void
test_strings(void)
{
    Parsed parsed = parse("\"a\\n\\u00e9\\ud83d\\ude00\\/\"", ZP_JSON_STRICT);
    g_assert_cmpuint(parsed.messages->list->len, ==, 0);
    g_assert_cmpstr(parsed.root->text, ==, "a\n\xc3\xa9\xf0\x9f\x98\x80/");
    clear(&parsed);
    static const char *const bad[] = {"\"\\x\"", "\"\\ud800\"",    "\"\\u0000\"",   "\"\\u12\"",
                                      "\"open",  "\"two\nlines\"", "\"tab\there\"", "\"\\"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        parsed = parse(bad[i], ZP_JSON_FORGIVING);
        g_assert_cmpint(zp_import_message_verdict(parsed.messages), ==, ZP_IMPORT_REFUSED);
        clear(&parsed);
    }
}

static void
test_liberties(void)
{
    static const struct {
        const char *text, *word;
        ZpImportVerdict forgiving;
        int line, column;
    } cases[] = {
        {"// c\n{}", "comments", ZP_IMPORT_SUSPICIOUS, 1, 1},
        {"{} /* c\n */", "comments", ZP_IMPORT_SUSPICIOUS, 1, 4},
        {"{\n# c\n}", "comments", ZP_IMPORT_SUSPICIOUS, 2, 1},
        {"{\"a\": 1,\n \"b\": 2 ,\n}", "trailing commas", ZP_IMPORT_SUSPICIOUS, 2, 9},
        {"{'a': True}", "Python", ZP_IMPORT_REFUSED, 1, 2},
        {"{\"a\": None}", "Python", ZP_IMPORT_REFUSED, 1, 7},
        {"{\"a\": (1, 2)}", "Python", ZP_IMPORT_REFUSED, 1, 7},
        {"{a: 1}", "double quotes", ZP_IMPORT_REFUSED, 1, 2},
        {"{\"a\": 1\n \"b\": 2}", "comma is missing", ZP_IMPORT_REFUSED, 1, 8},
        {"{\"a\" 1}", "colon", ZP_IMPORT_REFUSED, 1, 5},
        {"{\"a\": [1, 2}", "does not fit", ZP_IMPORT_REFUSED, 1, 12},
        {"{\n \"a\": {", "never closed", ZP_IMPORT_REFUSED, 2, 7},
        {"{} {}", "follows after", ZP_IMPORT_REFUSED, 1, 4},
        {"/* open", "never closed", ZP_IMPORT_REFUSED, 1, 1},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Parsed parsed = parse(cases[i].text, ZP_JSON_FORGIVING);
        const ZpImportMessage *first = message(&parsed, 0);
        g_test_message("%s: %s", cases[i].text, first->text);
        g_assert_nonnull(strstr(first->text, cases[i].word));
        g_assert_cmpint(first->line, ==, cases[i].line);
        g_assert_cmpint(first->column, ==, cases[i].column);
        g_assert_cmpint(zp_import_message_verdict(parsed.messages), ==, cases[i].forgiving);
        clear(&parsed);
        parsed = parse(cases[i].text, ZP_JSON_STRICT);
        g_assert_cmpint(zp_import_message_verdict(parsed.messages), ==, ZP_IMPORT_REFUSED);
        clear(&parsed);
    }
}

static void
test_duplicates(void)
{
    Parsed parsed = parse("{\"z\": {\"a\": 1, \"b\": 2,\n\"a\": 3}, \"a\": 4}", ZP_JSON_FORGIVING);
    g_assert_cmpuint(parsed.messages->list->len, ==, 1);
    g_assert_cmpstr(message(&parsed, 0)->key, ==, "z.a");
    g_assert_cmpint(message(&parsed, 0)->line, ==, 2);
    g_assert_nonnull(strstr(message(&parsed, 0)->text, "line 1"));
    g_assert_cmpint(zp_tree_path(parsed.root, "z.a")->integer, ==, 3);
    clear(&parsed);
}

static void
test_bytes(void)
{
    Parsed parsed = parse("\xef\xbb\xbf{}\r\n", ZP_JSON_FORGIVING);
    g_assert_nonnull(parsed.root);
    g_assert_cmpint(zp_import_message_verdict(parsed.messages), ==, ZP_IMPORT_OK);
    g_assert_nonnull(strstr(message(&parsed, 0)->text, "byte order mark"));
    clear(&parsed);
    static const char *const bad[] = {"", " \n", "\xff\xfe{", "{\"a\":\n \"\xc3\x28\"}"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        parsed = parse(bad[i], ZP_JSON_FORGIVING);
        g_assert_null(parsed.root);
        g_assert_cmpint(zp_import_message_verdict(parsed.messages), ==, ZP_IMPORT_REFUSED);
        clear(&parsed);
    }
}

/* Each of these is refused in far less than a second. */
static void
test_bounds(void)
{
    gsize size = ZP_TREE_MAX_BYTES;
    g_autofree char *deep = g_malloc(size + 2);
    memset(deep, '[', size);
    deep[size] = '\0';
    Parsed parsed = parse(deep, ZP_JSON_FORGIVING);
    g_assert_nonnull(strstr(message(&parsed, 0)->text, "deeper"));
    clear(&parsed);
    memset(deep, '1', size);
    parsed = parse(deep, ZP_JSON_FORGIVING);
    g_assert_cmpint(zp_import_message_verdict(parsed.messages), ==, ZP_IMPORT_REFUSED);
    clear(&parsed);
    for (gsize i = 0; i < size; i++)
        deep[i] = i == 0 ? '[' : i % 2 ? '1' : ',';
    parsed = parse(deep, ZP_JSON_FORGIVING);
    g_assert_nonnull(strstr(message(&parsed, 0)->text, "values"));
    clear(&parsed);
    deep[size] = ']';
    deep[size + 1] = '\0';
    parsed = parse(deep, ZP_JSON_FORGIVING);
    g_assert_null(parsed.root);
    g_assert_nonnull(strstr(message(&parsed, 0)->text, "bytes"));
    clear(&parsed);
}

static void
test_nearest(void)
{
    static const char *const names[] = {"stage", "reduce_bucket_size", "overlap_comm"};
    g_assert_cmpstr(zp_nearest_find_among("reduce_bukcet_size", names, 3), ==,
                    "reduce_bucket_size");
    g_assert_cmpstr(zp_nearest_find_among("overlap_com", names, 3), ==, "overlap_comm");
    g_assert_null(zp_nearest_find_among("wandb", names, 3));
    g_assert_cmpint(zp_nearest_distance("ab", "ba"), ==, 1);
    g_assert_cmpint(zp_nearest_distance("", "abc"), ==, 3);
    g_assert_cmpint(zp_nearest_distance("kitten", "sitting"), ==, 3);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/json/positions", test_positions);
    g_test_add_func("/json/numbers", test_numbers);
    g_test_add_func("/json/strings", test_strings);
    g_test_add_func("/json/liberties", test_liberties);
    g_test_add_func("/json/duplicates", test_duplicates);
    g_test_add_func("/json/bytes", test_bytes);
    g_test_add_func("/json/bounds", test_bounds);
    g_test_add_func("/json/nearest", test_nearest);
    return g_test_run();
}
