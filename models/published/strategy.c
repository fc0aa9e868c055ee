/* Words of the column "strategy", by what they mean: "tp2 + zero1 (over all dp ranks)". */
#include <string.h>

#include "models/published/record_internal.h"

static const struct {
    const char *word;
    int stage;
} stages[] = {
    {"none", 0},
    {"ddp", 0},
    {"no_shard", 0},
    {"zero0", 0},
    {"zero1", 1},
    {"zero2", 2},
    {"shard_grad_op", 2},
    {"zero3", 3},
    {"fsdp", 3},
    {"full_shard", 3},
    {"hsdp", 3},
    {"hybrid_shard", 3},
    {"_hybrid_shard_zero2", 2},
};

/* Say where or how, not what is sharded. */
static const char *const others[] = {
    "sharded", "in",       "the",   "node", "nodes", "replicated", "over",       "across", "fp32",
    "master",  "replicas", "tuned", "all",  "ranks", "x",          "overlapped", "gpu"};

static gboolean
is_one_of(const char *const *words, gsize n, const char *word)
{
    for (gsize i = 0; i < n; i++)
        if (strcmp(words[i], word) == 0)
            return TRUE;
    return FALSE;
}

/* "tp8": cuts and counts of ranks, which models/published/record_internal.h reads. */
static gboolean
is_cut(const char *word, gsize letters)
{
    static const char *const cuts[] = {"tp", "pp", "cp", "dp", "ep", "sp", "mp"};
    g_autofree char *name = g_strndup(word, letters);
    return word[letters] != '\0' && is_one_of(cuts, G_N_ELEMENTS(cuts), name);
}

static gboolean
refuse_word(const char *word, GError **error)
{
    g_set_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW,
                "the strategy's word '%s' is not understood", word);
    return FALSE;
}

static gboolean
read_word(const char *word, int *stage, GError **error)
{
    gsize letters = strspn(word, "abcdefghijklmnopqrstuvwxyz_");
    gboolean counts =
        word[letters] != '\0' && strspn(word + letters, "0123456789") == strlen(word + letters);
    for (gsize s = 0; s < G_N_ELEMENTS(stages); s++) {
        gsize n = strlen(stages[s].word);
        gboolean same = strcmp(word, stages[s].word) == 0;
        if (!same && !(counts && letters == n && strncmp(word, stages[s].word, n) == 0))
            continue;
        if (*stage >= 0 && *stage != stages[s].stage)
            return refuse_word(word, error);
        *stage = stages[s].stage;
        return TRUE;
    }
    if (letters == 0 || (counts && is_cut(word, letters)) ||
        is_one_of(others, G_N_ELEMENTS(others), word))
        return TRUE;
    return refuse_word(word, error);
}

/* What stands in brackets is a remark. */
static char *
without_remarks(const char *text)
{
    GString *out = g_string_new(NULL);
    int depth = 0;
    for (; *text != '\0'; text++) {
        depth += *text == '(';
        if (depth == 0)
            g_string_append_c(out, (char)g_ascii_tolower(*text));
        depth -= *text == ')' && depth > 0;
    }
    return g_string_free(out, FALSE);
}

gboolean
zp_validate_record_stage(const ZpValidateRecord *record, int *stage, GError **error)
{
    g_autofree char *text = without_remarks(zp_validate_record_text(record, "strategy"));
    g_auto(GStrv) words = g_strsplit_set(text, " +,;-", -1);
    *stage = -1;
    for (char **word = words; *word != NULL; word++)
        if (**word != '\0' && !read_word(*word, stage, error))
            return FALSE;
    *stage = MAX(*stage, 0);
    return TRUE;
}
