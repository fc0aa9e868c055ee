/* What lives beside kept activations while a layer runs, under every runtime.
 *
 * Fixture: 4 layers, each a block, 1,000 tokens; 100 bytes a token kept, 10 of them under full
 * checkpointing. */
#include <string.h>

#include "models/families/catalog.h"
#include "tests/unit/fixtures/job_fixture.h"

static const char *const runtimes[] = {"ideal", "fsdp1", "fsdp2", "ddp", "deepspeed"};

typedef enum { FORWARD, RECOMPUTE, BACKWARD } Pass;

/* `bytes_per_token` in one pass of every layer. */
static void
set_transient(JobFixture *fixture, Pass pass, gint64 bytes_per_token)
{
    const ZpModelPeak peak = {
        .n_forms = 2, .forms = {{.constant_bytes = 1}, {.bytes_per_token = bytes_per_token}}};
    for (guint a = 0; a < fixture->model->activations->len; a++) {
        ZpModelActivation *entry =
            &g_array_index(fixture->model->activations, ZpModelActivation, a);
        entry->differs_alone = FALSE;
        for (int p = 0; p < ZP_MODEL_POLICIES; p++) {
            ZpModelPolicyBytes *policy = &entry->policies[p];
            policy->forward = pass == FORWARD ? peak : (ZpModelPeak){0};
            policy->backward = pass == BACKWARD ? peak : (ZpModelPeak){0};
            if (p != ZP_CHECKPOINTING_NONE)
                policy->recompute = pass == RECOMPUTE ? peak : (ZpModelPeak){0};
        }
    }
}

static void
init(JobFixture *fixture, const char *runtime)
{
    job_fixture_init(fixture, 1000000, 4);
    fixture->job.runtime = runtime;
    if (strcmp(runtime, "ddp") == 0)
        fixture->job.zero.stage = 0;
}

static gint64
peak_of(JobFixture *fixture, ZpClass class_id)
{
    g_autoptr(ZpStep) step = zp_step_new();
    job_fixture_run(fixture, step);
    return zp_step_result(step)->ranks[0].memory[ZP_TAPE_SPACE_DEVICE].class_peak_bytes[class_id];
}

static void
test_peaks(gconstpointer data)
{
    const gint64 t = 1000;
    const struct {
        Pass pass;
        ZpCheckpointing policy;
        gint64 expected;
    } cases[] = {
        {FORWARD, ZP_CHECKPOINTING_NONE, (4 * 100 + 33) * t},
        {BACKWARD, ZP_CHECKPOINTING_NONE, (4 * 100 + 33) * t},
        {RECOMPUTE, ZP_CHECKPOINTING_NONE, 4 * 100 * t},
        {FORWARD, ZP_CHECKPOINTING_FULL, (4 * 10 + 90) * t}, /* 33 are less than what comes back */
        {BACKWARD, ZP_CHECKPOINTING_FULL, (4 * 10 + 90 + 33) * t},
        {RECOMPUTE, ZP_CHECKPOINTING_FULL, (4 * 10 + 90 + 33) * t},
    };
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        JobFixture fixture;
        init(&fixture, data);
        fixture.job.training.checkpointing = cases[c].policy;
        set_transient(&fixture, cases[c].pass, 33);
        g_assert_cmpint(peak_of(&fixture, ZP_CLASS_ACTIVATION), ==, cases[c].expected);
        job_fixture_clear(&fixture);
    }
}

