/* What recording costs: a step of 80 units (about 2,500 rows), and points of a sweep. */
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <stdio.h>

#include "reports/store/store.h"

#define N_UNITS 80

typedef struct {
    ZpTape *tape;
    ZpRecorder *recorder;
    ZpModel *model;
    ZpUnits units;
    ZpJob job;
    ZpLedger ledger;
    ZpStepSummary summary;
    GArray *live_set;
    ZpReportRun run;
    gint64 bytes[ZP_N_CLASSES], total_bytes;
    ZpTime now;
} Fake;

static void
change(Fake *fake, int class_id, gint64 delta)
{
    fake->bytes[class_id] += delta;
    fake->total_bytes += delta;
    ZpObserverChange c = {.time = fake->now,
                          .delta_bytes = delta,
                          .total_bytes = fake->total_bytes,
                          .class_bytes = fake->bytes[class_id],
                          .instr = fake->tape->n_instrs - 1,
                          .class_id = (guint8)class_id};
    const ZpObserver *observer = zp_recorder_observer(fake->recorder);
    observer->change(fake->tape, &c, observer->data);
}

static gint32
make(Fake *fake, ZpClass class_id, gint64 bytes)
{
    gint32 buffer = zp_tape_make(fake->tape, ZP_TAPE_CLOCK_HOST, 0, (guint8)class_id, 0, bytes);
    change(fake, (int)class_id, bytes);
    return buffer;
}

static void
drop(Fake *fake, gint32 buffer)
{
    zp_tape_drop(fake->tape, ZP_TAPE_CLOCK_HOST, 0, buffer);
    change(fake, fake->tape->buffers[buffer].class_id, -fake->tape->buffers[buffer].bytes);
}

static void
launch(Fake *fake, guint8 stream, ZpKind kind, ZpTapeCategory category, ZpTime duration)
{
    ZpTapeWork work = {.solo_ps = duration,
                       .bytes = stream == 0 ? 0 : 1000000,
                       .kind = (gint16)kind,
                       .category = (guint8)category,
                       .link = ZP_TAPE_NONE,
                       .group = ZP_TAPE_NONE,
                       .label = ZP_TAPE_NONE};
    zp_tape_launch(fake->tape, stream, zp_tape_add_work(fake->tape, &work));
    ZpObserverSpan span = {fake->now, fake->now + duration, fake->tape->n_instrs - 1, 0};
    const ZpObserver *observer = zp_recorder_observer(fake->recorder);
    observer->span(fake->tape, &span, observer->data);
    fake->now += duration;
}

/* Per unit: gather, compute and free, forward and backward; gradient reduced. */
static void
play(Fake *fake)
{
    ZpTape *tape = fake->tape;
    zp_tape_add_stream(tape, "compute", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "communication", ZP_TAPE_COMMUNICATION);
    for (gint32 u = 0; u < N_UNITS; u++) {
        zp_tape_tag(tape, ZP_PHASE_INIT, ZP_TAPE_NONE,
                    zp_tape_add_unit(tape, fake->units.units[u].name));
        for (int c = ZP_CLASS_PARAMETER; c <= ZP_CLASS_VARIANCE; c++)
            make(fake, (ZpClass)c, 1000000 * (c + 1));
    }
    zp_tape_begin_step(tape);
    gint32 kept[N_UNITS];
    for (gint32 i = 0; i < 2 * N_UNITS; i++) {
        gboolean backward = i >= N_UNITS;
        gint32 u = backward ? 2 * N_UNITS - 1 - i : i;
        zp_tape_tag(tape, backward ? ZP_PHASE_BACKWARD : ZP_PHASE_FORWARD, 0, u);
        gint32 gathered = make(fake, ZP_CLASS_GATHERED, 100000000);
        launch(fake, 1, ZP_KIND_ALL_GATHER, ZP_TAPE_COMMUNICATION, ZP_TIME_PER_MS);
        gint32 workspace = make(fake, ZP_CLASS_WORKSPACE, 5000000);
        if (!backward)
            kept[u] = make(fake, ZP_CLASS_ACTIVATION, 50000000);
        launch(fake, 0, backward ? ZP_KIND_BACKWARD : ZP_KIND_FORWARD, ZP_TAPE_COMPUTE,
               2 * ZP_TIME_PER_MS);
        drop(fake, workspace);
        if (backward) {
            gint32 bucket = make(fake, ZP_CLASS_COMMUNICATION, 100000000);
            launch(fake, 1, ZP_KIND_REDUCE_SCATTER, ZP_TAPE_COMMUNICATION, ZP_TIME_PER_MS);
            drop(fake, bucket);
            drop(fake, kept[u]);
        }
        drop(fake, gathered);
        launch(fake, 0, ZP_KIND_MEMORY, ZP_TAPE_COMPUTE, ZP_TIME_PER_US);
    }
}

