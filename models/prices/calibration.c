#include "models/prices/calibration.h"

#include <math.h>
#include <string.h>

#include "models/words/resources.h"

G_DEFINE_QUARK(zp - calibration - error - quark, zp_calibration_error)

typedef struct {
    const char *group, *key;
    gsize offset;
    double low, high; /* legal values */
} Number;

#define C(member) offsetof(ZpCalibration, member)

static const Number numbers[] = {
    {"gpu", "multiprocessors", C(multiprocessors), 1, 10000},
    {"gemm", "efficiency", C(gemm_efficiency), 0.01, 1.5},
    {"gemm", "sustained", C(gemm_sustained), 0.01, 2},
    {"gemm", "tile", C(gemm_tile), 0, 100},
    {"gemm", "depth", C(gemm_depth), 0, 100000},
    {"memory", "efficiency", C(memory_efficiency), 0.01, 1},
    {"overlap", "loss", C(overlap_loss), 0, 3},
    {"overlap", "rate", C(overlap_rate), 0.01, 1},
    {"software", "attention_share", C(attention_share), 0.01, 10},
    {"software", "elementwise_backward", C(elementwise_backward), 0, 100},
    {"software", "loss_bytes_per_logit", C(loss_bytes_per_logit), 0, 1000},
    {"software", "recompute_share", C(recompute_share), 0, 1},
};

static const char *const attention_keys[2][ZP_CALIBRATION_N_HEADS] = {
    {"full-64", "full-128"},
    {"causal-64", "causal-128"},
};

/* The gentlest failure is a message that says which key and what it may be. */
static gboolean
read_number(GKeyFile *file, const char *group, const char *key, double low, double high,
            double *value, GError **error)
{
    g_autofree char *text = g_key_file_get_string(file, group, key, NULL);
    if (text == NULL) {
        g_set_error(error, ZP_CALIBRATION_ERROR, ZP_CALIBRATION_ERROR_KEY,
                    "[%s] %s is missing: a number from %g to %g", group, key, low, high);
        return FALSE;
    }
    char *end = NULL;
    *value = g_ascii_strtod(g_strstrip(text), &end);
    if (end != text && *end == '\0' && *value >= low && *value <= high)
        return TRUE;
    g_set_error(error, ZP_CALIBRATION_ERROR, ZP_CALIBRATION_ERROR_RANGE,
                "[%s] %s = %s: a number from %g to %g is legal", group, key, text, low, high);
    return FALSE;
}

