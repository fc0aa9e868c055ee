/* Bytes become something that PyTorch's runtimes are asked to run: blocks of calls, wrapped here
 * and there, with frozen and tied parameters.  The same bytes give the same plan. */
#pragma once

#include "models/runtimes/ddp/ddp.h"
#include "models/runtimes/fsdp1/fsdp1.h"
#include "models/runtimes/fsdp2/fsdp2.h"
#include "models/words/vocabulary.h"

#define RANDOM_PLAN_MAX_CALLS 12

typedef struct {
    const guint8 *next, *end;
} RandomBytes;

typedef struct {
    ZpFsdpPlan *plan;
    RandomBytes *bytes;
    int n_calls;
    int block[RANDOM_PLAN_MAX_CALLS]; /* by call: the block it is in, or -1 */
    gint32 block_unit[RANDOM_PLAN_MAX_CALLS];
    gint32 own_unit[RANDOM_PLAN_MAX_CALLS]; /* a unit of its own, or ZP_FSDP_NONE */
    gint32 unit_of_call[RANDOM_PLAN_MAX_CALLS];
    gint32 root;
    gboolean frozen[RANDOM_PLAN_MAX_CALLS];
} RandomPlan;

static inline gint32
random_below(RandomBytes *bytes, int n)
{
    return bytes->next < bytes->end ? *bytes->next++ % n : 0;
}

static inline gint32
random_add_unit(RandomPlan *random, const char *what, int index, gboolean root)
{
    g_autofree char *name = g_strdup_printf("%s.%d", what, index);
    ZpFsdpUnit unit = {
        .name = g_intern_string(name),
        .root = root,
        .input_requires_grad = !root,
        .reshard_after_forward = root ? 0 : random_below(random->bytes, 2),
        .unshard_in_backward = TRUE,
    };
    g_array_append_val(random->plan->units, unit);
    return (gint32)random->plan->units->len - 1;
}

/* Blocks of one to three calls; a block is a unit, or not; so is a call in it. */
static inline void
random_wrap(RandomPlan *random)
{
    random->root = random_add_unit(random, "root", 0, TRUE);
    int left = 0, block = -1;
    gboolean frozen = FALSE;
    for (int c = 0; c < random->n_calls; c++) {
        if (left == 0) {
            left = 1 + random_below(random->bytes, 3);
            block = random_below(random->bytes, 4) ? c : -1;
            frozen = random_below(random->bytes, 4) == 0 && c + left < random->n_calls;
            random->block_unit[c] =
                block >= 0 ? random_add_unit(random, "block", c, FALSE) : ZP_FSDP_NONE;
        }
        gboolean own = left > 1 && block >= 0 && random_below(random->bytes, 4) == 0;
        random->own_unit[c] = own ? random_add_unit(random, "own", c, FALSE) : ZP_FSDP_NONE;
        random->block[c] = block;
        random->frozen[c] = frozen;
        random->unit_of_call[c] = own          ? random->own_unit[c]
                                  : block >= 0 ? random->block_unit[block]
                                               : random->root;
        left--;
    }
}

static inline void
random_add_parameters(RandomPlan *random, gint32 *first_of_call)
{
    ZpFsdpPlan *plan = random->plan;
    for (gint32 u = 0; u < (gint32)plan->units->len; u++) {
        ZpFsdpUnit *unit = &g_array_index(plan->units, ZpFsdpUnit, (guint)u);
        unit->first_parameter = (gint32)plan->parameters->len;
        for (int c = 0; c < random->n_calls; c++) {
            if (random->unit_of_call[c] != u)
                continue;
            first_of_call[c] = (gint32)plan->parameters->len;
            for (int k = 0; k < 2; k++) {
                ZpFsdpParameter parameter = {
                    .name = k ? "bias" : "weight",
                    .rows = 5 + 7 * c,
                    .row_elements = k ? 1 : 3 + 2 * random_below(random->bytes, 9),
                    .trainable = !random->frozen[c],
                    .unit = u,
                    .parameter = ZP_FSDP_NONE,
                };
                g_array_append_val(plan->parameters, parameter);
                unit->n_parameters++;
            }
        }
    }
}

static inline void
random_add_step(ZpFsdpPlan *plan, ZpFsdpStepKind kind, gint32 unit)
{
    ZpFsdpStep step = {.kind = (guint8)kind, .unit = unit, .region = ZP_FSDP_NONE};
    step.first_use = (gint32)plan->uses->len;
    g_array_append_val(plan->steps, step);
}

