/* Scenario files: what is read, what is refused and with which words, and that a dump loads back
 * to the same scenario. */
#include "scenarios/scenario.h"

#include <string.h>

#include <glib/gstdio.h>

#define MODEL "[model]\ntotal_parameters = 7e9\npieces = 32\n"

static ZpScenario *
parse(const char *text, const char *const *sets)
{
    g_autoptr(GError) error = NULL;
    ZpScenario *scenario = zp_scenario_parse(text, -1, "t.ini", sets, &error);
    g_assert_no_error(error);
    g_assert_nonnull(scenario);
    return scenario;
}

static const ZpScenarioValue *
find(const ZpScenario *scenario, const char *section, const char *key)
{
    for (guint i = 0; i < scenario->values->len; i++) {
        const ZpScenarioValue *value = &g_array_index(scenario->values, ZpScenarioValue, i);
        if (strcmp(value->section, section) == 0 && strcmp(value->key, key) == 0)
            return value;
    }
    return NULL;
}

static void
check_value(const ZpScenario *scenario, const char *section, const char *key, const char *text,
            const char *origin)
{
    const ZpScenarioValue *value = find(scenario, section, key);
    g_assert_nonnull(value);
    if (text != NULL)
        g_assert_cmpstr(value->text, ==, text);
    g_assert_cmpstr(value->origin, ==, origin);
}

/* --- what is read --- */

