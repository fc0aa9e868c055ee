/* Any text as a table of runs: it is refused with its line, or each of its rows becomes a job, for
 * the time of its step and for its memory, or says why not. */
#include <stdint.h>

#include "models/published/memory_job_internal.h"
#include "models/published/validate.h"
#include "tests/unit/fixtures/interned.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_table(const ZpValidateCsv *csv)
{
    g_assert_cmpuint(csv->records->len, ==, csv->lines->len);
    int line = 1;
    for (guint r = 0; r < csv->records->len; r++) {
        const GPtrArray *record = g_ptr_array_index(csv->records, r);
        g_assert_cmpuint(record->len, ==, csv->names->len);
        g_assert_cmpint(g_array_index(csv->lines, gint, r), >, line);
        line = g_array_index(csv->lines, gint, r);
    }
}

static void
check_job(ZpValidateJob *job, GError *error)
{
    g_assert_true((job == NULL) == (error != NULL));
    if (job != NULL) {
        g_assert_cmpint(job->job.world.ranks, >, 0);
        g_assert_cmpint(job->job.world.ranks % job->job.world.shard_group, ==, 0);
        g_assert_true(job->job.model == job->model);
    }
    g_clear_error(&error);
    zp_validate_job_free(job);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static ZpHardware *hardware;
    if (hardware == NULL)
        hardware = zp_hardware_load();
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(ZpValidateCsv) csv = zp_validate_csv_parse(text, &error);
    if (csv == NULL) {
        g_assert_error(error, ZP_VALIDATE_ERROR, ZP_VALIDATE_ERROR_SYNTAX);
        return 0;
    }
    check_table(csv);
    for (guint r = 0; r < MIN(csv->records->len, 3); r++) {
        GError *refusal = NULL;
        ZpValidateJob *job = zp_validate_job_new(csv, r, hardware, NULL, &refusal);
        check_job(job, refusal);
        ZpValidateRecord record = {csv, r};
        refusal = NULL;
        job = zp_validate_memory_job_new(&record, hardware, &refusal);
        check_job(job, refusal);
    }
    return 0;
}
