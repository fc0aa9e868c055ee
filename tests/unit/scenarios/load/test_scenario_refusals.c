/* Scenario files: what is refused and with which words. */
#include <glib/gstdio.h>

#include "tests/unit/fixtures/scenario_fixture.h"

typedef struct {
    const char *text;
    ZpScenarioError code;
    const char *say[3]; /* parts of the message */
} Refusal;

static const Refusal refusals[] = {
    {"", ZP_SCENARIO_ERROR_MISSING, {"t.ini: [model]", "total_parameters"}},
    {"stage = 1\n", ZP_SCENARIO_ERROR_SYNTAX, {"t.ini:1:", "before the first [group]"}},
    {"[zero\nstage = 1\n", ZP_SCENARIO_ERROR_SYNTAX, {"t.ini:1:", "[name]"}},
    {"[]\n", ZP_SCENARIO_ERROR_SYNTAX, {"t.ini:1:", "name"}},
    {"[zero]\nstage\n", ZP_SCENARIO_ERROR_SYNTAX, {"t.ini:2:", "key = value"}},
    {"[zero]\n= 1\n", ZP_SCENARIO_ERROR_SYNTAX, {"t.ini:2:"}},
    {"[zero]\n; old comment\n", ZP_SCENARIO_ERROR_SYNTAX, {"t.ini:2:", "# comment"}},
    {"[zero]\nstage = \n", ZP_SCENARIO_ERROR_TYPE, {"t.ini:2: [zero] stage:", "from 0 to 3"}},
    {"[zero]\nstage = # 2\n", ZP_SCENARIO_ERROR_TYPE, {"t.ini:2: [zero] stage:", "no value"}},
    {"[zero]\nstage = 1\n\nstage = 2\n",
     ZP_SCENARIO_ERROR_DUPLICATE,
     {"t.ini:4: [zero] stage:", "line 2"}},
    {"[zero]\nstage = 1\n[world]\n[ zero ]\n",
     ZP_SCENARIO_ERROR_DUPLICATE,
     {"t.ini:4:", "[zero]", "line 1"}},
    {"[zero]\nstgae = 1\n",
     ZP_SCENARIO_ERROR_UNKNOWN,
     {"t.ini:2: [zero] stgae: unknown key", "'stage'"}},
    {"[zero]\nmicro_batch = 1\n",
     ZP_SCENARIO_ERROR_UNKNOWN,
     {"t.ini:2: [zero] micro_batch:", "[training]"}},
    {"[zeor]\nstage = 1\n",
     ZP_SCENARIO_ERROR_UNKNOWN,
     {"t.ini:1: unknown group [zeor]", "[zero]?"}},
    {"[world]\nranks = 1.5\n",
     ZP_SCENARIO_ERROR_TYPE,
     {"t.ini:2: [world] ranks: '1.5'", "whole number"}},
    {"[world]\nranks = 0\n", ZP_SCENARIO_ERROR_RANGE, {"t.ini:2: [world] ranks: '0'", "from 1"}},
    {"[world]\nranks = 99999999999999999999\n", ZP_SCENARIO_ERROR_OVERFLOW, {"t.ini:2:"}},
    {"[device]\nmemory = 80G\n",
     ZP_SCENARIO_ERROR_TYPE,
     {"t.ini:2: [device] memory: '80G'", "'80 GB'", "'80 GiB'"}},
    {"[device]\nmemory = nan\n", ZP_SCENARIO_ERROR_TYPE, {"t.ini:2:", "not a number"}},
    {"[device]\nflops_efficiency = 1.5\n", ZP_SCENARIO_ERROR_RANGE, {"t.ini:2:", "to 1"}},
    {"[zero]\noverlap = ture\n", ZP_SCENARIO_ERROR_TYPE, {"t.ini:2:", "true, yes, on"}},
    {"[zero]\nwrap = blcok\n", ZP_SCENARIO_ERROR_TYPE, {"t.ini:2:", "did you mean 'block'?"}},
    {"[precision]\nparameter = bf17\n", ZP_SCENARIO_ERROR_TYPE, {"t.ini:2:", "'bf16'"}},
    {"[precision]\nmaster = int4\n", ZP_SCENARIO_ERROR_TYPE, {"t.ini:2:", "fp32"}},
    {"[layer]\nparameters = 1\n", ZP_SCENARIO_ERROR_SYNTAX, {"t.ini:1:", "[layer NAME]"}},
    {"[layer a]\nrepeat = 2\n",
     ZP_SCENARIO_ERROR_MISSING,
     {"t.ini:1: [layer a]", "parameters is missing"}},
    {"[layer a]\nparameters = 1\nrepeat = 10000\n[layer b]\nparameters = 1\n",
     ZP_SCENARIO_ERROR_RANGE,
     {"t.ini:4: [layer b]", "10000"}},
    {"[layer a]\nparameters = 7e16\nrepeat = 10000\n", ZP_SCENARIO_ERROR_OVERFLOW, {"t.ini:1:"}},
    {"[layer a]\nparameter = 1\n",
     ZP_SCENARIO_ERROR_UNKNOWN,
     {"t.ini:2: [layer a] parameter:", "'parameters'"}},
    {MODEL "catalog = x\n", ZP_SCENARIO_ERROR_CONFLICT, {"[model] total_parameters:", "t.ini:4"}},
    {MODEL "hidden = 64\n", ZP_SCENARIO_ERROR_CONFLICT, {"t.ini:4: [model] hidden:", "t.ini:2"}},
    {"[model]\nhidden = 64\nheads = 4\n",
     ZP_SCENARIO_ERROR_MISSING,
     {"[model]", "layers, ffn, vocabulary"}},
    {"[model]\nlayers = 2\nhidden = 64\nheads = 6\nffn = 8\nvocabulary = 9\n",
     ZP_SCENARIO_ERROR_RANGE,
     {"t.ini:4: [model] heads:", "64"}},
    {"[model]\nlayers = 2\nhidden = 64\nheads = 8\nkv_heads = 3\nffn = 8\nvocabulary = 9\n",
     ZP_SCENARIO_ERROR_RANGE,
     {"t.ini:5: [model] kv_heads:", "3", "8"}},
    {MODEL "[world]\nranks = 8\nshard_group = 3\n",
     ZP_SCENARIO_ERROR_RANGE,
     {"t.ini:6: [world] shard_group:", "3 ranks", "8"}},
    {MODEL "[world]\nranks = 8\nshard_group = 16\n", ZP_SCENARIO_ERROR_RANGE, {"t.ini:6:", "16"}},
    {MODEL "[simulation]\nranks = 3\n", ZP_SCENARIO_ERROR_RANGE, {"t.ini:5:", "all (8)"}},
    {MODEL "[simulation]\nslow_rank = 3\n",
     ZP_SCENARIO_ERROR_CONFLICT,
     {"t.ini:5:", "simulation.ranks = all"}},
    {MODEL "[simulation]\nranks = all\nslow_rank = 8\n",
     ZP_SCENARIO_ERROR_RANGE,
     {"t.ini:6:", "0 to 7"}},
    {MODEL "[optimizer]\nname = adamv\n",
     ZP_SCENARIO_ERROR_UNKNOWN,
     {"t.ini:5: [optimizer] name:", "'adamw'"}},
    {MODEL "[zero]\nruntime = idael\n", ZP_SCENARIO_ERROR_UNKNOWN, {"t.ini:5:", "'ideal'"}},
    {MODEL "[device]\ngpu = A100-SXM-81\n", ZP_SCENARIO_ERROR_UNKNOWN, {"t.ini:5:", "A100-SXM-80"}},
    {MODEL "[node]\nname = DGX-A101\n", ZP_SCENARIO_ERROR_UNKNOWN, {"t.ini:5:", "'DGX-A100'"}},
    {MODEL "[zero]\nprefetch = 33\n",
     ZP_SCENARIO_ERROR_RANGE,
     {"t.ini:5: [zero] prefetch: 33 units", "the 32 units"}},
    {MODEL "[zero]\nprefetch_backward = 40\nwrap_blocks = 2\n",
     ZP_SCENARIO_ERROR_RANGE,
     {"t.ini:5: [zero] prefetch_backward: 40 units", "the 16 units"}},
    {"[model]\ntotal_parameters = 7e16\n[world]\nranks = 1_000_000\n",
     ZP_SCENARIO_ERROR_OVERFLOW,
     {"t.ini:4: [world] ranks:", "64-bit"}},
    {MODEL "[training]\nmicro_batch = 4e9\nsequence = 4e9\n",
     ZP_SCENARIO_ERROR_OVERFLOW,
     {"t.ini:5:", "64-bit"}},
    {MODEL "[sweep]\nzero.stage = 0, 4\n",
     ZP_SCENARIO_ERROR_RANGE,
     {"t.ini:5: [sweep] zero.stage: '4'", "from 0 to 3"}},
    {MODEL "[sweep]\nzero.stgae = 0\n", ZP_SCENARIO_ERROR_UNKNOWN, {"t.ini:5:", "'zero.stage'"}},
    {MODEL "[sweep]\nzero.stage = 0,,1\n", ZP_SCENARIO_ERROR_TYPE, {"t.ini:5:", "empty item"}},
    {MODEL "[sweep]\nzero.stage = 3..1\n", ZP_SCENARIO_ERROR_RANGE, {"t.ini:5:", "ends before"}},
    {MODEL "[sweep]\nsweep.limit = 3\n",
     ZP_SCENARIO_ERROR_UNKNOWN,
     {"t.ini:5:", "cannot be swept"}},
    {MODEL "[sweep]\nstage = 1\nzero.stage = 2\n", ZP_SCENARIO_ERROR_DUPLICATE, {"t.ini:6:"}},
};