static void
test_read(void)
{
    g_autoptr(ZpScenario) scenario = parse("# a comment\n"
                                           "[scenario]\n"
                                           "name = first  # behind a value\n"
                                           "\n" MODEL "[training]\n"
                                           "  micro_batch   =  4\r\n"
                                           "sequence=4096\n"
                                           "[zero]\n"
                                           "\tstage = 2\n"
                                           "bucket = 2e8 elements\n"
                                           "overlap = no\n"
                                           "wrap = model\n"
                                           "[world]\n"
                                           "ranks = 64\n"
                                           "shard_group = 16\n"
                                           "[precision]\n"
                                           "parameter = float16\n"
                                           "reduce = fp32\n"
                                           "[device]\n"
                                           "memory = 80 GB\n"
                                           "contingency = 5 %\n"
                                           "[simulation]\n"
                                           "jitter = 2 %\n"
                                           "ranks = all\n"
                                           "slow_rank = 3\n"
                                           "slow_factor = 1.25",
                                           NULL);
    const ZpJob *job = &scenario->job;
    g_assert_cmpstr(scenario->name, ==, "first");
    g_assert_cmpstr(scenario->path, ==, "t.ini");
    g_assert_cmpint(scenario->model->n_elements, ==, 7000000000);
    g_assert_cmpuint(scenario->model->layers->len, ==, 32);
    g_assert_true(job->model == scenario->model);
    g_assert_cmpint(job->training.micro_batch, ==, 4);
    g_assert_cmpint(job->training.sequence, ==, 4096);
    g_assert_cmpint(job->zero.stage, ==, 2);
    g_assert_cmpint(job->zero.bucket_elements, ==, 200000000);
    g_assert_cmpint(job->zero.wrap, ==, ZP_WRAP_MODEL);
    g_assert_false(job->zero.overlap);
    g_assert_cmpint(job->world.ranks, ==, 64);
    g_assert_cmpint(job->world.shard_group, ==, 16);
    g_assert_cmpint(job->precision.parameter, ==, ZP_DTYPE_FP16);
    g_assert_cmpint(job->precision.gradient, ==, ZP_DTYPE_FP16);
    g_assert_cmpint(job->precision.gathered, ==, ZP_DTYPE_FP16);
    g_assert_cmpint(job->precision.reduce, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(job->precision.master, ==, ZP_DTYPE_FP32);
    g_assert_cmpint(job->device.capacity_bytes, ==, 80000000000);
    g_assert_cmpfloat(job->device.contingency, ==, 0.05);
    g_assert_cmpint(job->simulation.jitter_ppm, ==, 20000);
    g_assert_cmpint(job->simulation.simulated_ranks, ==, 64);
    g_assert_cmpint(job->simulation.slow_rank, ==, 3);
    g_assert_cmpint(job->simulation.slow_ppm, ==, 1250000);
    g_assert_cmpstr(job->runtime, ==, "ideal");
    g_assert_cmpstr(job->optimizer->name, ==, "adamw");
    g_assert_cmpfloat(job->device.flops_per_s, >, 1e12);
    g_assert_cmpint(job->network.gpus_per_node, >=, 1);
}

static void
test_origins(void)
{
    const char *sets[] = {"zero.stage=1", "sequence = 128", NULL};
    g_autoptr(ZpScenario) scenario =
        parse(MODEL "[training]\nmicro_batch = 2\n[zero]\nstage = 3\n", sets);
    check_value(scenario, "model", "total_parameters", "7e9 elements", "t.ini:2");
    check_value(scenario, "training", "micro_batch", "2 sequences", "t.ini:5");
    check_value(scenario, "training", "sequence", "128 tokens", "--set");
    check_value(scenario, "training", "accumulation", "1", "default");
    check_value(scenario, "zero", "stage", "1", "--set");
    check_value(scenario, "precision", "gradient", "bf16",
                "auto: same as parameter; bf16 below 16 bits");
    check_value(scenario, "device", "memory", NULL, "catalogue: A100-SXM-80");
    check_value(scenario, "scenario", "name", "t", "auto: the file's name without its ending");
    g_assert_null(find(scenario, "model", "hidden"));
    g_assert_null(find(scenario, "sweep", "limit"));
    g_assert_cmpint(scenario->job.zero.stage, ==, 1);
}

/* "auto" takes a key back, also against the file. */
static void
test_auto(void)
{
    const char *sets[] = {"model.total_parameters=auto", "pieces=auto", "layer.x.parameters=5",
                          NULL};
    g_autoptr(GError) error = NULL;
    g_assert_null(
        zp_scenario_parse(MODEL "[layer x]\nparameters = 3\n", -1, "t.ini", NULL, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_CONFLICT);
    g_autoptr(ZpScenario) scenario = parse(MODEL "[layer x]\nparameters = 3\n", sets);
    g_assert_cmpint(scenario->model->n_elements, ==, 5);
    check_value(scenario, "layer x", "parameters", "5 elements", "--set");
    check_value(scenario, "layer x", "flops_per_token", "10 FLOP", "auto: 2 x parameters");
}

static void
test_layers(void)
{
    g_autoptr(ZpScenario) scenario = parse("[layer first]\nparameters = 100\n"
                                           "[layer block]\nparameters = 1e6\nrepeat = 3\n"
                                           "flops_per_token = 5e6\n"
                                           "activation_bytes_per_token = 34 kB\n"
                                           "checkpoint_bytes_per_token = 2 kB\n"
                                           "[layer last.one]\nparameters = 7\n",
                                           NULL);
    const ZpModel *model = scenario->model;
    g_assert_cmpuint(model->layers->len, ==, 5);
    g_assert_cmpint(model->n_elements, ==, 3000107);
    g_assert_cmpstr(zp_model_layer(model, 2)->name, ==, "block.1");
    g_assert_cmpint(zp_model_layer(model, 2)->flops_per_token, ==, 5000000);
    const ZpModelPolicyBytes *held =
        zp_model_activation(model, zp_model_layer(model, 2)->activation)->policies;
    g_assert_cmpint(held[ZP_CHECKPOINTING_NONE].kept.bytes_per_token, ==, 34000);
    g_assert_cmpint(held[ZP_CHECKPOINTING_FULL].kept.bytes_per_token, ==, 2000);
    g_assert_cmpint(zp_model_layer(model, 4)->flops_per_token, ==, 14);
    check_value(scenario, "layer last.one", "parameters", "7 elements", "t.ini:10");
}

/* Bytes that the first block keeps under the scenario's policy. */
static gint64
block_kept(const char *text, const char *set)
{
    const char *sets[] = {set, NULL};
    g_autoptr(ZpScenario) scenario = parse(text, sets);
    gint64 sum = 0;
    for (gint32 l = 1; l <= 2; l++) {
        gint32 index = zp_model_layer(scenario->model, l)->activation;
        int policy = (int)scenario->job.training.checkpointing;
        sum += zp_model_activation(scenario->model, index)->policies[policy].kept.bytes_per_token;
    }
    return sum;
}

/* Each key that says how layers are computed shows in what they keep. */
static void
test_activation_keys(void)
{
    const char *llama = "[model]\ncatalog = Llama-3.2-1B\n";
    const gint64 h = 2048, q = 2048, kv = 512, f = 8192, heads = 32;
    const gint64 rest = 4 * q + 4 * kv + 8 * f + 4 * heads + 8;
    g_assert_cmpint(block_kept(llama, NULL), ==, 16 * h + rest);
    g_assert_cmpint(block_kept(llama, "model.norm_kernel=fused"), ==, 8 * h + rest);
    g_assert_cmpint(block_kept(llama, "model.attention=flash_repeated"), ==,
                    16 * h + rest + 4 * (q - kv));
    g_assert_cmpint(block_kept(llama, "model.attention=eager"), ==, 16 * h + 8 * q + 8 * f + 8);
    g_assert_cmpint(block_kept(llama, "training.autocast=true"), ==, 26 * h + rest);
    g_assert_cmpint(block_kept(llama, "model.dropout=yes"), ==, 18 * h + rest);
    g_assert_cmpint(block_kept(llama, "training.checkpointing=full"), ==, 2 * h);
    const char *selective = "[model]\ncatalog = Llama-3.2-1B\n"
                            "[training]\ncheckpointing = selective\n";
    g_assert_cmpint(block_kept(selective, NULL), ==, 16 * h + rest);
    g_assert_cmpint(block_kept(selective, "training.selective=every_second_product"), ==,
                    4 * h + 4 * q + 2 * kv + 2 * f + 4 * heads);
}

static gboolean
warns(const ZpScenario *scenario, const char *words)
{
    for (guint i = 0; i + 1 < scenario->warnings->len; i++) { /* the last one is NULL */
        if (strstr(g_ptr_array_index(scenario->warnings, i), words) != NULL)
            return TRUE;
    }
    return FALSE;
}

static void
test_idle_activation_keys(void)
{
    const char *idle = "[training]\nselective = products\nreentrant = true\nloss_chunks = 4\n";
    g_autofree char *known = g_strconcat("[model]\ncatalog = GPT-2\n", idle, NULL);
    g_autoptr(ZpScenario) scenario = parse(known, NULL);
    g_assert_true(warns(scenario, "selective: has an effect under checkpointing = selective"));
    g_assert_true(warns(scenario, "reentrant: has an effect under checkpointing = full"));
    g_assert_true(warns(scenario, "loss_chunks: has an effect with a chunked loss"));
    /* Without operators none of them has, whatever the policy. */
    const char *policies[] = {"none", "selective", "full"};
    for (guint p = 0; p < G_N_ELEMENTS(policies); p++) {
        g_autofree char *set = g_strconcat("training.checkpointing=", policies[p], NULL);
        const char *sets[] = {set, NULL};
        g_autoptr(ZpScenario) total =
            parse(MODEL "[training]\nselective = products\nreentrant = true\nloss_chunks = 4\n"
                        "loss = chunked\n",
                  sets);
        const char *keys[] = {"selective", "reentrant", "loss_chunks", "loss"};
        for (guint k = 0; k < G_N_ELEMENTS(keys); k++) {
            g_autofree char *words =
                g_strconcat(keys[k], ": has no effect on a model described in this way", NULL);
            g_assert_true(warns(total, words));
        }
        g_assert_false(warns(total, "has an effect"));
    }
}

/* torch.autocast is for fp32 parameters: 16-bit ones beside it are a mixture nobody runs. */
static void
test_autocast_of_16_bits(void)
{
    const char *words = "precision.gathered is bf16: set precision.parameter = fp32";
    const char *text = "[model]\ncatalog = GPT-2\n[training]\nautocast = true\n[precision]\n";
    g_autofree char *narrow = g_strconcat(text, "parameter = bf16\n", NULL);
    g_autofree char *wide = g_strconcat(text, "parameter = fp32\n", NULL);
    g_autoptr(ZpScenario) odd = parse(narrow, NULL);
    g_autoptr(ZpScenario) usual = parse(wide, NULL);
    g_assert_true(warns(odd, words));
    g_assert_false(warns(usual, words));
}

/* Another policy is another model; another batch is not. */
static void
test_activation_keys_shape(void)
{
    g_autoptr(ZpScenario) base = parse("[model]\ncatalog = Llama-3.2-1B\n", NULL);
    const char *batch[] = {"training.micro_batch=2", NULL};
    const char *loss[] = {"training.loss=raw", NULL};
    const char *chunks[] = {"training.loss=chunked", "training.loss_chunks=4", NULL};
    const char *reentrant[] = {"training.reentrant=true", "training.checkpointing=full", NULL};
    const char *cast[] = {"training.autocast=true", "precision.parameter=fp32", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) same = zp_scenario_with(base, batch, &error);
    g_assert_no_error(error);
    g_assert_true(same->model == base->model);
    const char *const *all[] = {loss, chunks, reentrant};
    for (gsize i = 0; i < G_N_ELEMENTS(all); i++) {
        g_autoptr(ZpScenario) other = zp_scenario_with(base, (const char **)all[i], &error);
        g_assert_no_error(error);
        g_assert_true(other->model != base->model);
    }
    g_autoptr(ZpScenario) casting = zp_scenario_with(base, cast, &error);
    g_assert_no_error(error);
    check_value(casting, "precision", "compute", "bf16",
                "auto: same as gathered; bf16 below 8 bits, for integers and with autocast");
    g_assert_cmpint(casting->job.precision.gathered, ==, ZP_DTYPE_FP32);
}

static void
test_warnings(void)
{
    g_autoptr(ZpScenario) scenario =
        parse(MODEL "[zero]\nstage = 1\nprefetch = 2\nwrap = size\nwrap_blocks = 2\n", NULL);
    g_assert_cmpuint(scenario->warnings->len, ==, 3);
    g_assert_nonnull(strstr(g_ptr_array_index(scenario->warnings, 0), "t.ini:6: [zero] prefetch"));
    g_assert_nonnull(strstr(g_ptr_array_index(scenario->warnings, 1), "wrap_blocks"));
    g_assert_null(g_ptr_array_index(scenario->warnings, 2));
}

/* --- what is refused --- */

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
    gint64 start = g_get_monotonic_time();
    g_assert_null(zp_scenario_parse(text, (gssize)length, "t.ini", NULL, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_SYNTAX);
    if (strstr(error->message, say) == NULL)
        g_error("%s", error->message);
    g_assert_cmpint(g_get_monotonic_time() - start, <, 10 * G_USEC_PER_SEC);
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
    gint64 start = g_get_monotonic_time();
    g_autoptr(GError) error = NULL;
    g_assert_null(zp_scenario_parse(many->str, -1, "t.ini", NULL, &error));
    g_assert_true(g_str_has_prefix(error->message, "t.ini:100002: more than 100000 keys\n"));
    g_assert_true(g_str_has_suffix(error->message, "t.ini: and more"));
    g_assert_cmpint(g_get_monotonic_time() - start, <, 10 * G_USEC_PER_SEC);
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
    check_value(scenario, "model", "total_parameters", "7e9 elements", origin);
    g_unlink(path);
}

/* --- the dump --- */

static const char *
place_of(const ZpSchemaKey *key, const ZpJob *job)
{
    const void *base = key->place == ZP_SCHEMA_IN_DEEPSPEED ? (const void *)job->deepspeed
                       : key->place == ZP_SCHEMA_IN_FSDP    ? (const void *)job->fsdp
                                                            : (const void *)job;
    return (const char *)base + key->offset;
}

static gboolean
plays_a_part(const ZpSchemaKey *key, const char *runtime)
{
    if (key->place == ZP_SCHEMA_IN_DEEPSPEED)
        return strcmp(runtime, "deepspeed") == 0;
    return strcmp(runtime, "deepspeed") != 0 && strcmp(runtime, "ideal") != 0;
}

static void
check_same_job(const ZpJob *a, const ZpJob *b)
{
    g_assert_cmpstr(a->runtime, ==, b->runtime);
    g_assert_true(a->optimizer == b->optimizer);
    gsize n = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        /* Settings of a framework that does not run are not dumped. */
        if (table[i].place != ZP_SCHEMA_IN_JOB && !plays_a_part(&table[i], a->runtime))
            continue;
        const char *x = place_of(&table[i], a), *y = place_of(&table[i], b);
        if (memcmp(x, y, table[i].size) != 0)
            g_error("%s.%s differs", table[i].section, table[i].key);
    }
    g_assert_cmpint(a->model->n_elements, ==, b->model->n_elements);
    g_assert_cmpuint(a->model->layers->len, ==, b->model->layers->len);
}

static void
check_same_values(const ZpScenario *a, const ZpScenario *b)
{
    g_assert_cmpuint(a->values->len, ==, b->values->len);
    for (guint i = 0; i < a->values->len; i++) {
        const ZpScenarioValue *x = &g_array_index(a->values, ZpScenarioValue, i);
        const ZpScenarioValue *y = &g_array_index(b->values, ZpScenarioValue, i);
        g_assert_cmpstr(x->section, ==, y->section);
        g_assert_cmpstr(x->key, ==, y->key);
        g_assert_cmpstr(x->text, ==, y->text);
    }
}

static void
check_dump(const ZpScenario *scenario)
{
    g_autoptr(GString) dump = g_string_new(NULL);
    zp_scenario_dump(scenario, dump);
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) back = zp_scenario_parse(dump->str, -1, "dump.ini", NULL, &error);
    if (back == NULL)
        g_error("%s\n%s", error->message, dump->str);
    g_assert_cmpstr(back->name, ==, scenario->name);
    check_same_job(&scenario->job, &back->job);
    check_same_values(scenario, back);
    g_assert_cmpuint(scenario->axes->len, ==, back->axes->len);
}

