#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/check_memory/memory.h"

static const double mib = 1024.0 * 1024.0;

typedef struct {
    const char *text;
    gboolean claimed; /* reached: the check fails when it no longer is */
    gboolean passes;
    const char *why; /* it is not claimed */
} Claim;

static gboolean
print_claim(const Claim *claim, const char *figures)
{
    printf("%s: %s: %s\n",
           claim->passes    ? "PASS"
           : claim->claimed ? "FAIL"
                            : "not reached",
           claim->text, figures);
    if (!claim->passes && claim->why != NULL)
        printf("    %s\n", claim->why);
    return claim->passes || !claim->claimed;
}

static const ZpValidateMemory *
simulated(const GArray *results, const char *id, ZpValidateFigure figure)
{
    const ZpValidateMemory *result = zp_validate_memory_find(results, id, figure);
    return result != NULL && result->reason == NULL ? result : NULL;
}

/* What is left of rows that differ in ranks alone when `bytes` per rank's share are taken off. */
static gboolean
constants(const GArray *results, const char *const *ids, double bytes, double *spread,
          double *measured_spread)
{
    double low = INFINITY, high = -INFINITY, measured_low = INFINITY, measured_high = -INFINITY;
    for (; *ids != NULL; ids++) {
        const ZpValidateMemory *r = simulated(results, *ids, ZP_VALIDATE_ALLOCATED);
        if (r == NULL)
            return FALSE;
        double share = bytes / mib / (double)r->ranks;
        low = MIN(low, r->simulated_mib - share);
        high = MAX(high, r->simulated_mib - share);
        measured_low = MIN(measured_low, r->measured_mib - share);
        measured_high = MAX(measured_high, r->measured_mib - share);
    }
    *spread = high - low;
    *measured_spread = measured_high - measured_low;
    return TRUE;
}

/* Published with one decimal of a MiB: what varies less than that is constant. */
#define CONSTANT_MIB 0.1

static gboolean
check_slope(const GArray *results, const char *text, const char *const *ids, double bytes,
            gboolean claimed, const char *why)
{
    double spread = NAN, measured = NAN;
    Claim claim = {text, claimed, FALSE, why};
    if (constants(results, ids, bytes, &spread, &measured))
        claim.passes = spread <= CONSTANT_MIB;
    g_autofree char *figures =
        g_strdup_printf("what is left varies by %.2f MiB (measured: %.2f)", spread, measured);
    return print_claim(&claim, figures);
}

static gboolean
check_dlrover(const GArray *results)
{
    static const char *const full[] = {"DL-002", "DL-004", "DL-006", NULL};
    static const char *const lora[] = {"DL-001", "DL-003", "DL-005", NULL};
    const ZpValidateMemory *r = simulated(results, "DL-002", ZP_VALIDATE_ALLOCATED);
    if (r == NULL)
        return FALSE;
    double base = (double)r->elements, adapters = 16777216.0;
    gboolean ok = check_slope(results, "dlrover, all parameters trained: 12 bytes each, shared",
                              full, 12.0 * base, TRUE, NULL);
    return check_slope(results, "dlrover, LoRA: 4 bytes of the model and 12 of the adapters", lora,
                       4.0 * base + 12.0 * adapters, TRUE, NULL) &&
           ok;
}

/* Rows of a prefix and figure: are all within `share`? */
static gboolean
check_within(const GArray *results, const char *text, const char *prefix, ZpValidateFigure figure,
             double share, gboolean claimed, const char *why)
{
    double worst = 0.0;
    int n = 0, inside = 0;
    for (guint i = 0; i < results->len; i++) {
        const ZpValidateMemory *r = &g_array_index(results, ZpValidateMemory, i);
        if (r->figure != figure || !g_str_has_prefix(r->id, prefix) || r->reason != NULL)
            continue;
        double off = fabs(r->simulated_mib / r->measured_mib - 1.0);
        worst = MAX(worst, off);
        inside += off <= share;
        n++;
    }
    Claim claim = {text, claimed, n > 0 && inside == n, why};
    g_autofree char *figures = g_strdup_printf("%d of %d rows within %.0f%%, largest error %.2f%%",
                                               inside, n, 100.0 * share, 100.0 * worst);
    return print_claim(&claim, figures);
}