/* Numbers separated by ';': as many as there are sequences. */
static gboolean
read_list(GKeyFile *file, const char *key, double scale, double *values, int *n, GError **error)
{
    g_auto(GStrv) words = g_key_file_get_string_list(file, "attention", key, NULL, NULL);
    guint count = words != NULL ? g_strv_length(words) : 0;
    if (count < 2 || count > ZP_CALIBRATION_MAX_SEQUENCES || (*n != 0 && *n != (int)count)) {
        g_set_error(error, ZP_CALIBRATION_ERROR, ZP_CALIBRATION_ERROR_KEY,
                    "[attention] %s: needs 2 to %d numbers, as many as sequences, separated by ';'",
                    key, ZP_CALIBRATION_MAX_SEQUENCES);
        return FALSE;
    }
    *n = (int)count;
    for (guint i = 0; i < count; i++) {
        char *end = NULL;
        values[i] = g_ascii_strtod(g_strstrip(words[i]), &end) * scale;
        if (end == words[i] || *end != '\0' || !(values[i] > 0.0 && isfinite(values[i]))) {
            g_set_error(error, ZP_CALIBRATION_ERROR, ZP_CALIBRATION_ERROR_RANGE,
                        "[attention] %s: '%s' is no positive number", key, words[i]);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean
read_attention(GKeyFile *file, ZpCalibration *calibration, GError **error)
{
    int n = 0;
    if (!read_list(file, "sequences", 1.0, calibration->sequences, &n, error))
        return FALSE;
    calibration->n_sequences = n;
    for (int i = 1; i < n; i++) {
        if (calibration->sequences[i] <= calibration->sequences[i - 1]) {
            g_set_error_literal(error, ZP_CALIBRATION_ERROR, ZP_CALIBRATION_ERROR_RANGE,
                                "[attention] sequences must ascend");
            return FALSE;
        }
    }
    for (int causal = 0; causal < 2; causal++) {
        for (int head = 0; head < ZP_CALIBRATION_N_HEADS; head++) {
            if (!read_list(file, attention_keys[causal][head], 1e12,
                           calibration->attention[causal][head], &n, error))
                return FALSE;
        }
    }
    return TRUE;
}

static gboolean
read_times(GKeyFile *file, ZpCalibration *calibration, GError **error)
{
    double gemm_us = 0.0, heat_us = 0.0, host_us = 0.0, early = 0.0;
    gboolean heats = g_key_file_has_key(file, "gemm", "heat_us", NULL);
    if (!read_number(file, "gemm", "latency_us", 0, 1e6, &gemm_us, error) ||
        (heats && !read_number(file, "gemm", "heat_us", 0, 1e6, &heat_us, error)) ||
        !read_number(file, "software", "host_kernel_us", 0, 1e6, &host_us, error) ||
        !read_number(file, "software", "recompute_stops_early", 0, 1, &early, error))
        return FALSE;
    calibration->gemm_latency_ps = zp_time_from_seconds(gemm_us * 1e-6);
    calibration->gemm_heat_ps = zp_time_from_seconds(heat_us * 1e-6);
    calibration->host_kernel_ps = zp_time_from_seconds(host_us * 1e-6);
    calibration->recompute_stops_early = early > 0.5;
    return TRUE;
}

void
zp_calibration_set_origin(ZpCalibration *calibration, const char *origin)
{
    g_autofree char *rule = g_strdup_printf("constants of %s", origin);
    calibration->rule = g_intern_string(rule);
}

ZpCalibration *
zp_calibration_parse(const char *text, GError **error)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_autoptr(GError) syntax = NULL;
    if (!g_key_file_load_from_data(file, text, (gsize)-1, G_KEY_FILE_NONE, &syntax)) {
        g_set_error_literal(error, ZP_CALIBRATION_ERROR, ZP_CALIBRATION_ERROR_SYNTAX,
                            syntax->message);
        return NULL;
    }
    g_autoptr(ZpCalibration) calibration = g_new0(ZpCalibration, 1);
    calibration->grade = ZP_GRADE_MEASURED;
    g_autofree char *gpu = g_key_file_get_string(file, "gpu", "name", NULL);
    calibration->gpu = g_intern_string(gpu != NULL ? gpu : "");
    zp_calibration_set_origin(calibration, calibration->gpu);
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++) {
        const Number *number = &numbers[i];
        double *member = (double *)(gpointer)((char *)calibration + number->offset);
        if (!read_number(file, number->group, number->key, number->low, number->high, member,
                         error))
            return NULL;
    }
    if (!read_times(file, calibration, error) || !read_attention(file, calibration, error))
        return NULL;
    return g_steal_pointer(&calibration);
}

ZpCalibration *
zp_calibration_copy(const ZpCalibration *calibration)
{
    return g_memdup2(calibration, sizeof *calibration);
}

void
zp_calibration_scale_attention(ZpCalibration *calibration, double factor)
{
    for (int causal = 0; causal < 2; causal++)
        for (int head = 0; head < ZP_CALIBRATION_N_HEADS; head++)
            for (int s = 0; s < calibration->n_sequences; s++)
                calibration->attention[causal][head][s] *= factor;
}

void
zp_calibration_free(ZpCalibration *calibration)
{
    g_free(calibration);
}

static void
set_number(GKeyFile *file, const char *group, const char *key, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_key_file_set_string(file, group, key, g_ascii_formatd(text, sizeof text, "%.6g", value));
}

static void
set_list(GKeyFile *file, const char *key, const double *values, int n, double scale)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (int i = 0; i < n; i++) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        g_ascii_formatd(number, sizeof number, "%.6g", values[i] / scale);
        g_string_append_printf(text, "%s%s", i == 0 ? "" : ";", number);
    }
    g_key_file_set_value(file, "attention", key, text->str);
}

