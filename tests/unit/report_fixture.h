/* A run spelt by hand: two units gathered and computed in turn, times and memory as written here,
 * so that every figure of a report can be added up by a reader. */
#pragma once

#include <gio/gio.h>
#include <glib/gstdio.h>
#include <string.h>

#include "reports/recorder.h"
#include "reports/report.h"

typedef struct {
    ZpTape *tape;
    ZpRecorder *recorder;
    ZpModel *model;
    ZpUnit unit_table[2];
    ZpUnits units;
    ZpOptimizer optimizer;
    ZpJob job;
    ZpLedger ledger;
    ZpStepSummary summary;
    GArray *live_set;
    ZpReportRun run;
    gint64 class_bytes[ZP_N_CLASSES], total_bytes;
} ReportFixture;

#define FIXTURE_MB G_GINT64_CONSTANT(1000000)
enum { FIXTURE_COMPUTE, FIXTURE_GATHER };

static inline void
fixture_change(ReportFixture *fx, ZpTime time, int class_id, gint64 delta)
{
    fx->class_bytes[class_id] += delta;
    fx->total_bytes += delta;
    ZpObserverChange change = {.time = time,
                               .delta_bytes = delta,
                               .total_bytes = fx->total_bytes,
                               .class_bytes = fx->class_bytes[class_id],
                               .instr = fx->tape->n_instrs - 1,
                               .class_id = (guint8)class_id,
                               .space = ZP_TAPE_SPACE_DEVICE};
    const ZpObserver *observer = zp_recorder_observer(fx->recorder);
    observer->change(fx->tape, &change, observer->data);
    if (fx->total_bytes > fx->summary.peak_bytes) {
        fx->summary.peak_bytes = fx->total_bytes;
        fx->summary.peak_time = time;
        fx->summary.peak_instr = change.instr;
        memcpy(fx->summary.peak_by_class, fx->class_bytes, sizeof fx->class_bytes);
    }
}

static inline gint32
fixture_alloc(ReportFixture *fx, ZpTime time, guint8 stream, ZpClass class_id, ZpRole role,
              gint64 bytes)
{
    gint32 buffer =
        zp_tape_make(fx->tape, ZP_TAPE_CLOCK_HOST, stream, (guint8)class_id, (guint8)role, bytes);
    fixture_change(fx, time, (int)class_id, bytes);
    return buffer;
}

static inline void
fixture_drop(ReportFixture *fx, ZpTime time, guint8 stream, gint32 buffer)
{
    zp_tape_drop(fx->tape, ZP_TAPE_CLOCK_HOST, stream, buffer);
    fixture_change(fx, time, fx->tape->buffers[buffer].class_id, -fx->tape->buffers[buffer].bytes);
}

static inline void
fixture_launch(ReportFixture *fx, guint8 stream, ZpTapeCategory category, ZpKind kind, ZpTime start,
               ZpTime end, gint64 bytes)
{
    ZpTapeWork work = {.solo_ps = end - start,
                       .bytes = bytes,
                       .wire_bytes = bytes / 8 * 7,
                       .kind = (gint16)kind,
                       .link = ZP_TAPE_NONE,
                       .group = (gint8)(category == ZP_TAPE_COMPUTE ? ZP_TAPE_NONE : 0),
                       .category = (guint8)category,
                       .rule = zp_tape_add_rule(fx->tape, category == ZP_TAPE_COMPUTE
                                                              ? "roofline of the device"
                                                              : "ring inside a node"),
                       .label = ZP_TAPE_NONE};
    zp_tape_launch(fx->tape, stream, zp_tape_add_work(fx->tape, &work));
    ZpObserverSpan span = {start, end, fx->tape->n_instrs - 1, 0};
    const ZpObserver *observer = zp_recorder_observer(fx->recorder);
    observer->span(fx->tape, &span, observer->data);
}

/* Gather 0..2 ms (exposed), compute 2..5; gather of the second unit 3..6 (1 ms exposed), compute
 * 6..8: step 8 ms, exposed 3 ms. */
