/* Words of the columns "strategy" and "gpu", by what they mean: "tp2 + zero1 (over all dp ranks)",
 * "A100-80GB-SXM". */
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

/* Bandwidth of HBM2e by its size: 2,039 GB/s of an A100's 80 GB; 96 GB on an H100 have 2.4 TB/s
 * (pytorch/torchtitan docs/performance.md). */
#define HBM2E_BYTES_PER_S_PER_GB 25.5e9

typedef struct {
    char *model;      /* "H100", "RTX 4090": words in front of the others */
    const char *form; /* of the board: "SXM", "PCIe", "NVL"; NULL: not said */
    double memory_gb, watts;
    gboolean hbm2e;
} Words;

static gboolean
refuse_gpu_word(const char *word, GError **error)
{
    g_set_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW,
                "the GPU's word '%s' is not understood", word);
    return FALSE;
}

/* A number and this unit, and nothing else. */
static gboolean
is_amount(const char *word, const char *unit, double *amount)
{
    char *end = NULL;
    double value = g_ascii_strtod(word, &end);
    if (end == word || value <= 0.0 || g_ascii_strcasecmp(end, unit) != 0)
        return FALSE;
    *amount = value;
    return TRUE;
}

static const char *
form_of(const char *word)
{
    static const char *const forms[] = {"SXM", "PCIe", "NVL"};
    for (gsize f = 0; f < G_N_ELEMENTS(forms); f++) {
        gsize n = strlen(forms[f]);
        if (g_ascii_strncasecmp(word, forms[f], n) == 0 &&
            strspn(word + n, "0123456789") == strlen(word + n))
            return forms[f];
    }
    return NULL;
}

static gboolean
read_gpu_word(Words *words, const char *word, GError **error)
{
    static const char *const vendors[] = {"nvidia", "amd", "tesla"};
    for (gsize v = 0; v < G_N_ELEMENTS(vendors); v++)
        if (g_ascii_strcasecmp(word, vendors[v]) == 0)
            return TRUE;
    if (is_amount(word, "GB", &words->memory_gb) || is_amount(word, "W", &words->watts))
        return TRUE;
    if (form_of(word) != NULL) {
        words->form = form_of(word);
        return TRUE;
    }
    if (g_ascii_strncasecmp(word, "hbm", 3) == 0) {
        words->hbm2e = g_ascii_strcasecmp(word, "hbm2e") == 0;
        return TRUE;
    }
    if (words->model != NULL && is_amount(word, "", &words->memory_gb)) /* "A100-80" */
        return TRUE;
    if (words->model != NULL)
        return refuse_gpu_word(word, error);
    words->model = g_strdup(word);
    return TRUE;
}

/* What a catalogue's name says: "A100-SXM-80". */
static double
size_of_name(const char *name)
{
    const char *dash = strrchr(name, '-');
    double size = 0.0;
    return dash != NULL && is_amount(dash + 1, "", &size) ? size : 0.0;
}

/* Of the boards with this chip's name the one of the same form and size, else of the same form,
 * else on a baseboard (SXM), which is what most are sold as. */
static const ZpGpu *
nearest_board(const ZpHardware *hardware, const Words *words)
{
    const char *form = words->form != NULL ? words->form : "SXM";
    gsize n = 0, length = strlen(words->model);
    const ZpGpu *gpus = zp_hardware_gpus(hardware, &n), *best = NULL;
    int best_score = -1;
    for (gsize i = 0; i < n; i++) {
        const char *rest = gpus[i].name + length;
        if (g_ascii_strncasecmp(gpus[i].name, words->model, length) != 0 ||
            (*rest != '-' && *rest != '\0'))
            continue;
        gboolean same_form = g_ascii_strncasecmp(rest + (*rest == '-'), form, strlen(form)) == 0;
        if (words->form != NULL && !same_form)
            continue;
        int score = 2 * same_form + (size_of_name(gpus[i].name) == words->memory_gb);
        if (score > best_score)
            best = &gpus[i];
        best_score = MAX(best_score, score);
    }
    return best;
}

/* Another size of memory than the catalogue's, another kind, another limit of power. */
static void
vary(ZpGpu *gpu, const Words *words)
{
    double size = size_of_name(gpu->name);
    if (words->memory_gb > 0.0 && size > 0.0 && words->memory_gb != size)
        gpu->memory_bytes = (gint64)((double)gpu->memory_bytes * words->memory_gb / size);
    if (words->hbm2e && words->memory_gb > 0.0)
        gpu->memory_bytes_per_s =
            MIN(gpu->memory_bytes_per_s, HBM2E_BYTES_PER_S_PER_GB * words->memory_gb);
    if (words->watts > 0.0 && words->watts < gpu->power_watts) {
        g_autofree char *name = g_strdup_printf("%s at %.0f W", gpu->name, words->watts);
        gpu->name = g_intern_string(name); /* not the board whose constants were measured */
        gpu->power_watts = words->watts;
        gpu->gemm_flops = 0.0;
    }
}

static gboolean
read_gpu_words(const ZpHardware *hardware, const char *text, Words *words, const ZpGpu **board,
               GError **error)
{
    g_auto(GStrv) split = g_strsplit_set(text, " -_", -1);
    for (char **word = split; *word != NULL; word++)
        if (**word != '\0' && !read_gpu_word(words, *word, error))
            return FALSE;
    *board = words->model != NULL ? nearest_board(hardware, words) : NULL;
    if (*board == NULL)
        g_set_error_literal(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_ROW,
                            "the GPU is not in the catalogue");
    return *board != NULL;
}

const ZpGpu *
zp_validate_record_gpu(const ZpValidateRecord *record, const ZpHardware *hardware, ZpGpu *variant,
                       GError **error)
{
    const char *text = zp_validate_record_text(record, "gpu");
    g_autofree char *bare =
        g_str_has_suffix(text, "GB") ? g_strndup(text, strlen(text) - 2) : g_strdup(text);
    const ZpGpu *board = zp_hardware_gpu(hardware, text);
    if (board == NULL)
        board = zp_hardware_gpu(hardware, bare);
    if (board != NULL) {
        *variant = *board;
        return board;
    }
    Words words = {0};
    gboolean ok = read_gpu_words(hardware, text, &words, &board, error);
    if (ok) {
        *variant = *board;
        vary(variant, &words);
    }
    g_free(words.model);
    return ok ? board : NULL;
}