static void
fake_init(Fake *fake)
{
    *fake = (Fake){.tape = zp_tape_new(zp_vocabulary_get()),
                   .recorder = zp_recorder_new(),
                   .model = zp_model_new("fake"),
                   .live_set = g_array_new(FALSE, FALSE, sizeof(ZpPlayLive))};
    fake->units = (ZpUnits){.units = g_new0(ZpUnit, N_UNITS), .n_units = N_UNITS};
    for (int u = 0; u < N_UNITS; u++) {
        g_autofree char *name = g_strdup_printf("block.%d", u);
        fake->units.units[u].name = g_intern_string(name);
    }
    fake->job = (ZpJob){.runtime = "ideal", .model = fake->model};
    play(fake);
    for (gint32 b = 0; b < 5 * N_UNITS; b++) {
        ZpPlayLive live = {b, fake->tape->buffers[b].class_id};
        g_array_append_val(fake->live_set, live);
    }
    fake->summary = (ZpStepSummary){.step_ps = fake->now, .peak_bytes = 1, .first_over_instr = -1};
    for (int c = 0; c < 10; c++)
        fake->summary.peak_by_class[c] = 1000 + c;
    fake->run = (ZpReportRun){.name = "bench",
                              .job = &fake->job,
                              .units = &fake->units,
                              .tape = fake->tape,
                              .ledger = &fake->ledger,
                              .summary = &fake->summary,
                              .live_set = fake->live_set};
}

static double
now_ms(void)
{
    return (double)g_get_monotonic_time() / 1e3;
}

static double
median(GArray *times)
{
    for (guint i = 1; i < times->len; i++) {
        for (guint j = i;
             j > 0 && g_array_index(times, double, j) < g_array_index(times, double, j - 1); j--) {
            double t = g_array_index(times, double, j);
            g_array_index(times, double, j) = g_array_index(times, double, j - 1);
            g_array_index(times, double, j - 1) = t;
        }
    }
    return g_array_index(times, double, times->len / 2);
}

/* Opening, writing one run and closing, as the command does. */
static double
record_runs(const Fake *fake, const char *path, int repeats)
{
    g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(double));
    for (int i = 0; i < repeats; i++) {
        g_autoptr(GError) error = NULL;
        double start = now_ms();
        g_autoptr(ZpStore) store = zp_store_open(path, ZP_STORE_APPEND, &error);
        if (store == NULL || zp_store_add_run(store, &fake->run, fake->recorder, &error) < 0)
            g_error("%s", error->message);
        g_clear_pointer(&store, zp_store_free);
        double ms = now_ms() - start;
        g_array_append_val(times, ms);
    }
    return median(times);
}

static double
record_sweep(const Fake *fake, const char *path, int n_points)
{
    static const char *const axes[] = {"zero.stage", "world.ranks", "training.micro_batch"};
    static const char *const values[] = {"3", "64", "1"};
    g_autoptr(GError) error = NULL;
    ZpReportSweep sweep = {.name = "bench", .axes = axes, .n_axes = 3};
    ZpReportPoint point = {values, &fake->summary, NULL};
    double start = now_ms();
    g_autoptr(ZpStore) store = zp_store_open(path, ZP_STORE_APPEND, &error);
    gboolean ok = store != NULL && zp_store_begin_sweep(store, &sweep, &error) > 0;
    for (int i = 0; ok && i < n_points; i++)
        ok = zp_store_add_point(store, &point, &error);
    if (!ok || !zp_store_end_sweep(store, &error))
        g_error("%s", error->message);
    return now_ms() - start;
}

int
main(int argc, char **argv)
{
    Fake fake;
    fake_init(&fake);
    g_autofree char *folder = argc > 1 ? g_strdup(argv[1]) : g_dir_make_tmp("bench-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "bench.db", NULL);
    gsize n_spans, n_changes;
    zp_recorder_spans(fake.recorder, &n_spans);
    zp_recorder_changes(fake.recorder, &n_changes);
    double first = record_runs(&fake, path, 1);
    double ms = record_runs(&fake, path, 50);
    printf("recording a step of %d units, %zu operations and %zu memory changes: %.2f ms "
           "(target 3.00, ratio %.2f); into a new file %.2f ms\n",
           N_UNITS, n_spans, n_changes, ms, ms / 3.0, first);
    double sweep_ms = record_sweep(&fake, path, 10000);
    printf("10,000 sweep points: %.0f ms (target 500, ratio %.2f)\n", sweep_ms, sweep_ms / 500.0);
    g_remove(path);
    if (argc == 1)
        g_rmdir(folder);
    g_array_unref(fake.live_set);
    g_free(fake.units.units);
    zp_recorder_free(fake.recorder);
    zp_tape_free(fake.tape);
    zp_model_free(fake.model);
    return 0;
}