/* A difference of two rows: what one setting is worth. */
static gboolean
check_difference(const GArray *results, const char *text, const char *more, const char *less,
                 ZpValidateFigure figure, double tolerance_mib, gboolean claimed, const char *why)
{
    const ZpValidateMemory *a = simulated(results, more, figure),
                           *b = simulated(results, less, figure);
    Claim claim = {text, claimed, FALSE, why};
    double measured = NAN, own = NAN;
    if (a != NULL && b != NULL) {
        measured = a->measured_mib - b->measured_mib;
        own = a->simulated_mib - b->simulated_mib;
        claim.passes = fabs(own - measured) <= tolerance_mib;
    }
    g_autofree char *figures = g_strdup_printf("%.1f MiB, measured %.1f", own, measured);
    return print_claim(&claim, figures);
}

typedef struct {
    const char *id, *text;
    gboolean claimed;
    const char *why;
} Boundary;

static const Boundary boundaries[] = {
    {"TT-027", "Llama-2-70B, 64 ranks, micro-batch 2, selective checkpointing", TRUE, NULL},
    {"TT-031", "Llama-3.1-405B, 128 ranks, full checkpointing", TRUE, NULL},
    {"HF-023", "Llama-2-70B, 16 ranks, full checkpointing", TRUE, NULL},
    {"PT-015", "GPT-530B, 560 ranks, micro-batch 4, full checkpointing", TRUE, NULL},
};

static gboolean
check_boundaries(const GArray *results)
{
    gboolean ok = TRUE;
    for (gsize b = 0; b < G_N_ELEMENTS(boundaries); b++) {
        const Boundary *boundary = &boundaries[b];
        const ZpValidateMemory *r = simulated(results, boundary->id, ZP_VALIDATE_FITS);
        Claim claim = {boundary->text, boundary->claimed,
                       r != NULL && r->measured_fits == r->simulated_fits, boundary->why};
        ok &= print_claim(&claim, r == NULL           ? "not simulated"
                                  : r->simulated_fits ? "simulated: fits"
                                                      : "simulated: out of memory");
    }
    return ok;
}

gboolean
memory_check_claims(const GArray *results)
{
    printf("\nclaims\n");
    gboolean ok = check_dlrover(results);
    ok &= check_within(results, "Lightning's four strategies", "LT-", ZP_VALIDATE_ALLOCATED, 0.02,
                       TRUE, NULL);
    /* Printed as whole MiB, each from several whole parts. */
    ok &= check_difference(results, "llm.c 124M, stage 0 over stage 1", "IS-016", "IS-017",
                           ZP_VALIDATE_ALLOCATED, 1.0, TRUE, NULL);
    ok &= check_difference(results, "llm.c 1558M, stage 0 over stage 1", "IS-018", "IS-019",
                           ZP_VALIDATE_ALLOCATED, 5.0, TRUE, NULL);
    /* The allocator's pages are 20 MiB: a difference of two is within two. */
    ok &= check_difference(results, "torchtitan, second step over first (8 B x P / 8)", "TT-055",
                           "TT-056", ZP_VALIDATE_RESERVED, 40.0, TRUE, NULL);
    ok &= check_within(results, "torchtitan's active memory", "TT-", ZP_VALIDATE_ACTIVE, 0.05, TRUE,
                       NULL);
    static const char *const small[] = {"TT-055", "TT-056", "TT-057", "TT-058"};
    for (gsize i = 0; i < G_N_ELEMENTS(small); i++)
        ok &= check_within(results, "reserved, Llama-3-8B at micro-batch 1", small[i],
                           ZP_VALIDATE_RESERVED, 0.05, TRUE, NULL);
    ok &= check_within(results, "reserved, compiled Llamas of torchtitan", "TT-05",
                       ZP_VALIDATE_RESERVED, 0.05, TRUE, NULL);
    ok &= check_within(results, "reserved, Llama-3-8B at micro-batch 2, eager and compiled",
                       "TT-00", ZP_VALIDATE_RESERVED, 0.05, TRUE, NULL);
    ok &= check_within(
        results, "torchtitan's reserved memory", "TT-", ZP_VALIDATE_RESERVED, 0.05, FALSE,
        "but for the head, a layer's tensors are one buffer here, so the cache is cut "
        "up less than it is there without expandable segments");
    ok &= check_within(results, "torchtune's active memory on one device", "TU-",
                       ZP_VALIDATE_ACTIVE, 0.05, FALSE,
                       "another fp32 buffer of the logits' size lives around the compiled loss of "
                       "fp32 logits (TU-003): PyTorch before 2.5 scatters the loss's gradient into "
                       "one, but which PyTorch ran is not stated");
    return check_boundaries(results) && ok;
}