/* A legal value of a key, chosen at random; NULL where none can be made without a catalogue. */
static char *
some_value(const ZpSchemaKey *key, GRand *random)
{
    ZpSchemaValue value = {0};
    switch (key->kind) {
    case ZP_SCHEMA_COUNT:
    case ZP_SCHEMA_BYTES:
    case ZP_SCHEMA_TIME: {
        gint64 span = MIN(key->max - key->min, (gint64)1 << g_rand_int_range(random, 0, 24));
        value.integer = key->min + (gint64)(g_rand_double(random) * (double)span);
        break;
    }
    case ZP_SCHEMA_BANDWIDTH:
    case ZP_SCHEMA_FLOPS:
    case ZP_SCHEMA_RATIO:
        value.real = key->low + g_rand_double(random) * (MIN(key->high, 1e15) - key->low);
        break;
    case ZP_SCHEMA_ENUM: {
        int n = 0;
        while (key->choices[n].name != NULL)
            n++;
        value.integer = key->choices[g_rand_int_range(random, 0, n)].value;
        break;
    }
    case ZP_SCHEMA_BOOL:
        value.integer = g_rand_boolean(random);
        break;
    case ZP_SCHEMA_DTYPE:
        do
            value.integer = g_rand_int_range(random, 0, ZP_N_DTYPES);
        while ((key->dtypes & 1u << value.integer) == 0);
        break;
    case ZP_SCHEMA_TEXT:
    case ZP_N_SCHEMA_KINDS:
        return NULL;
    }
    return zp_schema_print(key, &value);
}