/* Selective: the whole block comes back before its backward, under every runtime. */
static void
test_selective(gconstpointer data)
{
    JobFixture fixture;
    init(&fixture, data);
    ZpModelActivation *entry = &g_array_index(fixture.model->activations, ZpModelActivation, 0);
    const ZpModelBytes kept = {.bytes_per_token = 100}, some = {.bytes_per_token = 60};
    *entry = zp_model_activation_of(&kept, &some, &some);
    for (guint l = 0; l < 4; l++) {
        ZpModelLayer *layer = &g_array_index(fixture.model->layers, ZpModelLayer, l);
        layer->block = (gint32)l / 2;
        layer->selective_flops_per_token = 1000; /* 1 us */
    }
    g_autoptr(ZpStep) step = zp_step_new();
    fixture.job.training.accumulation = 2; /* and again in the next micro-batch */
    ZpTime without = job_fixture_run(&fixture, step).step_ps;
    fixture.job.training.checkpointing = ZP_CHECKPOINTING_SELECTIVE;
    g_assert_cmpint(peak_of(&fixture, ZP_CLASS_ACTIVATION), ==, (4 * 60 + 2 * 40) * 1000);
    ZpTime with = job_fixture_run(&fixture, step).step_ps;
    g_assert_cmpint(with - without, >=, 2 * 4 * ZP_TIME_PER_US);
    set_transient(&fixture, RECOMPUTE, 70); /* around the block's second layer */
    g_assert_cmpint(peak_of(&fixture, ZP_CLASS_ACTIVATION), ==, (4 * 60 + 2 * 40 + 70) * 1000);
    set_transient(&fixture, FORWARD, 70);
    g_assert_cmpint(peak_of(&fixture, ZP_CLASS_ACTIVATION), ==, (4 * 60 + 2 * 40) * 1000);
    job_fixture_clear(&fixture);
}

/* The head's are logits. */
static void
test_head(gconstpointer data)
{
    JobFixture fixture;
    init(&fixture, data);
    ZpModelLayer *head = &g_array_index(fixture.model->layers, ZpModelLayer, 3);
    head->kind = ZP_LAYER_HEAD;
    head->block = ZP_MODEL_NONE;
    fixture.job.zero.wrap = ZP_WRAP_SUBLAYER;
    set_transient(&fixture, BACKWARD, 33);
    g_assert_cmpint(peak_of(&fixture, ZP_CLASS_LOGITS), ==, (100 + 33) * 1000);
    g_assert_cmpint(peak_of(&fixture, ZP_CLASS_ACTIVATION), ==, (3 * 100 + 33) * 1000);
    job_fixture_clear(&fixture);
}

/* Times do not depend on what lives beside. */
static void
test_times(gconstpointer data)
{
    JobFixture fixture;
    init(&fixture, data);
    g_autoptr(ZpStep) step = zp_step_new();
    ZpTime without = job_fixture_run(&fixture, step).step_ps;
    set_transient(&fixture, BACKWARD, 33);
    g_assert_cmpint(job_fixture_run(&fixture, step).step_ps, ==, without);
    job_fixture_clear(&fixture);
}

/* Bytes that do not fit 64 bits are refused before anything is compiled. */
static void
test_overflow(void)
{
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        JobFixture fixture;
        init(&fixture, runtimes[r]);
        fixture.job.optimizer = &fixture.optimizer;
        fixture.job.training.sequence = G_GINT64_CONSTANT(1) << 58; /* 33 bytes a token overflow */
        g_array_index(fixture.model->activations, ZpModelActivation, 0) = (ZpModelActivation){0};
        set_transient(&fixture, FORWARD, 33);
        g_autoptr(ZpStep) step = zp_step_new();
        g_autoptr(GError) error = NULL;
        ZpStepSummary summary;
        g_assert_false(zp_step_simulate(step, &fixture.job, NULL, NULL, &summary, &error));
        g_assert_error(error, ZP_STEP_ERROR, ZP_STEP_ERROR_RANGE);
        job_fixture_clear(&fixture);
    }
}

/* Reads a tape from the start: how many temporaries live, what runs meanwhile. */
typedef struct {
    gint32 live;
    int n_temporaries;
    int n_alone;      /* temporaries around one kernel */
    int kernels;      /* since the last began */
    int most_kernels; /* around one */
    int gathers;      /* made while one lived */
} Reading;