static inline void
fixture_play(ReportFixture *fx)
{
    ZpTape *tape = fx->tape;
    const ZpTime ms = ZP_TIME_PER_MS;
    zp_tape_add_stream(tape, "compute", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "gather", ZP_TAPE_COMMUNICATION);
    zp_tape_add_group(tape, 8, 1);
    for (int u = 0; u < 2; u++) {
        zp_tape_tag(tape, ZP_PHASE_INIT, ZP_TAPE_NONE,
                    zp_tape_add_unit(tape, fx->unit_table[u].name));
        fixture_alloc(fx, 0, FIXTURE_COMPUTE, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, 25 * FIXTURE_MB);
        fixture_alloc(fx, 0, FIXTURE_COMPUTE, ZP_CLASS_MOMENTUM, ZP_ROLE_OPTIMIZER_STATE,
                      50 * FIXTURE_MB);
    }
    zp_tape_begin_step(tape);
    gint32 gathered[2];
    zp_tape_tag(tape, ZP_PHASE_FORWARD, 0, 0);
    gathered[0] = fixture_alloc(fx, 0, FIXTURE_GATHER, ZP_CLASS_GATHERED, ZP_ROLE_ALL_GATHER,
                                200 * FIXTURE_MB);
    fixture_launch(fx, FIXTURE_GATHER, ZP_TAPE_COMMUNICATION, ZP_KIND_ALL_GATHER, 0, 2 * ms,
                   200 * FIXTURE_MB);
    gint32 kept = fixture_alloc(fx, 2 * ms, FIXTURE_COMPUTE, ZP_CLASS_ACTIVATION, ZP_ROLE_NONE,
                                30 * FIXTURE_MB);
    zp_tape_tag(tape, ZP_PHASE_FORWARD, 0, 1);
    gathered[1] = fixture_alloc(fx, 3 * ms, FIXTURE_GATHER, ZP_CLASS_GATHERED, ZP_ROLE_ALL_GATHER,
                                200 * FIXTURE_MB);
    zp_tape_tag(tape, ZP_PHASE_FORWARD, 0, 0);
    fixture_launch(fx, FIXTURE_COMPUTE, ZP_TAPE_COMPUTE, ZP_KIND_FORWARD, 2 * ms, 5 * ms, 0);
    fixture_drop(fx, 5 * ms, FIXTURE_GATHER, gathered[0]);
    zp_tape_tag(tape, ZP_PHASE_BACKWARD, 0, 1);
    fixture_launch(fx, FIXTURE_GATHER, ZP_TAPE_COMMUNICATION, ZP_KIND_ALL_GATHER, 3 * ms, 6 * ms,
                   200 * FIXTURE_MB);
    fixture_launch(fx, FIXTURE_COMPUTE, ZP_TAPE_COMPUTE, ZP_KIND_BACKWARD, 6 * ms, 8 * ms, 0);
    fixture_drop(fx, 8 * ms, FIXTURE_GATHER, gathered[1]);
    fixture_drop(fx, 8 * ms, FIXTURE_COMPUTE, kept);
}

static inline void
fixture_live(ReportFixture *fx)
{
    /* Buffers in order of allocation: shard, state, shard, state, gathered, kept, gathered. */
    static const gint32 order[] = {4, 6, 1, 3, 5, 0, 2};
    fx->live_set = g_array_new(FALSE, FALSE, sizeof(ZpPlayLive));
    for (gsize i = 0; i < G_N_ELEMENTS(order); i++) {
        ZpPlayLive live = {order[i], fx->tape->buffers[order[i]].class_id};
        g_array_append_val(fx->live_set, live);
    }
}

static inline void
fixture_ledger(ReportFixture *fx)
{
    fx->ledger = (ZpLedger){
        .rows = {{.class_id = ZP_CLASS_PARAMETER,
                  .name = "parameters",
                  .dtype = ZP_DTYPE_BF16,
                  .bytes_per_element = 2,
                  .copies = 1,
                  .owners = 8,
                  .elements = 25000000,
                  .persistent_bytes = 50 * FIXTURE_MB,
                  .evidence = "ZeRO, section 5, \"stage 3\""},
                 {.class_id = ZP_CLASS_MOMENTUM,
                  .name = "momentum",
                  .dtype = ZP_DTYPE_FP32,
                  .bytes_per_element = 4,
                  .copies = 1,
                  .owners = 8,
                  .elements = 25000000,
                  .persistent_bytes = 100 * FIXTURE_MB,
                  .evidence = "torch.optim"}},
        .n_rows = 2,
        .persistent_bytes = 150 * FIXTURE_MB,
        .gathered_bytes = 200 * FIXTURE_MB,
        .prefetched_bytes = 200 * FIXTURE_MB,
        .activation_bytes = 30 * FIXTURE_MB,
        .contingency_bytes = 58 * FIXTURE_MB,
        .total_bytes = 638 * FIXTURE_MB,
        .capacity_bytes = 600 * FIXTURE_MB,
        .headroom_bytes = -38 * FIXTURE_MB,
    };
}

