/* The tape: what the checker refuses, one rule at a time, and what the dump prints. */
#include "sim/tape/tape.h"
#include "tests/random_tape.h"

enum { PERSISTENT = 1u << 0 };

/* A correct tape that every test breaks in one place. */
static ZpTape *
make_tape(void)
{
    ZpTape *tape = zp_tape_new(&random_words);
    zp_tape_add_stream(tape, "compute", ZP_TAPE_COMPUTE);
    zp_tape_add_stream(tape, "gather", ZP_TAPE_COMMUNICATION);
    zp_tape_add_link(tape, "network");
    zp_tape_add_group(tape, 8, 1);
    zp_tape_add_label(tape, "whole");
    zp_tape_make(tape, ZP_TAPE_CLOCK_HOST, 0, 0, 0, 1000); /* 0: persistent */
    zp_tape_begin_step(tape);
    zp_tape_tag(tape, 0, 0, zp_tape_add_unit(tape, "layers.0"));
    gint32 buffer = zp_tape_make(tape, ZP_TAPE_CLOCK_DEVICE, 1, 2, 1, 64); /* 1 */
    ZpTapeWork gather = {.solo_ps = 10, .bytes = 512, .kind = 1, .category = ZP_TAPE_COMMUNICATION};
    zp_tape_launch(tape, 1, zp_tape_add_work(tape, &gather)); /* 2 */
    gint32 event = zp_tape_record(tape, 1);                   /* 3 */
    zp_tape_wait(tape, 0, event);                             /* 4 */
    ZpTapeWork kernel = {
        .solo_ps = 5, .link = ZP_TAPE_NONE, .group = ZP_TAPE_NONE, .label = ZP_TAPE_NONE};
    zp_tape_launch(tape, 0, zp_tape_add_work(tape, &kernel));   /* 5 */
    zp_tape_use(tape, 0, buffer);                               /* 6 */
    zp_tape_retag(tape, ZP_TAPE_CLOCK_DEVICE, 0, buffer, 1, 0); /* 7 */
    zp_tape_tag(tape, 1, ZP_TAPE_NONE, ZP_TAPE_NONE);
    zp_tape_free_buffer(tape, ZP_TAPE_CLOCK_DEVICE, 0, buffer); /* 8 */
    zp_tape_sync(tape, event);                                  /* 9 */
    return tape;
}

static void
assert_fails(const ZpTape *tape, ZpTapeError code, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_assert_false(zp_tape_check(tape, TRUE, PERSISTENT, &error));
    g_assert_error(error, ZP_TAPE_ERROR, (gint)code);
    g_assert_cmpstr(error->message, ==, message);
}

static void
test_valid(void)
{
    g_autoptr(ZpTape) tape = make_tape();
    g_autoptr(GError) error = NULL;
    g_assert_true(zp_tape_check(tape, TRUE, PERSISTENT, &error));
    g_assert_no_error(error);
    g_autoptr(ZpTape) empty = zp_tape_new(&random_words);
    g_assert_true(zp_tape_check(empty, TRUE, 0, &error));
}

static void
test_buffers(void)
{
    g_autoptr(ZpTape) twice = make_tape();
    zp_tape_free_buffer(twice, ZP_TAPE_CLOCK_HOST, 0, 1);
    assert_fails(twice, ZP_TAPE_ERROR_BUFFER, "instruction 10: already freed: buffer 1");
    g_autoptr(ZpTape) early = make_tape();
    early->instrs[1].op = ZP_TAPE_FREE;
    assert_fails(early, ZP_TAPE_ERROR_BUFFER, "instruction 1: not allocated yet: buffer 1");
    g_autoptr(ZpTape) again = make_tape();
    zp_tape_alloc(again, ZP_TAPE_CLOCK_HOST, 0, 0);
    assert_fails(again, ZP_TAPE_ERROR_BUFFER, "instruction 10: second allocation of buffer 0");
    g_autoptr(ZpTape) reborn = make_tape();
    zp_tape_alloc(reborn, ZP_TAPE_CLOCK_HOST, 0, 1);
    assert_fails(reborn, ZP_TAPE_ERROR_BUFFER, "instruction 10: second allocation of buffer 1");
    g_autoptr(ZpTape) dead = make_tape();
    zp_tape_use(dead, 0, 1);
    assert_fails(dead, ZP_TAPE_ERROR_BUFFER, "instruction 10: already freed: buffer 1");
}

