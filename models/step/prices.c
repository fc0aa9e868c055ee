#include "models/step/prices.h"

static gint32
ranks_of(const ZpTape *tape, const ZpTapeWork *work)
{
    return work->group == ZP_TAPE_NONE ? MAX(1, work->ranks) : tape->groups[work->group].size;
}

static ZpStepPrice *
entry_of(GArray *prices, const ZpTape *tape, const ZpTapeWork *work)
{
    gint32 ranks = ranks_of(tape, work);
    const char *rule = zp_tape_rule(tape, work);
    for (guint i = 0; i < prices->len; i++) {
        ZpStepPrice *price = &g_array_index(prices, ZpStepPrice, i);
        if (price->kind == (ZpKind)work->kind && price->category == work->category &&
            price->ranks == ranks && price->rule == rule)
            return price;
    }
    ZpStepPrice fresh = {.kind = (ZpKind)work->kind,
                         .category = (ZpTapeCategory)work->category,
                         .ranks = ranks,
                         .rule = rule};
    g_array_append_val(prices, fresh);
    return &g_array_index(prices, ZpStepPrice, prices->len - 1);
}

/* The last step's works of one category. */
static void
collect(GArray *prices, const ZpTape *tape, ZpTapeCategory category)
{
    gint32 begin = tape->n_steps > 0 ? tape->step_begin[tape->n_steps - 1] : 0;
    for (gint32 i = begin; i < tape->n_instrs; i++) {
        if (tape->instrs[i].op != ZP_TAPE_LAUNCH)
            continue;
        const ZpTapeWork *work = &tape->works[tape->instrs[i].a];
        if (work->category != category)
            continue;
        ZpStepPrice *price = entry_of(prices, tape, work);
        price->count++;
        price->bytes += work->bytes;
        price->wire_bytes += work->wire_bytes;
        price->busy_ps = zp_time_add(price->busy_ps, zp_time_add(work->fixed_ps, work->solo_ps));
        price->flops += work->flops;
    }
}

GArray *
zp_step_prices(const ZpTape *tape)
{
    static const ZpTapeCategory order[] = {ZP_TAPE_COMMUNICATION, ZP_TAPE_COPY, ZP_TAPE_COMPUTE,
                                           ZP_TAPE_HOST_COMPUTE};
    GArray *prices = g_array_new(FALSE, FALSE, sizeof(ZpStepPrice));
    for (gsize c = 0; c < G_N_ELEMENTS(order); c++)
        collect(prices, tape, order[c]);
    return prices;
}

double
zp_step_price_bus_bytes_per_s(const ZpStepPrice *price)
{
    double seconds = zp_time_to_seconds(price->busy_ps);
    return seconds > 0.0 ? (double)price->wire_bytes / seconds : 0.0;
}
