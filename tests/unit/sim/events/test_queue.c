/* The event queue against a plain sorted list. */
#include "sim/events/queue.h"

typedef struct {
    ZpTime time;
    guint32 payload;
    gint64 order;
} Entry;

static int
compare_entries(gconstpointer a, gconstpointer b)
{
    const Entry *x = a, *y = b;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static void
test_ties(void)
{
    /* More than the sorted array holds, so that both layouts see ties. */
    ZpQueue queue;
    zp_queue_init(&queue);
    for (guint32 i = 0; i < 100; i++)
        zp_queue_push(&queue, 5 - i % 2, 1000 - i);
    ZpTime time;
    guint32 payload;
    for (guint32 i = 0; i < 100; i++) {
        g_assert_cmpint(zp_queue_next_time(&queue), ==, i < 50 ? 4 : 5);
        g_assert_true(zp_queue_pop(&queue, &time, &payload));
        g_assert_cmpint(time, ==, i < 50 ? 4 : 5);
        g_assert_cmpuint(payload, ==, 1000 - (i < 50 ? 2 * i + 1 : 2 * (i - 50)));
    }
    g_assert_false(zp_queue_pop(&queue, &time, &payload));
    g_assert_cmpint(zp_queue_next_time(&queue), ==, ZP_TIME_MAX);
    zp_queue_clear(&queue);
}

/* Pushes and pops at random around a number of pending entries; `start` is the first sequence. */
static void
play_against_list(gint32 around, guint32 start, guint32 seed)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(seed);
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(Entry));
    ZpQueue queue;
    zp_queue_init(&queue);
    queue.sequence = start;
    gint64 order = 0;
    ZpTime now = 0;
    for (int k = 0; k < 6000; k++) {
        gint32 bias = (gint32)list->len < around ? 70 : 30;
        if (g_rand_int_range(rand, 0, 100) < bias) {
            Entry entry = {now + g_rand_int_range(rand, 0, 20), g_rand_int(rand), order++};
            zp_queue_push(&queue, entry.time, entry.payload);
            g_array_append_val(list, entry);
        } else if (list->len > 0) {
            g_array_sort(list, compare_entries);
            Entry expected = g_array_index(list, Entry, 0);
            g_array_remove_index(list, 0);
            ZpTime time;
            guint32 payload;
            if (g_rand_boolean(rand))
                g_assert_cmpint(zp_queue_next_time(&queue), ==, expected.time);
            g_assert_true(zp_queue_pop(&queue, &time, &payload));
            g_assert_cmpint(time, ==, expected.time);
            g_assert_cmpuint(payload, ==, expected.payload);
            now = time;
        }
        g_assert_cmpuint(queue.n, ==, list->len);
    }
    zp_queue_clear(&queue);
}

static void
test_order(void)
{
    static const gint32 around[] = {1, 5, 12, 24, 25, 30, 200};
    for (guint32 i = 0; i < G_N_ELEMENTS(around); i++)
        play_against_list(around[i], 0, 100 + i);
}

/* The sequence wraps in the middle: ties keep their order. */
static void
test_wrap(void)
{
    static const gint32 around[] = {1, 12, 24, 200};
    for (guint32 i = 0; i < G_N_ELEMENTS(around); i++)
        for (guint32 k = 1; k < 3000; k += 701)
            play_against_list(around[i], G_MAXUINT32 - k, 200 + i);
}

static void
test_reset(void)
{
    for (guint32 n = 1; n < 100; n += 7) {
        ZpQueue queue;
        zp_queue_init(&queue);
        ZpTime time;
        guint32 payload;
        for (int round = 0; round < 3; round++) {
            for (guint32 i = 0; i < n; i++)
                zp_queue_push(&queue, 1000 - i, i);
            zp_queue_pop(&queue, &time, &payload); /* perhaps with a hole */
            zp_queue_reset(&queue);
            g_assert_cmpint(zp_queue_next_time(&queue), ==, ZP_TIME_MAX);
            for (guint32 i = 0; i < n; i++)
                zp_queue_push(&queue, 7, i);
            for (guint32 i = 0; i < n; i++) {
                g_assert_true(zp_queue_pop(&queue, &time, &payload));
                g_assert_cmpuint(payload, ==, i);
            }
            zp_queue_reset(&queue);
        }
        zp_queue_clear(&queue);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/queue/ties-in-issue-order", test_ties);
    g_test_add_func("/queue/order", test_order);
    g_test_add_func("/queue/sequence-wraps", test_wrap);
    g_test_add_func("/queue/reset", test_reset);
    return g_test_run();
}