static void
read_tape(const ZpTape *tape, ZpKind kind, Reading *reading)
{
    *reading = (Reading){.live = ZP_TAPE_NONE};
    for (gint32 i = 0; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op == ZP_TAPE_LAUNCH)
            reading->kernels += tape->works[instr->a].kind == (gint16)kind;
        if (instr->op != ZP_TAPE_ALLOC && instr->op != ZP_TAPE_FREE)
            continue;
        const ZpTapeBuffer *buffer = &tape->buffers[instr->a];
        if (buffer->class_id == ZP_CLASS_GATHERED && instr->op == ZP_TAPE_ALLOC)
            reading->gathers += reading->live != ZP_TAPE_NONE;
        if (buffer->role != ZP_ROLE_TEMPORARY)
            continue;
        if (instr->op == ZP_TAPE_ALLOC) {
            g_assert_cmpint(reading->live, ==, ZP_TAPE_NONE); /* one layer at a time */
            reading->live = instr->a;
            reading->kernels = 0;
            reading->n_temporaries++;
        } else {
            g_assert_cmpint(reading->live, ==, instr->a);
            reading->live = ZP_TAPE_NONE;
            g_assert_cmpint(reading->kernels, >, 0);
            reading->n_alone += reading->kernels == 1;
            reading->most_kernels = MAX(reading->most_kernels, reading->kernels);
        }
    }
    g_assert_cmpint(reading->live, ==, ZP_TAPE_NONE);
}

/* A layer of DeepSpeed's module tree spans modules: one temporary lives around all their kernels,
 * and their parameters are gathered meanwhile. */
static void
test_modules(void)
{
    ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    JobFixture fixture;
    init(&fixture, "deepspeed");
    zp_model_free(fixture.model);
    fixture.model = zp_catalog_build("Llama-2-7B", &options, &error);
    g_assert_no_error(error);
    fixture.job.model = fixture.model;
    fixture.job.training.checkpointing = ZP_CHECKPOINTING_FULL;
    g_autoptr(ZpStep) step = zp_step_new();
    const ZpKind kinds[] = {[FORWARD] = ZP_KIND_FORWARD,
                            [RECOMPUTE] = ZP_KIND_RECOMPUTE,
                            [BACKWARD] = ZP_KIND_BACKWARD};
    int holding = 0; /* layers that hold anything */
    for (guint l = 0; l < fixture.model->layers->len; l++)
        holding += zp_model_layer(fixture.model, (gint32)l)->activation != ZP_MODEL_NONE;
    g_assert_cmpint(holding, >=, 2 * 32 + 1);
    for (Pass pass = FORWARD; pass <= BACKWARD; pass++) {
        set_transient(&fixture, pass, 33);
        job_fixture_run(&fixture, step);
        Reading reading;
        read_tape(zp_step_tape(step), kinds[pass], &reading);
        g_assert_cmpint(reading.n_temporaries, ==, pass == RECOMPUTE ? 2 * 32 : holding);
        g_assert_cmpint(reading.n_temporaries - reading.n_alone, ==, 2 * 32);
        g_assert_cmpint(reading.most_kernels, ==, 5); /* norm, q, k, v, o */
        g_assert_cmpint(reading.gathers, >, 2 * 32);
    }
    job_fixture_clear(&fixture);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    const struct {
        const char *name;
        GTestDataFunc run;
    } tests[] = {{"peaks", test_peaks},
                 {"head", test_head},
                 {"times", test_times},
                 {"selective", test_selective}};
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        for (gsize t = 0; t < G_N_ELEMENTS(tests); t++) {
            g_autofree char *path =
                g_strdup_printf("/step-transients/%s/%s", tests[t].name, runtimes[r]);
            g_test_add_data_func(path, runtimes[r], tests[t].run);
        }
    }
    g_test_add_func("/step-transients/overflow", test_overflow);
    g_test_add_func("/step-transients/modules", test_modules);
    return g_test_run();
}