/* Scenarios with random settings: those that are legal dump and load back to themselves. */
static void
test_dump_round_trip(void)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(7);
    gsize n = 0;
    int legal = 0;
    const ZpSchemaKey *table = zp_schema_table(&n);
    for (int round = 0; round < 400; round++) {
        g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
        for (int i = g_rand_int_range(random, 0, 9); i > 0; i--) {
            const ZpSchemaKey *key = &table[g_rand_int_range(random, ZP_KEY_MICRO_BATCH, (int)n)];
            g_autofree char *value = some_value(key, random);
            g_autofree char *set = g_strdup_printf("%s.%s=%s", key->section, key->key, value);
            if (value != NULL)
                g_strv_builder_add(builder, set);
        }
        if (g_rand_int_range(random, 0, 4) == 0)
            g_strv_builder_add(builder, "sweep.zero.stage=0..3");
        g_auto(GStrv) sets = g_strv_builder_end(builder);
        g_autoptr(ZpScenario) scenario =
            zp_scenario_parse(round % 2 ? MODEL : "[layer a]\nparameters = 123\nrepeat = 9\n", -1,
                              "t.ini", (const char *const *)sets, NULL);
        if (scenario == NULL)
            continue;
        legal++;
        check_dump(scenario);
    }
    g_assert_cmpint(legal, >, 100);
}

