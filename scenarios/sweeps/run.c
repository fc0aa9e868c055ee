#include "scenarios/sweeps/sweep.h"

#include "models/ledger/checks.h"

/* Points a thread takes at a time: few enough to balance, enough to keep the counter cold. */
#define CHUNK 16

typedef struct {
    const ZpSweep *sweep;
    ZpSweepRunResult *result;
    const volatile gint *cancelled;
    gint next; /* chunk */
    gint done; /* points */
    gint stop;
    GMutex lock;
    GError *error; /* first failure that stops the sweep; under lock */
} Pool;

void
zp_sweep_run_clear(ZpSweepRunResult *result)
{
    for (gint64 i = 0; i < result->n_points; i++)
        g_free(result->points[i].error);
    g_clear_pointer(&result->points, g_free);
    result->n_points = 0;
}

static gboolean
stops_sweep(const GError *error)
{
    return error->domain == ZP_CHECKS_ERROR ||
           g_error_matches(error, ZP_STEP_ERROR, ZP_STEP_ERROR_CHECK) ||
           g_error_matches(error, ZP_STEP_ERROR, ZP_STEP_ERROR_CANCELLED);
}

static void
fail_sweep(Pool *pool, GError *error)
{
    g_mutex_lock(&pool->lock);
    if (pool->error == NULL)
        pool->error = error;
    else
        g_error_free(error);
    g_mutex_unlock(&pool->lock);
    g_atomic_int_set(&pool->stop, 1);
}

static void
run_point(Pool *pool, ZpStep *step, gint64 index)
{
    ZpSweepRunPoint *point = &pool->result->points[index];
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = zp_sweep_point(pool->sweep, index, &error);
    if (scenario != NULL &&
        zp_step_simulate(step, &scenario->job, NULL, pool->cancelled, &point->summary, &error))
        return;
    if (stops_sweep(error))
        fail_sweep(pool, g_steal_pointer(&error));
    else
        point->error = g_strdup(error->message);
}

static gpointer
work(gpointer data)
{
    Pool *pool = data;
    g_autoptr(ZpStep) step = zp_step_new();
    while (!g_atomic_int_get(&pool->stop)) {
        gint64 first = (gint64)g_atomic_int_add(&pool->next, 1) * CHUNK;
        if (first >= pool->result->n_points)
            break;
        gint64 end = MIN(first + CHUNK, pool->result->n_points);
        for (gint64 i = first; i < end && !g_atomic_int_get(&pool->stop); i++) {
            run_point(pool, step, i);
            g_atomic_int_inc(&pool->done);
        }
        if (pool->cancelled != NULL && *pool->cancelled)
            fail_sweep(pool,
                       g_error_new_literal(ZP_STEP_ERROR, ZP_STEP_ERROR_CANCELLED, "interrupted"));
    }
    return NULL;
}

gboolean
zp_sweep_run(const ZpSweep *sweep, int n_threads, const volatile gint *cancelled,
             ZpSweepRunProgress progress, gpointer data, ZpSweepRunResult *result, GError **error)
{
    result->n_points = zp_sweep_n_points(sweep);
    result->points = g_new0(ZpSweepRunPoint, (gsize)result->n_points);
    Pool pool = {.sweep = sweep, .result = result, .cancelled = cancelled};
    g_mutex_init(&pool.lock);
    int n = n_threads > 0 ? n_threads : (int)g_get_num_processors();
    g_autofree GThread **threads = g_new0(GThread *, (gsize)n);
    for (int t = 0; t < n; t++)
        threads[t] = g_thread_new("sweep", work, &pool);
    while (progress != NULL && g_atomic_int_get(&pool.done) < result->n_points &&
           !g_atomic_int_get(&pool.stop)) {
        g_usleep(20000);
        progress(g_atomic_int_get(&pool.done), data);
    }
    for (int t = 0; t < n; t++)
        g_thread_join(threads[t]);
    g_mutex_clear(&pool.lock);
    if (pool.error == NULL)
        return TRUE;
    g_propagate_error(error, pool.error);
    return FALSE;
}
