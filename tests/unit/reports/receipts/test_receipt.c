#include <json-glib/json-glib.h>

#include "reports/receipts/receipt.h"
#include "reports/summary/summary.h"
#include "tests/unit/fixtures/report_fixture.h"

static void
test_run_json(void)
{
    ReportFixture fx;
    report_fixture_init(&fx);
    g_autofree char *plain = zp_receipt_run_json(&fx.run, NULL);
    report_fixture_golden("run.json", plain);
    g_autofree char *traced = zp_receipt_run_json(&fx.run, fx.recorder);
    report_fixture_golden("run-trace.json", traced);
    g_autofree char *again = zp_receipt_run_json(&fx.run, fx.recorder);
    g_assert_cmpstr(traced, ==, again);
    report_fixture_clear(&fx);
}

/* What the golden file alone would not notice: the document is JSON and its parts sum up. */
static void
test_run_json_sums(void)
{
    ReportFixture fx;
    report_fixture_init(&fx);
    g_autofree char *text = zp_receipt_run_json(&fx.run, fx.recorder);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) root = json_from_string(text, &error);
    g_assert_no_error(error);
    JsonObject *peak = json_object_get_object_member(json_node_get_object(root), "peak");
    JsonObject *classes = json_object_get_object_member(peak, "by_class");
    g_autoptr(GList) members = json_object_get_members(classes);
    gint64 sum = 0;
    for (GList *m = members; m != NULL; m = m->next)
        sum += json_object_get_int_member(classes, m->data);
    /* Two shards, two states, two gathered units and the activation. */
    g_assert_cmpint(sum, ==, 580 * FIXTURE_MB);
    g_assert_cmpint(json_object_get_int_member(peak, "bytes"), ==, sum);
    g_assert_cmpint(json_object_get_int_member(peak, "time_ps"), ==, 3 * ZP_TIME_PER_MS);
    JsonObject *live = json_object_get_object_member(peak, "live_set");
    g_assert_cmpint(json_object_get_int_member(live, "bytes"), ==, sum);
    report_fixture_clear(&fx);
}

static void
test_without_live_set_and_peak(void)
{
    ReportFixture fx;
    report_fixture_init(&fx);
    fx.run.live_set = NULL;
    fx.run.source = NULL;
    fx.run.warnings = NULL;
    fx.summary.peak_instr = ZP_TAPE_NONE;
    fx.summary.step_ps = 0;
    g_autofree char *text = zp_receipt_run_json(&fx.run, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) root = json_from_string(text, &error);
    g_assert_no_error(error);
    JsonObject *object = json_node_get_object(root);
    g_assert_true(json_object_get_null_member(object, "source"));
    JsonObject *peak = json_object_get_object_member(object, "peak");
    g_assert_true(json_object_get_null_member(peak, "event"));
    g_assert_true(json_object_get_null_member(peak, "live_set"));
    g_autoptr(GString) out = g_string_new(NULL);
    zp_summary_run(&fx.run, FALSE, out);
    g_assert_null(strstr(out->str, "nan"));
    g_assert_null(strstr(out->str, "inf"));
    report_fixture_clear(&fx);
}

static void
test_ledger(void)
{
    ReportFixture fx;
    report_fixture_init(&fx);
    /* What `zeropeak ledger` has: nothing simulated. */
    fx.run.tape = NULL;
    fx.run.summary = NULL;
    fx.run.live_set = NULL;
    g_autofree char *json = zp_receipt_ledger_json(&fx.run);
    report_fixture_golden("ledger.json", json);
    g_autofree char *csv = zp_receipt_ledger_csv(&fx.run);
    report_fixture_golden("ledger.csv", csv);
    report_fixture_clear(&fx);
}

static void
test_json_escapes(void)
{
    ReportFixture fx;
    report_fixture_init(&fx);
    fx.run.name = "a \"quoted\"\nname \\ with caf\303\251";
    g_autofree char *text = zp_receipt_ledger_json(&fx.run);
    g_autoptr(GError) error = NULL;
    g_autoptr(JsonNode) root = json_from_string(text, &error);
    g_assert_no_error(error);
    g_assert_cmpstr(json_object_get_string_member(json_node_get_object(root), "name"), ==,
                    fx.run.name);
    report_fixture_clear(&fx);
}

int
main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/receipt/run", test_run_json);
    g_test_add_func("/receipt/run/sums", test_run_json_sums);
    g_test_add_func("/receipt/run/bare", test_without_live_set_and_peak);
    g_test_add_func("/receipt/ledger", test_ledger);
    g_test_add_func("/receipt/escapes", test_json_escapes);
    return g_test_run();
}
