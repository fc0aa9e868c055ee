/* What the host does behind a launch stands behind the kernel; the device's own clock is kept. */
#include "models/words/vocabulary.h"
#include "reports/store/recorder.h"

typedef struct {
    ZpTape *tape;
    gint32 before, kernel, behind, of_device;
} Fixture;

static void
setup(Fixture *fx, gconstpointer unused G_GNUC_UNUSED)
{
    fx->tape = zp_tape_new(zp_vocabulary_get());
    zp_tape_add_stream(fx->tape, "compute", ZP_TAPE_COMPUTE);
    ZpTapeWork work = {.solo_ps = 4900,
                       .kind = ZP_KIND_FORWARD,
                       .link = ZP_TAPE_NONE,
                       .group = ZP_TAPE_NONE,
                       .category = ZP_TAPE_COMPUTE,
                       .label = ZP_TAPE_NONE};
    zp_tape_make(fx->tape, ZP_TAPE_CLOCK_HOST, 0, ZP_CLASS_ACTIVATION, ZP_ROLE_NONE, 10);
    fx->before = fx->tape->n_instrs - 1;
    zp_tape_launch(fx->tape, 0, zp_tape_add_work(fx->tape, &work));
    fx->kernel = fx->tape->n_instrs - 1;
    zp_tape_make(fx->tape, ZP_TAPE_CLOCK_HOST, 0, ZP_CLASS_ACTIVATION, ZP_ROLE_NONE, 10);
    fx->behind = fx->tape->n_instrs - 1;
    zp_tape_make(fx->tape, ZP_TAPE_CLOCK_DEVICE, 0, ZP_CLASS_ACTIVATION, ZP_ROLE_NONE, 10);
    fx->of_device = fx->tape->n_instrs - 1;
}

static void
teardown(Fixture *fx, gconstpointer unused G_GNUC_UNUSED)
{
    zp_tape_free(fx->tape);
}

static void
test_settle(Fixture *fx, gconstpointer unused G_GNUC_UNUSED)
{
    g_autoptr(ZpRecorder) recorder = zp_recorder_new();
    const ZpObserver *observer = zp_recorder_observer(recorder);
    const gint32 instrs[] = {fx->before, fx->behind, fx->of_device};
    for (int i = 0; i < 3; i++) {
        ZpObserverChange change = {.time = i + 1, .delta_bytes = 10, .instr = instrs[i]};
        observer->change(fx->tape, &change, observer->data);
    }
    ZpObserverPools pools = {.time = 2, .instr = fx->behind};
    observer->pools(fx->tape, &pools, observer->data);
    ZpObserverSpan span = {.start = 100, .end = 5000, .instr = fx->kernel};
    observer->span(fx->tape, &span, observer->data);
    zp_recorder_settle(recorder, fx->tape);
    gsize n;
    const ZpObserverChange *changes = zp_recorder_changes(recorder, &n);
    g_assert_cmpuint(n, ==, 3);
    g_assert_cmpint(changes[0].time, ==, 1);
    g_assert_cmpint(changes[1].time, ==, 5000);
    g_assert_cmpint(changes[2].time, ==, 3);
    g_assert_cmpint(zp_recorder_pools(recorder, &n)[0].time, ==, 5000);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/recorder/settle", Fixture, NULL, setup, test_settle, teardown);
    return g_test_run();
}
