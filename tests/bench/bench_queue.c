/* The event queue under the hold model: take the earliest, put it back a random time later. */
#include "sim/events/queue.h"

#include <stdio.h>

typedef struct {
    guint32 n;
    double target; /* millions of events per second, 0: none */
} Case;

static inline guint64
next_random(guint64 *state)
{
    guint64 x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x;
}

/* Millions of holds per second.  With `ties` increments are one of four. */
static double
hold(guint32 n, gboolean ties, ZpTime *last)
{
    enum { TABLE = 1 << 16 }; /* longer than a branch predictor remembers */
    static ZpTime increments[TABLE];
    guint64 state = 88172645463325252u;
    for (guint32 i = 0; i < TABLE; i++)
        increments[i] = 1 + (ZpTime)(next_random(&state) % (ties ? 4 : 1000000));
    ZpQueue queue;
    zp_queue_init(&queue);
    for (guint32 i = 0; i < n; i++)
        zp_queue_push(&queue, increments[i % TABLE], i);
    gint64 n_holds = 5000000, began = 0;
    ZpTime time = 0;
    guint32 payload = 0;
    for (gint64 k = -(gint64)n; k < n_holds; k++) {
        if (k == 0)
            began = g_get_monotonic_time();
        zp_queue_pop(&queue, &time, &payload);
        zp_queue_push(&queue, time + increments[k & (TABLE - 1)], payload);
    }
    double us = (double)(g_get_monotonic_time() - began);
    *last = time;
    zp_queue_clear(&queue);
    return (double)n_holds / us;
}

int
main(void)
{
    static const Case cases[] = {{1, 40},    {4, 40},    {16, 40},   {64, 0},
                                 {1000, 10}, {10000, 0}, {100000, 5}};
    printf("%9s %12s %8s %12s %12s\n", "pending", "M events/s", "target", "with ties",
           "cost of ties");
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        ZpTime last;
        double spread = hold(cases[i].n, FALSE, &last), tied = hold(cases[i].n, TRUE, &last);
        printf("%9u %12.1f %8.0f %12.1f %12.2f\n", cases[i].n, spread, cases[i].target, tied,
               spread / tied);
    }
    printf("targets: M events/s as listed (0: none), cost of ties at most 1.5\n");
    return 0;
}
