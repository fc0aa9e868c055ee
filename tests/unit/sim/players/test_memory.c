/* Bytes by class, their sum and the peak. */
#include "sim/players/memory.h"

static void
test_peak(void)
{
    ZpMemory memory;
    zp_memory_init(&memory, 0);
    g_assert_cmpint(memory.peak_instr, ==, ZP_TAPE_NONE);
    zp_memory_change(&memory, 0, 100, 10, 1);
    zp_memory_change(&memory, 1, 50, 20, 2); /* the peak: 150 */
    zp_memory_change(&memory, 0, -100, 30, 3);
    zp_memory_change(&memory, 1, 100, 40, 4); /* 150 again: not the first */
    g_assert_cmpint(memory.total_bytes, ==, 150);
    g_assert_cmpint(memory.peak_bytes, ==, 150);
    g_assert_cmpint(memory.peak_time, ==, 20);
    g_assert_cmpint(memory.peak_instr, ==, 2);
    g_assert_cmpint(memory.peak_change, ==, 2);
    g_assert_cmpint(memory.n_changes, ==, 4);
    g_assert_cmpint(memory.peak_bytes_by_class[0], ==, 100);
    g_assert_cmpint(memory.peak_bytes_by_class[1], ==, 50);
    g_assert_cmpint(memory.class_peak_bytes[0], ==, 100);
    g_assert_cmpint(memory.class_peak_bytes[1], ==, 150);
    g_assert_cmpint(memory.bytes[1], ==, 150);
    g_assert_cmpint(memory.first_over_instr, ==, ZP_TAPE_NONE);
}

static void
test_retag(void)
{
    ZpMemory memory;
    zp_memory_init(&memory, 0);
    zp_memory_change(&memory, 0, 100, 0, 0);
    zp_memory_retag(&memory, 0, 2, 60, 5, 1);
    g_assert_cmpint(memory.bytes[0], ==, 40);
    g_assert_cmpint(memory.bytes[2], ==, 60);
    g_assert_cmpint(memory.class_peak_bytes[2], ==, 60);
    g_assert_cmpint(memory.total_bytes, ==, 100);
    g_assert_cmpint(memory.peak_instr, ==, 0);
    g_assert_cmpint(memory.peak_bytes_by_class[0], ==, 100); /* as it was at the peak */
    g_assert_cmpint(memory.n_changes, ==, 2);
}

static void
test_capacity(void)
{
    ZpMemory memory;
    zp_memory_init(&memory, 100);
    zp_memory_change(&memory, 0, 100, 1, 1); /* full is not over */
    g_assert_cmpint(memory.first_over_instr, ==, ZP_TAPE_NONE);
    zp_memory_change(&memory, 0, 1, 2, 2);
    zp_memory_change(&memory, 0, -50, 3, 3);
    zp_memory_change(&memory, 0, 500, 4, 4); /* counting goes on, the first time stays */
    g_assert_cmpint(memory.first_over_instr, ==, 2);
    g_assert_cmpint(memory.first_over_time, ==, 2);
    g_assert_cmpint(memory.peak_bytes, ==, 551);
}

static void
test_negative(void)
{
    if (g_test_subprocess()) {
        ZpMemory memory;
        zp_memory_init(&memory, 0);
        zp_memory_change(&memory, 0, 100, 0, 0);
        zp_memory_change(&memory, 1, -1, 0, 1);
        return;
    }
    g_test_trap_subprocess(NULL, 0, G_TEST_SUBPROCESS_DEFAULT);
    g_test_trap_assert_failed();
    g_test_trap_assert_stderr("*assertion failed*");
}

static void
test_random(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(5);
    ZpMemory memory;
    zp_memory_init(&memory, 0);
    gint64 peak = 0;
    for (int k = 0; k < 10000; k++) {
        guint8 class_id = (guint8)g_rand_int_range(rand, 0, ZP_TAPE_MAX_CLASSES);
        gint64 bytes = g_rand_int_range(rand, 0, 1000);
        if (g_rand_boolean(rand) && memory.bytes[class_id] >= bytes)
            bytes = -bytes;
        zp_memory_change(&memory, class_id, bytes, k, k);
        gint64 sum = 0, peak_sum = 0;
        for (int c = 0; c < ZP_TAPE_MAX_CLASSES; c++) {
            sum += memory.bytes[c];
            peak_sum += memory.peak_bytes_by_class[c];
            g_assert_cmpint(memory.peak_bytes_by_class[c], <=, memory.class_peak_bytes[c]);
        }
        peak = MAX(peak, sum);
        g_assert_cmpint(sum, ==, memory.total_bytes);
        g_assert_cmpint(peak, ==, memory.peak_bytes);
        g_assert_cmpint(peak_sum, ==, peak);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory/peak", test_peak);
    g_test_add_func("/memory/retag", test_retag);
    g_test_add_func("/memory/capacity", test_capacity);
    g_test_add_func("/memory/negative-class-aborts", test_negative);
    g_test_add_func("/memory/random", test_random);
    return g_test_run();
}
