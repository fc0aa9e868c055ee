#include "models/published/record_internal.h"

/* Words of a strategy are read by meaning, in any order; remarks in brackets are not words. */
static void
test_strategies(void)
{
    static const struct {
        const char *text;
        int stage; /* -1: refused */
    } rows[] = {{"tp2 + zero1 (over all dp ranks)", 1},
                {"zero1 + tp8 pp4 dp2", 1},
                {"none", 0},
                {"no_shard", 0},
                {"zero0 + tp8 + pp12 + dp4", 0},
                {"tp4 dp2", 0},
                {"ddp + tp32", 0},
                {"SHARD_GRAD_OP", 2},
                {"zero2 (repository script)", 2},
                {"FULL_SHARD", 3},
                {"fsdp32 x tp8", 3},
                {"hsdp", 3},
                {"zero1 sharded in the 8-GPU node, replicated across nodes", 1},
                {"zero9", -1},
                {"pipedream", -1},
                {"zero1 + zero3", -1}};
    for (gsize r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autofree char *text = g_strdup_printf("id,strategy\nA-1,\"%s\"\n", rows[r].text);
        g_autoptr(GError) error = NULL;
        g_autoptr(ZpValidateCsv) csv = zp_validate_csv_parse(text, &error);
        g_assert_no_error(error);
        int stage = -2;
        gboolean ok = zp_validate_record_stage(&(ZpValidateRecord){csv, 0}, &stage, &error);
        g_assert_cmpint(ok ? stage : -1, ==, rows[r].stage);
        g_assert_true(ok == (error == NULL));
    }
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/strategy/words", test_strategies);
    return g_test_run();
}