static void
test_events(void)
{
    g_autoptr(ZpTape) never = make_tape();
    zp_tape_wait(never, 0, zp_tape_add_event(never));
    assert_fails(never, ZP_TAPE_ERROR_EVENT,
                 "instruction 10: wait for an event not recorded yet: 1");
    g_autoptr(ZpTape) early = make_tape();
    early->instrs[2] = early->instrs[9];
    assert_fails(early, ZP_TAPE_ERROR_EVENT,
                 "instruction 2: wait for an event not recorded yet: 0");
    g_autoptr(ZpTape) twice = make_tape();
    twice->instrs[4].op = ZP_TAPE_RECORD;
    assert_fails(twice, ZP_TAPE_ERROR_EVENT, "instruction 4: second record of event 0");
    g_autoptr(ZpTape) none = make_tape();
    none->instrs[9].a = 1;
    assert_fails(none, ZP_TAPE_ERROR_RANGE, "instruction 9: no such event 1");
}

static void
test_ranges(void)
{
    static const char *const of_work =
        "instruction 2: link, group, label, rule, category or kind of work 0";
#define BREAK(place, value, message)                      \
    {                                                     \
        g_autoptr(ZpTape) tape = make_tape();             \
        tape->place = value;                              \
        assert_fails(tape, ZP_TAPE_ERROR_RANGE, message); \
    }
    BREAK(instrs[1].a, 2, "instruction 1: no such buffer 2")
    BREAK(instrs[1].a, -1, "instruction 1: no such buffer -1")
    BREAK(instrs[1].clock, 2, "instruction 1: no such clock 2")
    BREAK(instrs[1].stream, 2, "instruction 1: no such stream 2")
    BREAK(instrs[1].phase, 2, "instruction 1: no such phase 2")
    BREAK(instrs[1].unit, 1, "instruction 1: no such unit 1")
    BREAK(instrs[1].unit, -2, "instruction 1: no such unit -2")
    BREAK(instrs[2].a, 2, "instruction 2: no such work 2")
    BREAK(instrs[3].op, 8, "instruction 3: no such operation 8")
    BREAK(instrs[7].b, 3, "instruction 7: no such class 3")
    BREAK(instrs[7].b, 2 << 8, "instruction 7: no such role 2")
    BREAK(instrs[9].stream, 16, "instruction 9: no such stream 16")
    BREAK(buffers[1].bytes, -1, "instruction 1: negative bytes in buffer 1")
    BREAK(buffers[1].bytes, G_MAXINT64,
          "instruction 1: all bytes together pass int64 with buffer 1")
    BREAK(buffers[1].class_id, 3, "instruction 1: class, role or space of buffer 1")
    BREAK(buffers[1].role, 2, "instruction 1: class, role or space of buffer 1")
    BREAK(buffers[1].space, 2, "instruction 1: class, role or space of buffer 1")
    BREAK(works[0].solo_ps, -1, "instruction 2: negative time or bytes in work 0")
    BREAK(works[0].fixed_ps, -1, "instruction 2: negative time or bytes in work 0")
    BREAK(works[0].bytes, -1, "instruction 2: negative time or bytes in work 0")
    BREAK(works[0].wire_bytes, -1, "instruction 2: negative time or bytes in work 0")
    BREAK(works[0].link, 1, of_work)
    BREAK(works[0].link, -2, of_work)
    BREAK(works[0].group, 1, of_work)
    BREAK(works[0].group, -2, of_work)
    BREAK(works[0].label, 1, of_work)
    BREAK(works[0].rule, 1, of_work)
    BREAK(works[0].category, ZP_TAPE_N_CATEGORIES, of_work)
    BREAK(works[0].kind, 3, of_work)
    BREAK(step_begin[0], 11, "instruction 11: no beginning of step 0")
#undef BREAK
}