/* A dump of a sweep keeps what is derived derived: its points are the same. */
static void
test_dump_of_a_sweep(void)
{
    g_autoptr(ZpScenario) scenario = parse(MODEL "[sweep]\nworld.ranks = 8, 16\n", NULL);
    g_autoptr(GString) dump = g_string_new(NULL);
    zp_scenario_dump(scenario, dump);
    g_assert_nonnull(strstr(dump->str, "shard_group = auto  # 8 ranks; auto: all ranks\n"));
    g_autoptr(ZpScenario) back = parse(dump->str, NULL);
    const char *sets[] = {"world.ranks=16", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) a = zp_scenario_with(scenario, sets, &error);
    g_assert_no_error(error);
    g_autoptr(ZpScenario) b = zp_scenario_with(back, sets, &error);
    g_assert_no_error(error);
    g_assert_cmpint(a->job.world.shard_group, ==, 16);
    check_same_job(&a->job, &b->job);
}

/* --- other settings on the same base --- */

static void
test_with(void)
{
    g_autoptr(ZpScenario) base = parse(MODEL "[world]\nranks = 8\n[sweep]\nzero.stage = 1\n", NULL);
    const char *sets[] = {"world.ranks=32", "zero.stage=1", NULL};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpScenario) point = zp_scenario_with(base, sets, &error);
    g_assert_no_error(error);
    g_assert_true(point->model == base->model);
    g_assert_cmpuint(point->axes->len, ==, 0);
    check_value(point, "world", "ranks", "32 ranks", "sweep");
    check_value(point, "world", "shard_group", "32 ranks", "auto: all ranks");
    check_value(point, "model", "pieces", "32", "t.ini:3");
    g_assert_cmpint(base->job.world.ranks, ==, 8);

    const char *bigger[] = {"model.total_parameters=8e9", NULL};
    g_autoptr(ZpScenario) other = zp_scenario_with(point, bigger, &error);
    g_assert_no_error(error);
    g_assert_true(other->model != base->model);
    g_assert_cmpint(other->model->n_elements, ==, 8000000000);
    g_assert_cmpint(other->job.world.ranks, ==, 32);

    const char *wrong[] = {"world.shard_group=5", NULL};
    g_assert_null(zp_scenario_with(base, wrong, &error));
    g_assert_error(error, ZP_SCENARIO_ERROR, ZP_SCENARIO_ERROR_RANGE);
    g_assert_nonnull(strstr(error->message, "sweep: [world] shard_group:"));
}

