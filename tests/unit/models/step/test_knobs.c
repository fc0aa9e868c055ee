/* What --why proposes is what a scenario would take. */
#include <string.h>

#include "models/parallel/parallel.h"
#include "models/step/knobs.h"
#include "tests/unit/fixtures/job_fixture.h"

/* The change proposed for a knob, owned by `rows`; NULL: none. */
static const char *
change_of(const GArray *rows, const char *knob)
{
    for (guint i = 0; i < rows->len; i++) {
        const ZpKnobsRow *row = &g_array_index(rows, ZpKnobsRow, i);
        if (strcmp(row->knob, knob) == 0)
            return row->change;
    }
    return NULL;
}

static GArray *
compare(JobFixture *fixture)
{
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary = job_fixture_run(fixture, step);
    return zp_knobs_compare(&fixture->job, &summary, NULL);
}

static GArray *
compare_stage(gint32 context, gint32 pipeline, int stage)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 100000, 4);
    ZpJob *job = &fixture.job;
    job->zero.stage = stage;
    job->training.accumulation = 4;
    job->training.sequence = 1040; /* 16 x 65: not divisible once more */
    job->world.parallel.context = context;
    job->world.parallel.pipeline = pipeline;
    g_assert_true(zp_parallel_check(job, 8, NULL));
    zp_parallel_place(job, 8);
    job->world.shard_group = job->world.ranks;
    g_autoptr(ZpModel) last = NULL;
    if (pipeline > 1)
        last = zp_parallel_cut_stage(fixture.model, pipeline, NULL);
    job->last_stage = last;
    GArray *rows = compare(&fixture);
    job_fixture_clear(&fixture);
    return rows;
}

/* A pipeline has no stage 2; context parallel ranks have a part of the sequence. */
static void
test_stages(void)
{
    const struct {
        gint32 context, pipeline;
        int stage;
        const char *change;
    } cases[] = {{1, 1, 0, "1 (now 0)"}, {1, 1, 1, "2 (now 1)"}, {1, 1, 2, "3 (now 2)"},
                 {1, 1, 3, NULL},        {1, 2, 0, "1 (now 0)"}, {1, 2, 1, NULL},
                 {8, 1, 1, "2 (now 1)"}, {4, 2, 0, "1 (now 0)"}, {4, 2, 1, NULL}};
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        g_autoptr(GArray) rows = compare_stage(cases[c].context, cases[c].pipeline, cases[c].stage);
        g_assert_cmpuint(rows->len, >, 0);
        g_assert_cmpstr(change_of(rows, "zero.stage"), ==, cases[c].change);
    }
}

static void
test_units(void)
{
    JobFixture fixture;
    job_fixture_init(&fixture, 100000, 8);
    fixture.job.zero.wrap_blocks = 4;
    g_autoptr(GArray) rows = compare(&fixture);
    g_assert_cmpstr(change_of(rows, "zero.wrap"), ==, "2 blocks a unit (now 4)");
    g_assert_cmpstr(change_of(rows, "zero.wrap_blocks"), ==, "8 blocks a unit (now 4)");
    job_fixture_clear(&fixture);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/knobs/stages", test_stages);
    g_test_add_func("/knobs/units", test_units);
    return g_test_run();
}
