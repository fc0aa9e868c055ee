/* A job whose ledger a reader can add up. */
#pragma once

#include "models/ledger.h"

/* A model of equal layers, one unit a layer, bf16 with fp32 Adam, stage 3. */
typedef struct {
    ZpModel *model;
    ZpUnits *units;
    ZpJob job;
} LedgerFixture;

static inline void
ledger_fixture_set_model(LedgerFixture *fixture, ZpModel *model)
{
    zp_wrapping_free(fixture->units);
    zp_model_free(fixture->model);
    fixture->model = model;
    fixture->job.model = model;
    fixture->units = zp_wrapping_apply(model, &fixture->job.zero);
}

static inline void
ledger_fixture_init(LedgerFixture *fixture, gint64 elements, gint32 layers, gint32 ranks)
{
    *fixture = (LedgerFixture){
        .job = {.runtime = "ideal",
                .optimizer = zp_optimizer_find("adamw"),
                .precision = {ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_BF16,
                              ZP_DTYPE_FP32, ZP_DTYPE_FP32},
                .training = {.micro_batch = 1, .sequence = 1000, .accumulation = 1},
                .world = {.ranks = ranks, .shard_group = ranks},
                .zero = {.stage = 3,
                         .wrap = ZP_WRAP_BLOCK,
                         .wrap_blocks = 1,
                         .bucket_elements = 1,
                         .reshard_after_forward = TRUE}},
    };
    ledger_fixture_set_model(fixture, zp_model_new_total(elements, layers));
}

static inline void
ledger_fixture_clear(LedgerFixture *fixture)
{
    zp_wrapping_free(fixture->units);
    zp_model_free(fixture->model);
}

static inline ZpLedger
ledger_fixture_compute(const LedgerFixture *fixture)
{
    g_autoptr(GError) error = NULL;
    gboolean legal = zp_ledger_check(&fixture->job, fixture->units, &error);
    g_assert_no_error(error);
    g_assert_true(legal);
    ZpLedger ledger;
    zp_ledger_compute(&fixture->job, fixture->units, &ledger);
    return ledger;
}

static inline const ZpLedgerRow *
ledger_fixture_row(const ZpLedger *ledger, ZpClass class_id)
{
    for (int r = 0; r < ledger->n_rows; r++) {
        if (ledger->rows[r].class_id == class_id)
            return &ledger->rows[r];
    }
    return NULL;
}

static inline gint64
ledger_fixture_bytes(const ZpLedger *ledger, ZpClass class_id)
{
    const ZpLedgerRow *row = ledger_fixture_row(ledger, class_id);
    return row ? row->persistent_bytes : 0;
}