static void
test_rules(void)
{
    g_autoptr(ZpTape) tape = make_tape();
    g_assert_null(zp_tape_rule(tape, &tape->works[0]));
    g_assert_cmpint(zp_tape_add_rule(tape, NULL), ==, 0);
    g_autofree char *copy = g_strdup("by table");
    tape->works[0].rule = zp_tape_add_rule(tape, "by table");
    g_assert_cmpint(zp_tape_add_rule(tape, "by formula"), !=, tape->works[0].rule);
    g_assert_cmpint(zp_tape_add_rule(tape, copy), ==, tape->works[0].rule);
    g_assert_cmpstr(zp_tape_rule(tape, &tape->works[0]), ==, "by table");
    g_assert_true(zp_tape_check(tape, TRUE, PERSISTENT, NULL));
    zp_tape_clear(tape);
    g_assert_cmpint(tape->rules->len, ==, 0);
}

static void
test_leaks(void)
{
    g_autoptr(ZpTape) tape = make_tape();
    gint32 kept = zp_tape_make(tape, ZP_TAPE_CLOCK_HOST, 0, 2, 0, 8);
    assert_fails(tape, ZP_TAPE_ERROR_LEAK, "instruction 11: outlives its step: buffer 2");
    g_assert_true(zp_tape_check(tape, FALSE, 0, NULL));
    /* Retagged to a persistent class it may stay. */
    zp_tape_retag(tape, ZP_TAPE_CLOCK_HOST, 0, kept, 0, 0);
    g_assert_true(zp_tape_check(tape, TRUE, PERSISTENT, NULL));
    /* Freed one step too late, and steps without instructions in between. */
    g_autoptr(ZpTape) late = make_tape();
    gint32 lent = zp_tape_make(late, ZP_TAPE_CLOCK_HOST, 0, 2, 0, 8);
    zp_tape_begin_step(late);
    zp_tape_begin_step(late);
    zp_tape_free_buffer(late, ZP_TAPE_CLOCK_HOST, 0, lent);
    assert_fails(late, ZP_TAPE_ERROR_LEAK, "instruction 11: outlives its step: buffer 2");
    g_autoptr(ZpTape) last = make_tape();
    zp_tape_begin_step(last);
    zp_tape_begin_step(last);
    zp_tape_make(last, ZP_TAPE_CLOCK_HOST, 0, 2, 0, 8);
    assert_fails(last, ZP_TAPE_ERROR_LEAK, "instruction 11: outlives its step: buffer 2");
}

static void
test_dump(void)
{
    g_autoptr(ZpTape) tape = make_tape();
    g_autoptr(GString) out = g_string_new(NULL);
    zp_tape_dump(tape, out);
    g_assert_cmpstr(out->str, ==,
                    "forward   -                  alloc compute (host) b0 1000 parameter\n"
                    "step 0\n"
                    "forward   layers.0           mb0 alloc gather b1 64 activation\n"
                    "forward   layers.0           mb0 launch gather allgather 512 group=8x1\n"
                    "forward   layers.0           mb0 record gather e0\n"
                    "forward   layers.0           mb0 wait compute e0\n"
                    "forward   layers.0           mb0 launch compute gemm\n"
                    "forward   layers.0           mb0 use compute b1\n"
                    "forward   layers.0           mb0 retag compute b1 gradient\n"
                    "backward  -                  free compute b1\n"
                    "backward  -                  sync host e0\n");
}

static void
test_clear(void)
{
    g_autoptr(ZpTape) tape = make_tape();
    zp_tape_clear(tape);
    g_assert_cmpint(tape->n_instrs, ==, 0);
    g_assert_cmpint(tape->unit, ==, ZP_TAPE_NONE);
    g_autoptr(GString) out = g_string_new(NULL);
    zp_tape_dump(tape, out);
    g_assert_cmpstr(out->str, ==, "");
    g_assert_cmpint(zp_tape_make(tape, ZP_TAPE_CLOCK_HOST, 0, 0, 0, 0), ==, ZP_TAPE_NONE);
    zp_tape_drop(tape, ZP_TAPE_CLOCK_HOST, 0, ZP_TAPE_NONE);
    g_assert_cmpint(tape->n_instrs, ==, 0);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tape/valid", test_valid);
    g_test_add_func("/tape/buffers", test_buffers);
    g_test_add_func("/tape/events", test_events);
    g_test_add_func("/tape/ranges", test_ranges);
    g_test_add_func("/tape/rules", test_rules);
    g_test_add_func("/tape/leaks", test_leaks);
    g_test_add_func("/tape/dump", test_dump);
    g_test_add_func("/tape/clear", test_clear);
    return g_test_run();
}