static inline void
fixture_summary(ReportFixture *fx)
{
    ZpStepSummary *s = &fx->summary;
    memcpy(s->persistent_by_class, fx->class_bytes, sizeof fx->class_bytes);
    s->persistent_bytes = fx->total_bytes;
    s->step_ps = s->slowest_rank_ps = s->fastest_rank_ps = 8 * ZP_TIME_PER_MS;
    s->exposed_ps = 3 * ZP_TIME_PER_MS;
    s->busy_ps[ZP_TAPE_COMPUTE] = 5 * ZP_TIME_PER_MS;
    s->busy_ps[ZP_TAPE_COMMUNICATION] = 5 * ZP_TIME_PER_MS;
    s->tokens_per_step = 16384;
    s->model_flops = 1e9;
    s->mfu = 0.125;
    s->capacity_bytes = 700 * FIXTURE_MB;
    s->contingency_bytes = 58 * FIXTURE_MB;
    s->headroom_bytes = s->capacity_bytes - s->peak_bytes - s->contingency_bytes;
    s->fits = TRUE;
    s->first_over_instr = ZP_TAPE_NONE;
    s->traffic[0] = (ZpStepTraffic){ZP_KIND_ALL_GATHER, ZP_PHASE_FORWARD, 1,
                                    200 * FIXTURE_MB,   175 * FIXTURE_MB, 2 * ZP_TIME_PER_MS};
    s->traffic[1] = (ZpStepTraffic){ZP_KIND_ALL_GATHER, ZP_PHASE_BACKWARD, 1,
                                    200 * FIXTURE_MB,   175 * FIXTURE_MB,  3 * ZP_TIME_PER_MS};
    s->n_traffic = 2;
}

static inline void
report_fixture_init(ReportFixture *fx)
{
    static const ZpReportInput inputs[] = {
        {"model", "name", "two, units", "two.ini:2"},
        {"zero", "stage", "3", "--set"},
        {"device", "capacity", "700 MB", "default"},
    };
    static const char *const warnings[] = {"the network's efficiency is assumed", NULL};
    *fx = (ReportFixture){.tape = zp_tape_new(zp_vocabulary_get()),
                          .recorder = zp_recorder_new(),
                          .model = zp_model_new("two-units")};
    fx->model->n_elements = 200000000;
    fx->optimizer = (ZpOptimizer){.name = "sgd"};
    fx->unit_table[0] = (ZpUnit){"block.0", 100000000, 100000000, 100000000, 0, 0};
    fx->unit_table[1] = (ZpUnit){"block.1", 100000000, 100000000, 100000000, 1, 1};
    fx->units = (ZpUnits){.units = fx->unit_table, .n_units = 2};
    fx->job = (ZpJob){.runtime = "ideal",
                      .model = fx->model,
                      .optimizer = &fx->optimizer,
                      .world = {.ranks = 8, .shard_group = 8},
                      .zero = {.stage = 3}};
    fixture_play(fx);
    fixture_live(fx);
    fixture_ledger(fx);
    fixture_summary(fx);
    fx->run = (ZpReportRun){.name = "two units",
                            .source = "scenarios/two.ini",
                            .inputs = inputs,
                            .n_inputs = G_N_ELEMENTS(inputs),
                            .job = &fx->job,
                            .units = &fx->units,
                            .tape = fx->tape,
                            .ledger = &fx->ledger,
                            .summary = &fx->summary,
                            .live_set = fx->live_set,
                            .warnings = warnings};
}

static inline void
report_fixture_clear(ReportFixture *fx)
{
    g_array_unref(fx->live_set);
    zp_recorder_free(fx->recorder);
    zp_tape_free(fx->tape);
    zp_model_free(fx->model);
}

/* A new folder for one test, removed with what is in it by report_fixture_remove(). */
static inline char *
report_fixture_folder(void)
{
    GError *error = NULL;
    char *folder = g_dir_make_tmp("zeropeak-test-XXXXXX", &error);
    g_assert_no_error(error);
    return folder;
}

static inline void
report_fixture_remove(const char *folder)
{
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_assert_cmpint(g_remove(path), ==, 0);
    }
    g_assert_cmpint(g_rmdir(folder), ==, 0);
}

/* Compares with tests/reference/reports/NAME; the program's version stands as @VERSION@ there.
 * With ZP_UPDATE_REFERENCE set the file is written instead, for a review of the difference. */
static inline void
report_fixture_golden(const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(ZP_SOURCE_DIR, "tests/reference/reports", name, NULL);
    g_autoptr(GString) actual = g_string_new(text);
    g_string_replace(actual, "\"" ZP_VERSION "\"", "\"@VERSION@\"", 0);
    g_autoptr(GError) error = NULL;
    if (g_getenv("ZP_UPDATE_REFERENCE") != NULL) {
        g_file_set_contents(path, actual->str, (gssize)actual->len, &error);
        g_assert_no_error(error);
    }
    g_autofree char *expected = NULL;
    g_file_get_contents(path, &expected, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(actual->str, ==, expected);
}