static void
test_refusals(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(refusals); i++) {
        const Refusal *refusal = &refusals[i];
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpScenario) scenario =
            zp_scenario_parse(refusal->text, -1, "t.ini", NULL, &error);
        if (scenario != NULL)
            g_error("read without complaint: %s", refusal->text);
        g_assert_cmpint(error->domain, ==, ZP_SCENARIO_ERROR);
        gboolean ok = error->code == (int)refusal->code;
        for (gsize s = 0; s < G_N_ELEMENTS(refusal->say) && refusal->say[s] != NULL; s++)
            ok &= strstr(error->message, refusal->say[s]) != NULL;
        if (!ok)
            g_error("%s gives %d: %s", refusal->text, error->code, error->message);
    }
}

static void
test_bad_sets(void)
{
    static const struct {
        const char *set;
        ZpScenarioError code;
        const char *say;
    } cases[] = {
        {"zero.stage", ZP_SCENARIO_ERROR_SYNTAX, "KEY=VALUE"},
        {"zero.stgae=1", ZP_SCENARIO_ERROR_UNKNOWN, "'zero.stage'"},
        {"ranks=2", ZP_SCENARIO_ERROR_UNKNOWN, "world.ranks, simulation.ranks"},
        {"stage=7", ZP_SCENARIO_ERROR_RANGE, "from 0 to 3"},
        {"scenario.name=a #b", ZP_SCENARIO_ERROR_SYNTAX, "' #'"},
        {"scenario.name=a\nb", ZP_SCENARIO_ERROR_SYNTAX, "control"},
        {"layer.z.parameters=1", ZP_SCENARIO_ERROR_UNKNOWN, "[layer z]"},
        {"layer.parameters=1", ZP_SCENARIO_ERROR_UNKNOWN, "which layer"},
        {"sweep.zero.stage=9", ZP_SCENARIO_ERROR_RANGE, "from 0 to 3"},
        {"=1", ZP_SCENARIO_ERROR_UNKNOWN, "unknown key"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *sets[] = {cases[i].set, NULL};
        g_autoptr(GError) error = NULL;
        g_assert_null(zp_scenario_parse(MODEL, -1, "t.ini", sets, &error));
        g_assert_error(error, ZP_SCENARIO_ERROR, (int)cases[i].code);
        g_assert_true(g_str_has_prefix(error->message, "--set: "));
        if (strstr(error->message, cases[i].say) == NULL)
            g_error("%s gives %s", cases[i].set, error->message);
    }
}

/* All errors of a file at once, in its order. */
static void
test_all_errors(void)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(zp_scenario_parse("[zero]\nstgae = 1\nwrap = x\n[wrld]\nranks = 1\n[device]\n"
                                    "memory = 80\nmemory = 90 GB\n",
                                    -1, "t.ini", NULL, &error));
    g_auto(GStrv) lines = g_strsplit(error->message, "\n", -1);
    g_assert_cmpuint(g_strv_length(lines), ==, 5);
    g_assert_true(g_str_has_prefix(lines[0], "t.ini:8:")); /* the syntax comes first */
    g_assert_true(g_str_has_prefix(lines[1], "t.ini:2:"));
    g_assert_true(g_str_has_prefix(lines[2], "t.ini:3:"));
    g_assert_true(g_str_has_prefix(lines[3], "t.ini:4:"));
    g_assert_true(g_str_has_prefix(lines[4], "t.ini:7:"));
}

