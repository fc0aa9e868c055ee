/* device.file: an own GPU, node and fabric. */
#include <string.h>

#include <glib/gstdio.h>

#include "models/step/step.h"
#include "scenarios/load/scenario.h"

static const char head[] = "[model]\ncatalog = Llama-3-8B\n[training]\nsequence = 4096\n"
                           "[zero]\nstage = 3\n[world]\nranks = 16\n";

/* The scenario with this machine file, or the message that refuses it. */
static ZpScenario *
load(const char *machine, const char *const *more, GError **error)
{
    g_autofree char *path = NULL;
    int handle = g_file_open_tmp("machine-XXXXXX.ini", &path, NULL);
    g_assert_cmpint(handle, >=, 0);
    g_assert_true(g_close(handle, NULL));
    g_assert_true(g_file_set_contents(path, machine, -1, NULL));
    g_autofree char *file = g_strconcat("device.file=", path, NULL);
    const char *sets[8] = {file};
    for (int i = 0; more != NULL && more[i] != NULL; i++)
        sets[i + 1] = more[i];
    ZpScenario *scenario = zp_scenario_parse(head, -1, "t.ini", sets, error);
    g_assert_cmpint(g_unlink(path), ==, 0);
    return scenario;
}

static double
seconds_of(ZpScenario *scenario)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpStep) step = zp_step_new();
    ZpStepSummary summary;
    gboolean ok = zp_step_simulate(step, &scenario->job, NULL, NULL, &summary, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    return zp_time_to_seconds(summary.step_ps);
}

static double
seconds_with(const char *machine, const char *more)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = load(machine, (const char *const[]){more, NULL}, &error);
    g_assert_no_error(error);
    return seconds_of(scenario);
}

