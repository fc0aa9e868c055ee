/* The persistent rows: what a rank stores from step to step. */
#include "models/ledger/ledger_internal.h"

#define ZERO_PAPER "ZeRO (arXiv 1910.02054), "

typedef struct {
    const ZpJob *job;
    const ZpUnits *units;
    LedgerMath *math;
} State;

/* How many ranks share one copy of a class: 1, or the shard group. */
static gint32
owners_of(const ZpJob *job, ZpClass class_id)
{
    int from = class_id == ZP_CLASS_PARAMETER ? 3 : class_id == ZP_CLASS_GRADIENT ? 2 : 1;
    return job->zero.stage >= from ? MAX(1, job->world.shard_group) : 1;
}

/* A row is counted over units: `whole` elements in all, `stored` of them (and padding) on a rank.
 */
typedef struct {
    gint64 whole, stored;
} Count;

static void
count_unit(const State *state, Count *count, gint64 elements, gint32 owners)
{
    count->whole = ledger_add(state->math, count->whole, elements);
    count->stored =
        ledger_add(state->math, count->stored, zp_wrapping_shard_elements(elements, owners));
}

static Count
count_elements(const State *state, ZpClass class_id)
{
    Count count = {0};
    gint32 owners = owners_of(state->job, class_id);
    for (gint32 u = 0; u < state->units->n_units; u++) {
        const ZpUnit *unit = &state->units->units[u];
        count_unit(state, &count,
                   class_id == ZP_CLASS_PARAMETER ? unit->elements : unit->trainable_elements,
                   owners);
    }
    return count;
}

/* Row and column vectors of every trainable parameter, collected by unit. */
static Count
count_factored(const State *state)
{
    const ZpModel *model = state->job->model;
    g_autofree gint64 *by_unit = g_new0(gint64, (gsize)state->units->n_units);
    for (guint p = 0; p < model->parameters->len; p++) {
        const ZpModelParameter *parameter = zp_model_parameter(model, (gint32)p);
        if (parameter->tied_to != ZP_MODEL_NONE || !parameter->trainable ||
            parameter->layer == ZP_MODEL_NONE)
            continue;
        gint64 *sum = &by_unit[state->units->unit_of_layer[parameter->layer]];
        *sum = ledger_add(state->math, *sum,
                          zp_optimizer_variance_elements(state->job->optimizer, parameter));
    }
    Count count = {0};
    for (gint32 u = 0; u < state->units->n_units; u++)
        count_unit(state, &count, by_unit[u], owners_of(state->job, ZP_CLASS_VARIANCE));
    return count;
}

static void
add_row(const State *state, ZpLedger *ledger, ZpLedgerRow row, Count count, int block_elements)
{
    LedgerMath *math = state->math;
    g_assert(ledger->n_rows < ZP_LEDGER_MAX_ROWS);
    row.owners = owners_of(state->job, row.class_id);
    row.elements = MIN(count.whole / row.owners, count.stored);
    row.bytes_per_element = zp_dtype_bits(row.dtype) / 8.0;
    gint64 bytes = ledger_bytes(math, row.dtype, count.stored);
    if (block_elements > 0) {
        gint64 blocks = count.stored / block_elements + (count.stored % block_elements != 0);
        bytes = ledger_add(math, bytes, ledger_bytes(math, ZP_DTYPE_FP32, blocks));
        row.bytes_per_element += 4.0 / block_elements;
    }
    gint64 beyond = bytes - ledger_bytes(math, row.dtype, row.elements);
    row.persistent_bytes = ledger_multiply(math, row.copies, bytes);
    row.padding_bytes = ledger_multiply(math, row.copies, beyond);
    ledger->persistent_bytes = ledger_add(math, ledger->persistent_bytes, row.persistent_bytes);
    ledger->rows[ledger->n_rows++] = row;
}

static void
add_weights(const State *state, ZpLedger *ledger)
{
    const ZpJob *job = state->job;
    const ZpPrecision *precision = &job->precision;
    state->math->figure = "parameters";
    add_row(state, ledger,
            (ZpLedgerRow){.class_id = ZP_CLASS_PARAMETER,
                          .name = "parameters",
                          .dtype = precision->parameter,
                          .copies = 1,
                          .evidence = ZERO_PAPER "section 5.3"},
            count_elements(state, ZP_CLASS_PARAMETER), 0);
    state->math->figure = "gradients";
    add_row(state, ledger,
            (ZpLedgerRow){.class_id = ZP_CLASS_GRADIENT,
                          .name = "gradients",
                          .dtype = precision->gradient,
                          .copies = 1,
                          .evidence = ZERO_PAPER "section 5.2"},
            count_elements(state, ZP_CLASS_GRADIENT), 0);
    if (!zp_optimizer_keeps_master(job->optimizer, precision->parameter, precision->master))
        return;
    state->math->figure = "master weights";
    add_row(state, ledger,
            (ZpLedgerRow){.class_id = ZP_CLASS_MASTER,
                          .name = "master weights",
                          .dtype = precision->master,
                          .copies = 1,
                          .evidence = ZERO_PAPER "sections 3.1 and 5.1"},
            count_elements(state, ZP_CLASS_MASTER), 0);
}

static void
add_moments(const State *state, ZpLedger *ledger)
{
    const ZpJob *job = state->job;
    const ZpOptimizer *optimizer = job->optimizer;
    ZpLedgerRow row = {
        .dtype = job->precision.moments,
        .copies = 1,
        .evidence = optimizer->source,
    };
    if (optimizer->momentum) {
        state->math->figure = row.name = "momentum";
        row.class_id = ZP_CLASS_MOMENTUM;
        add_row(state, ledger, row, count_elements(state, ZP_CLASS_MOMENTUM),
                optimizer->block_elements);
    }
    if (optimizer->variance) {
        state->math->figure = row.name = "variance";
        row.class_id = ZP_CLASS_VARIANCE;
        add_row(state, ledger, row,
                optimizer->factored ? count_factored(state)
                                    : count_elements(state, ZP_CLASS_VARIANCE),
                optimizer->block_elements);
    }
}

void
ledger_persistent(const ZpJob *job, const ZpUnits *units, ZpLedger *ledger, LedgerMath *math)
{
    State state = {.job = job, .units = units, .math = math};
    add_weights(&state, ledger);
    add_moments(&state, ledger);
}

gint64
ledger_optimizer_temporary(const ZpJob *job, const ZpUnits *units, LedgerMath *math)
{
    /* A step works on what a rank owns */
    gint32 owners = job->zero.stage >= 1 ? MAX(1, job->world.shard_group) : 1;
    gint64 owned = 0, largest = 0;
    for (gint32 u = 0; u < units->n_units; u++) {
        const ZpUnit *unit = &units->units[u];
        owned =
            ledger_add(math, owned, zp_wrapping_shard_elements(unit->trainable_elements, owners));
        largest =
            MAX(largest, zp_wrapping_shard_elements(unit->largest_parameter_elements, owners));
    }
    const ZpOptimizer *optimizer = job->optimizer;
    if (owned > G_MAXINT64 / 64 || largest > G_MAXINT64 / 64)
        return ledger_multiply(math, G_MAXINT64, 2);
    return zp_optimizer_temporary_bytes(optimizer, owned, owned == 0 ? 0 : largest);
}