static void
check_bytes_refused(const char *text, gsize length, const char *say)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(zp_scenario_parse(text, (gssize)length, "t.ini", NULL, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_SYNTAX);
    if (strstr(error->message, say) == NULL)
        g_error("%s", error->message);
}

static void
test_bounds(void)
{
    g_autofree char *big = g_malloc(ZP_SCENARIO_MAX_BYTES + 1);
    memset(big, '#', ZP_SCENARIO_MAX_BYTES + 1);
    check_bytes_refused(big, ZP_SCENARIO_MAX_BYTES + 1, "16 MiB");
    check_bytes_refused(big, ZP_SCENARIO_MAX_LINE + 1, "64 KiB");
    check_bytes_refused("[zero]\nstage = \xff\n", 16, "t.ini:2: not UTF-8");
    check_bytes_refused("[zero]\n\0stage = 1\n", 18, "t.ini:2: not UTF-8");
    check_bytes_refused("[zero]\nstage = 1\x01\n", 18, "control character");
    g_autoptr(GString) many = g_string_new("[zero]\n");
    for (int i = 0; i <= ZP_SCENARIO_MAX_ENTRIES; i++)
        g_string_append_printf(many, "k%d = 1\n", i);
    g_autoptr(GError) error = NULL;
    g_assert_null(zp_scenario_parse(many->str, -1, "t.ini", NULL, &error));
    g_assert_true(g_str_has_prefix(error->message, "t.ini:100002: more than 100000 keys\n"));
    g_assert_true(g_str_has_suffix(error->message, "t.ini: and more"));
}

static void
test_load(void)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(zp_scenario_load("/nonexistent/x.ini", NULL, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_IO);
    g_clear_error(&error);
    g_assert_null(zp_scenario_load("/", NULL, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_IO);
    g_clear_error(&error);
    g_assert_null(zp_scenario_load("/dev/zero", NULL, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_SYNTAX);
    g_clear_error(&error);
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("zp-XXXXXX.ini", &path, &error);
    g_assert_no_error(error);
    g_close(fd, NULL);
    g_assert_true(g_file_set_contents(path, "\xef\xbb\xbf" MODEL, -1, &error));
    g_autoptr(ZpScenario) scenario = zp_scenario_load(path, NULL, &error);
    g_assert_no_error(error);
    g_autofree char *origin = g_strdup_printf("%s:2", path);
    scenario_fixture_check(scenario, "model", "total_parameters", "7e9 elements", origin);
    g_unlink(path);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/scenario/refusals", test_refusals);
    g_test_add_func("/scenario/bad-sets", test_bad_sets);
    g_test_add_func("/scenario/all-errors", test_all_errors);
    g_test_add_func("/scenario/bounds", test_bounds);
    g_test_add_func("/scenario/load", test_load);
    return g_test_run();
}