static inline void
random_add_calls(RandomPlan *random, const gint32 *first_of_call)
{
    ZpFsdpPlan *plan = random->plan;
    random_add_step(plan, ZP_FSDP_ENTER, random->root);
    for (int c = 0; c < random->n_calls; c++) {
        int block = random->block[c];
        if (block == c)
            random_add_step(plan, ZP_FSDP_ENTER, random->block_unit[c]);
        if (random->own_unit[c] != ZP_FSDP_NONE)
            random_add_step(plan, ZP_FSDP_ENTER, random->own_unit[c]);
        random_add_step(plan, ZP_FSDP_CALL, random->unit_of_call[c]);
        for (gint32 k = 0; k < 2; k++) {
            gint32 p = first_of_call[c] + k;
            g_array_append_val(plan->uses, p);
            g_array_append_val(plan->optimizer_order, p);
            g_array_index(plan->steps, ZpFsdpStep, plan->steps->len - 1).n_uses++;
        }
        if (random->own_unit[c] != ZP_FSDP_NONE)
            random_add_step(plan, ZP_FSDP_LEAVE, random->own_unit[c]);
        gboolean last = c + 1 == random->n_calls || random->block[c + 1] != block;
        if (block >= 0 && last)
            random_add_step(plan, ZP_FSDP_LEAVE, random->block_unit[block]);
    }
    random_add_step(plan, ZP_FSDP_LEAVE, random->root);
}

static inline void
random_settings(ZpFsdpPlan *plan, RandomBytes *bytes)
{
    static const int widths[] = {0, 2, 2, 4};
    plan->shard = 1 + random_below(bytes, 8);
    plan->replicate = 1 + random_below(bytes, 3);
    plan->rank = random_below(bytes, plan->shard * plan->replicate);
    plan->strategy = (ZpFsdpStrategy)random_below(bytes, 3);
    if (plan->strategy == ZP_FSDP_STRATEGY_NO_SHARD) {
        plan->replicate *= plan->shard;
        plan->shard = 1;
    }
    plan->stored_bytes = plan->moment_bytes = random_below(bytes, 4) ? 4 : 2;
    plan->param_bytes = widths[random_below(bytes, 4)];
    plan->reduce_bytes = widths[random_below(bytes, 4)];
    plan->moments = random_below(bytes, 3);
    plan->square_root = plan->moments == 2;
    ZpFsdp *settings = &plan->settings;
    settings->optimizer = (ZpFsdpOptimizerMode)random_below(bytes, 3);
    settings->set_to_none = random_below(bytes, 4) > 0;
    settings->first_step = random_below(bytes, 2);
    settings->reduce_scatter_max_input_buffers = 1 + random_below(bytes, 3);
    settings->prefetch = (ZpFsdpPrefetch)random_below(bytes, 3);
    settings->next_forward_prefetch = random_below(bytes, 2);
    settings->limit_all_gathers = random_below(bytes, 2);
    settings->use_orig_params = random_below(bytes, 2);
    settings->zero_grad_after_forward = random_below(bytes, 6) == 0;
    settings->bucket_cap_bytes = random_below(bytes, 3) * 1000;
    settings->gradient_as_bucket_view = random_below(bytes, 2);
    settings->find_unused_parameters = random_below(bytes, 3) == 0;
    settings->static_graph = random_below(bytes, 3) == 0;
    for (int m = 1 + random_below(bytes, 3); m > 0; m--) {
        gboolean sync = m == 1 || settings->static_graph || random_below(bytes, 2);
        ZpFsdpMicroBatch micro_batch = {sync, sync, m == 1 || random_below(bytes, 2), TRUE};
        g_array_append_val(plan->micro_batches, micro_batch);
    }
}

static inline ZpFsdpPlan *
random_plan(RandomBytes *bytes)
{
    RandomPlan random = {.plan = zp_fsdp_plan_new(), .bytes = bytes};
    gint32 first_of_call[RANDOM_PLAN_MAX_CALLS];
    random_settings(random.plan, bytes);
    random.n_calls = 2 + random_below(bytes, RANDOM_PLAN_MAX_CALLS - 1);
    random_wrap(&random);
    random_add_parameters(&random, first_of_call);
    random_add_calls(&random, first_of_call);
    for (gint32 u = 0; u < (gint32)random.plan->units->len; u++)
        g_array_append_val(random.plan->state_order, u);
    zp_fsdp_plan_finish(random.plan);
    return random.plan;
}