char *
zp_calibration_print(const ZpCalibration *calibration, const char *evidence)
{
    g_autoptr(GKeyFile) file = g_key_file_new();
    g_key_file_set_string(file, "gpu", "name", calibration->gpu);
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++) {
        const double *member =
            (const double *)(gconstpointer)((const char *)calibration + numbers[i].offset);
        set_number(file, numbers[i].group, numbers[i].key, *member);
    }
    set_number(file, "gemm", "latency_us", zp_time_to_seconds(calibration->gemm_latency_ps) * 1e6);
    if (calibration->gemm_heat_ps > 0)
        set_number(file, "gemm", "heat_us", zp_time_to_seconds(calibration->gemm_heat_ps) * 1e6);
    set_number(file, "software", "host_kernel_us",
               zp_time_to_seconds(calibration->host_kernel_ps) * 1e6);
    set_number(file, "software", "recompute_stops_early", calibration->recompute_stops_early);
    int n = calibration->n_sequences;
    set_list(file, "sequences", calibration->sequences, n, 1.0);
    for (int causal = 0; causal < 2; causal++) {
        for (int head = 0; head < ZP_CALIBRATION_N_HEADS; head++)
            set_list(file, attention_keys[causal][head], calibration->attention[causal][head], n,
                     1e12);
    }
    g_autoptr(GString) text = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(evidence != NULL ? evidence : "", "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if (**line != '\0')
            g_string_append_printf(text, "# %s\n", *line);
    }
    g_autofree char *body = g_key_file_to_data(file, NULL, NULL);
    g_string_append(text, body);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static const char *const built_in[] = {
    "V100-SXM2-16", "V100-SXM2-32", "A100-SXM-40",  "A100-SXM-80",
    "H100-SXM-80",  "H200-SXM-141", "B200-SXM-180",
};

static gpointer
load_built_in(gpointer unused G_GNUC_UNUSED)
{
    GPtrArray *all = g_ptr_array_new();
    for (gsize i = 0; i < G_N_ELEMENTS(built_in); i++) {
        g_autofree char *path = g_strdup_printf("calibration/%s.ini", built_in[i]);
        g_autoptr(GError) error = NULL;
        ZpCalibration *calibration = zp_calibration_parse(zp_resources_text(path), &error);
        if (calibration == NULL)
            g_error("%s: %s", path, error->message);
        g_autofree char *origin = g_strdup_printf("%s (built in)", calibration->gpu);
        zp_calibration_set_origin(calibration, origin);
        g_ptr_array_add(all, calibration);
    }
    return all;
}

const ZpCalibration *
zp_calibration_find(const char *gpu)
{
    static GOnce once = G_ONCE_INIT;
    const GPtrArray *all = g_once(&once, load_built_in, NULL);
    for (guint i = 0; i < all->len; i++) {
        const ZpCalibration *calibration = g_ptr_array_index(all, i);
        if (g_ascii_strcasecmp(calibration->gpu, gpu) == 0)
            return calibration;
    }
    return NULL;
}

static double
at_sequence(const ZpCalibration *calibration, const double *rates, double sequence)
{
    const double *at = calibration->sequences;
    int last = calibration->n_sequences - 1;
    if (sequence <= at[0])
        return rates[0] * sequence / at[0]; /* work falls with the square, launches do not */
    if (sequence >= at[last])
        return rates[last];
    int high = 1;
    while (at[high] < sequence)
        high++;
    double share = log(sequence / at[high - 1]) / log(at[high] / at[high - 1]);
    return rates[high - 1] + share * (rates[high] - rates[high - 1]);
}

double
zp_calibration_attention(const ZpCalibration *calibration, gboolean causal, double sequence,
                         double head_size)
{
    const double(*rates)[ZP_CALIBRATION_MAX_SEQUENCES] = calibration->attention[causal ? 1 : 0];
    double small = at_sequence(calibration, rates[ZP_CALIBRATION_HEAD_64], sequence);
    double large = at_sequence(calibration, rates[ZP_CALIBRATION_HEAD_128], sequence);
    double share = CLAMP((head_size - 64.0) / 64.0, 0.0, 1.0);
    return (small + share * (large - small)) * calibration->attention_share;
}