static double
seconds_of_catalogue(const char *more)
{
    const char *sets[] = {"device.gpu=H100-SXM-80", more, NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = zp_scenario_parse(head, -1, "t.ini", sets, &error);
    g_assert_no_error(error);
    return seconds_of(scenario);
}

#define LIKE "[gpu]\nname = mine\nlike = H100-SXM-80\n"

/* A GPU that is like another is the other; a key of the scenario and the same line of the file say
 * the same. */
static void
test_like(void)
{
    g_assert_cmpfloat(seconds_with(LIKE, NULL), ==, seconds_of_catalogue(NULL));
    g_assert_cmpfloat(seconds_with(LIKE "memory_bandwidth = 3350 GB/s\npower = 700 W\n", NULL), ==,
                      seconds_of_catalogue(NULL));
    static const char *const same[][2] = {
        {"[fabric]\nnetwork_latency = 200 us\n", "node.network_latency=200 us"},
        {"[fabric]\nlink_latency = 90 us\n", "node.link_latency=90 us"},
        {"[fabric]\nnetwork_efficiency = 0.5\n", "node.network_efficiency=0.5"},
        {"[fabric]\nlink_efficiency = 0.5\n", "node.link_efficiency=0.5"},
        {"link_bandwidth = 225 GB/s\n", "node.link_bandwidth=225 GB/s"},
    };
    for (gsize s = 0; s < G_N_ELEMENTS(same); s++) {
        g_autofree char *machine = g_strconcat(LIKE, same[s][0], NULL);
        double own = seconds_with(machine, NULL), stated = seconds_of_catalogue(same[s][1]);
        g_assert_cmpfloat(ABS(own / stated - 1.0), <, 1e-9);
        /* Between nodes, the network's latency counts in place of the links'. */
        if (strstr(same[s][0], "link_latency") == NULL)
            g_assert_cmpfloat(own, >, seconds_of_catalogue(NULL));
        g_assert_cmpfloat(ABS(seconds_with(machine, same[s][1]) / stated - 1.0), <, 1e-9);
    }
}

/* What depends on a stated figure goes with it. */
static void
test_scaled(void)
{
    double whole = seconds_with(LIKE, NULL);
    static const char *const slower[] = {
        "power = 500 W\n",
        "multiprocessors = 114\n",
        "bf16 = 800 TFLOP/s\n",
        "sustained = 600 TFLOP/s\n",
        "memory_bandwidth = 2 TB/s\n",
        "[node]\nname = slow\ngpus = 8\nnetwork_bandwidth = 100 GB/s\n",
        "[node]\nname = small\ngpus = 4\nnetwork_bandwidth = 100 GB/s\n",
    };
    for (gsize s = 0; s < G_N_ELEMENTS(slower); s++) {
        g_autofree char *machine = g_strconcat(LIKE, slower[s], NULL);
        double own = seconds_with(machine, NULL);
        if (own <= whole || own > whole * 3.0)
            g_error("%.4f s with %s, %.4f without", own, slower[s], whole);
    }
}

static void
test_alone(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario =
        load("[gpu]\nname = new\nchip = GH100\nmemory = 90 GB\nbf16 = 900 TFLOP/s\n"
             "memory_bandwidth = 3 TB/s\nlink_bandwidth = 400 GB/s\n",
             NULL, &error);
    g_assert_no_error(error);
    g_assert_nonnull(scenario->job.device.calibration);
    g_assert_cmpstr(scenario->job.device.name, ==, "new");
    g_assert_cmpint(scenario->job.device.capacity_bytes, ==, 90000000000);
    g_assert_cmpfloat(seconds_of(scenario), >, 0.5);
    /* The catalogue's are still there. */
    const char *const other[] = {"device.gpu=A100-SXM-80", NULL};
    g_autoptr(ZpScenario) catalogue = load(LIKE, other, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(catalogue->job.device.name, ==, "A100-SXM-80");
}

static void
test_refused(void)
{
    static const struct {
        const char *machine, *say;
    } rows[] = {
        {"[gpu]\nname = H100-SXM-80\n", ":2: [gpu] name: the catalogue has"},
        {"[gpu]\nname = mine\nlike = H1000\n", ":3: [gpu] like: unknown GPU"},
        {"[gpu]\nname = mine\n", "[gpu] memory: missing"},
        {"[gpu]\nlike = H100-SXM-80\n", "[gpu] name: missing"},
        {LIKE "chip = GX100\n", ":4: [gpu] chip: unknown chip; legal are GP100, GV100"},
        {LIKE "bf16 = 900\n", ":4: [gpu] bf16: '900'"},
        {LIKE "power = 700 kW\n", ":4: [gpu] power:"},
        {LIKE "bf61 = 900 TFLOP/s\n", ":4: [gpu] bf61: unknown key; did you mean 'bf16'?"},
        {"[gpus]\nname = mine\n", ":2: unknown group [gpus]; legal are [gpu], [node], [fabric]"},
        {"[node]\ngpus = 8\n", "[node] name: missing"},
        {"[node]\nname = DGX-H100\n", ":2: [node] name: the catalogue has"},
        {"[fabric]\nlike = DGX-Z\n", ":2: [fabric] like: unknown node"},
        {"[fabric]\nlink_efficiency = 2\n", ":2: [fabric] link_efficiency: '2'"},
        {"name = mine\n", ":1: "},
    };
    for (gsize r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpScenario) scenario = load(rows[r].machine, NULL, &error);
        g_assert_null(scenario);
        if (strstr(error->message, rows[r].say) == NULL)
            g_error("'%s' lacks '%s'", error->message, rows[r].say);
    }
    g_autoptr(GError) error = NULL;
    const char *sets[] = {"device.file=nowhere.ini", NULL};
    g_assert_null(zp_scenario_parse(head, -1, "t.ini", sets, &error));
    g_assert_nonnull(strstr(error->message, "[device] file: "));
}

/* The example that comes with the program is what its comments say. */
static void
test_example(void)
{
    g_autofree char *path =
        g_build_filename(ZP_SOURCE_DIR, "scenarios/machines/h100-capped.ini", NULL);
    g_autofree char *text = NULL;
    g_assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) scenario = load(text, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(scenario->job.device.name, ==, "H100-capped");
    g_assert_cmpstr(scenario->job.network.node, ==, "own-4x400");
    g_assert_cmpfloat(seconds_of(scenario), >, seconds_of_catalogue(NULL));
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/machine_file/like", test_like);
    g_test_add_func("/machine_file/scaled", test_scaled);
    g_test_add_func("/machine_file/alone", test_alone);
    g_test_add_func("/machine_file/refused", test_refused);
    g_test_add_func("/machine_file/example", test_example);
    return g_test_run();
}