/* A point made from a base equals the same file read with the same settings. */
static void
test_with_equals_load(void)
{
    const char *text = "[layer a]\nparameters = 1000\nrepeat = 6\n[layer b]\nparameters = 5\n";
    g_autoptr(ZpScenario) base = parse(text, NULL);
    const char *const sets[][4] = {
        {"zero.stage=0", "precision.parameter=fp32", NULL},
        {"layer.a.repeat=2", "zero.prefetch=1", NULL},
        {"optimizer.name=sgd", "zero.wrap=model", NULL},
        {"device.gpu=H100-SXM-80", "training.sequence=77", "node.gpus=4", NULL},
        {"precision.compute=fp16", "zero.outer=root", NULL},
        {NULL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(sets); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpScenario) point = zp_scenario_with(base, sets[i], &error);
        g_assert_no_error(error);
        g_autoptr(ZpScenario) fresh = parse(text, sets[i]);
        check_same_job(&point->job, &fresh->job);
        check_same_values(point, fresh);
        g_assert_cmpuint(point->warnings->len, ==, fresh->warnings->len);
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/scenario/read", test_read);
    g_test_add_func("/scenario/origins", test_origins);
    g_test_add_func("/scenario/auto", test_auto);
    g_test_add_func("/scenario/layers", test_layers);
    g_test_add_func("/scenario/activation-keys", test_activation_keys);
    g_test_add_func("/scenario/activation-keys-shape", test_activation_keys_shape);
    g_test_add_func("/scenario/idle-activation-keys", test_idle_activation_keys);
    g_test_add_func("/scenario/autocast-of-16-bits", test_autocast_of_16_bits);
    g_test_add_func("/scenario/warnings", test_warnings);
    g_test_add_func("/scenario/refusals", test_refusals);
    g_test_add_func("/scenario/bad-sets", test_bad_sets);
    g_test_add_func("/scenario/all-errors", test_all_errors);
    g_test_add_func("/scenario/bounds", test_bounds);
    g_test_add_func("/scenario/load", test_load);
    g_test_add_func("/scenario/dump-round-trip", test_dump_round_trip);
    g_test_add_func("/scenario/dump-of-a-sweep", test_dump_of_a_sweep);
    g_test_add_func("/scenario/with", test_with);
    g_test_add_func("/scenario/with-equals-load", test_with_equals_load);
    return g_test_run();
}
