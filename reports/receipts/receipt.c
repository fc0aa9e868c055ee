#include "reports/receipts/receipt.h"

#include "models/step/prices.h"
#include "reports/receipts/json.h"
#include "reports/text/event.h"
#include "reports/text/words.h"

static void
by_class(JsonBuilder *json, const gint64 *bytes)
{
    zp_receipt_object(json, "by_class");
    for (int c = 0; c < ZP_N_CLASSES; c++) {
        if (bytes[c] != 0)
            zp_receipt_int(json, zp_vocabulary_class_name((ZpClass)c), bytes[c]);
    }
    json_builder_end_object(json);
}

static void
step(JsonBuilder *json, const ZpStepSummary *s)
{
    double seconds = zp_time_to_seconds(s->step_ps);
    zp_receipt_object(json, "step");
    zp_receipt_int(json, "step_ps", s->step_ps);
    zp_receipt_double(json, "step_s", seconds);
    zp_receipt_int(json, "step_low_ps", s->step_low_ps);
    zp_receipt_int(json, "step_high_ps", s->step_high_ps);
    zp_receipt_text(json, "grade", zp_grade_name(s->grade));
    zp_receipt_int(json, "exposed_ps", s->exposed_ps);
    zp_receipt_double(json, "exposed_s", zp_time_to_seconds(s->exposed_ps));
    zp_receipt_int(json, "host_blocked_ps", s->host_blocked_ps);
    zp_receipt_object(json, "busy_ps");
    for (int c = 0; c < ZP_TAPE_N_CATEGORIES; c++)
        zp_receipt_int(json, zp_words_categories[c], s->busy_ps[c]);
    json_builder_end_object(json);
    zp_receipt_int(json, "tokens_per_step", s->tokens_per_step);
    zp_receipt_double(json, "tokens_per_s",
                      seconds > 0.0 ? (double)s->tokens_per_step / seconds : 0.0);
    zp_receipt_double(json, "model_flops", s->model_flops);
    zp_receipt_double(json, "mfu", s->mfu);
    zp_receipt_int(json, "slowest_rank_ps", s->slowest_rank_ps);
    zp_receipt_int(json, "fastest_rank_ps", s->fastest_rank_ps);
    json_builder_end_object(json);
}

static void
event(JsonBuilder *json, const ZpTape *tape, gint32 instr)
{
    if (instr == ZP_TAPE_NONE) {
        zp_receipt_text(json, "event", NULL);
        return;
    }
    ZpEvent e;
    zp_event_fill(tape, instr, &e);
    g_autofree char *text = zp_event_text(tape, instr);
    zp_receipt_object(json, "event");
    zp_receipt_text(json, "text", text);
    zp_receipt_text(json, "op", e.op);
    zp_receipt_text(json, "stream", e.stream);
    zp_receipt_text(json, "kind", e.kind);
    zp_receipt_text(json, "class", e.class_name);
    zp_receipt_text(json, "role", e.role);
    zp_receipt_int(json, "bytes", e.bytes);
    json_builder_end_object(json);
    zp_receipt_text(json, "unit", e.unit);
    zp_receipt_text(json, "phase", e.phase);
    if (e.micro_batch == ZP_TAPE_NONE)
        zp_receipt_text(json, "micro_batch", NULL);
    else
        zp_receipt_int(json, "micro_batch", e.micro_batch);
}

static void
live_set(JsonBuilder *json, const ZpTape *tape, const GArray *live)
{
    if (live == NULL) {
        zp_receipt_text(json, "live_set", NULL);
        return;
    }
    gint64 bytes = 0;
    for (guint i = 0; i < live->len; i++)
        bytes += tape->buffers[g_array_index(live, ZpPlayLive, i).buffer].bytes;
    zp_receipt_object(json, "live_set");
    zp_receipt_int(json, "buffers", live->len);
    zp_receipt_int(json, "bytes", bytes);
    zp_receipt_array(json, "largest");
    for (guint i = 0; i < MIN(live->len, ZP_RECEIPT_LIVE); i++) {
        const ZpPlayLive *entry = &g_array_index(live, ZpPlayLive, i);
        const ZpTapeBuffer *buffer = &tape->buffers[entry->buffer];
        json_builder_begin_object(json);
        zp_receipt_text(json, "class", tape->vocabulary->classes[entry->class_id]);
        zp_receipt_text(json, "role", tape->vocabulary->roles[buffer->role]);
        zp_receipt_text(json, "unit",
                        buffer->unit == ZP_TAPE_NONE
                            ? NULL
                            : g_ptr_array_index(tape->unit_names, (guint)buffer->unit));
        zp_receipt_int(json, "bytes", buffer->bytes);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
    json_builder_end_object(json);
}

static void
peak(JsonBuilder *json, const ZpReportRun *run)
{
    const ZpStepSummary *s = run->summary;
    zp_receipt_object(json, "peak");
    zp_receipt_int(json, "bytes", s->peak_bytes);
    zp_receipt_int(json, "time_ps", s->peak_time);
    zp_receipt_double(json, "time_s", zp_time_to_seconds(s->peak_time));
    zp_receipt_int(json, "rank", s->peak_rank);
    event(json, run->tape, s->peak_instr);
    by_class(json, s->peak_by_class);
    live_set(json, run->tape, run->live_set);
    json_builder_end_object(json);
    zp_receipt_object(json, "persistent");
    zp_receipt_int(json, "bytes", s->persistent_bytes);
    by_class(json, s->persistent_by_class);
    json_builder_end_object(json);
    zp_receipt_int(json, "host_peak_bytes", s->host_peak_bytes);
}

static void
traffic(JsonBuilder *json, const ZpStepSummary *s)
{
    zp_receipt_array(json, "traffic");
    for (int i = 0; i < s->n_traffic; i++) {
        const ZpStepTraffic *t = &s->traffic[i];
        json_builder_begin_object(json);
        zp_receipt_text(json, "kind", zp_vocabulary_kind_name(t->kind));
        zp_receipt_text(json, "phase", zp_vocabulary_phase_name(t->phase));
        zp_receipt_int(json, "count", t->count);
        zp_receipt_int(json, "bytes", t->bytes);
        zp_receipt_int(json, "wire_bytes", t->wire_bytes);
        zp_receipt_int(json, "busy_ps", t->busy_ps);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static void
parts(JsonBuilder *json, const GArray *parts_of_step)
{
    if (parts_of_step == NULL) {
        zp_receipt_text(json, "parts", NULL);
        return;
    }
    zp_receipt_array(json, "parts");
    for (guint p = 0; p < parts_of_step->len; p++) {
        const ZpStepPart *part = &g_array_index(parts_of_step, ZpStepPart, p);
        gboolean has_kind = part->part != ZP_STEP_PART_SLOWED && part->part != ZP_STEP_PART_IDLE;
        json_builder_begin_object(json);
        zp_receipt_text(json, "part", zp_step_part_name(part->part));
        zp_receipt_text(json, "kind", has_kind ? zp_vocabulary_kind_name(part->kind) : NULL);
        zp_receipt_int(json, "time_ps", part->time_ps);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static void
prices(JsonBuilder *json, const ZpTape *tape)
{
    g_autoptr(GArray) table = zp_step_prices(tape);
    zp_receipt_array(json, "prices");
    for (guint i = 0; i < table->len; i++) {
        const ZpStepPrice *p = &g_array_index(table, ZpStepPrice, i);
        json_builder_begin_object(json);
        zp_receipt_text(json, "category", zp_words_categories[p->category]);
        zp_receipt_text(json, "kind", zp_vocabulary_kind_name(p->kind));
        zp_receipt_int(json, "ranks", p->ranks);
        zp_receipt_text(json, "rule", p->rule);
        zp_receipt_int(json, "count", p->count);
        zp_receipt_int(json, "bytes", p->bytes);
        zp_receipt_int(json, "wire_bytes", p->wire_bytes);
        zp_receipt_int(json, "busy_ps", p->busy_ps);
        zp_receipt_double(json, "bus_bytes_per_s", zp_step_price_bus_bytes_per_s(p));
        zp_receipt_double(json, "flops", p->flops);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static void
allocator_pools(JsonBuilder *json, const ZpReportRun *run)
{
    const ZpAllocatorResult *a = &run->summary->allocator;
    zp_receipt_array(json, "pools");
    for (int p = 0; p < a->n_pools; p++) {
        const ZpAllocatorPool *pool = &a->pools[p];
        json_builder_begin_object(json);
        zp_receipt_text(json, "stream", run->tape->streams[pool->stream].name);
        zp_receipt_text(json, "size_class", pool->small ? "small" : "large");
        zp_receipt_int(json, "segments", pool->n_segments);
        zp_receipt_int(json, "allocated_bytes", pool->bytes.allocated_bytes);
        zp_receipt_int(json, "active_bytes", pool->bytes.active_bytes);
        zp_receipt_int(json, "reserved_bytes", pool->bytes.reserved_bytes);
        zp_receipt_int(json, "largest_free_bytes", pool->largest_free_bytes);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

static void
allocator(JsonBuilder *json, const ZpReportRun *run)
{
    const ZpStepSummary *s = run->summary;
    const ZpAllocatorResult *a = &s->allocator;
    if (!s->has_allocator) {
        zp_receipt_text(json, "allocator", NULL);
        return;
    }
    g_autofree char *event = a->instr == ZP_TAPE_NONE ? NULL : zp_event_text(run->tape, a->instr);
    zp_receipt_object(json, "allocator");
    zp_receipt_int(json, "allocated_bytes", a->peak.allocated_bytes);
    zp_receipt_int(json, "active_bytes", a->peak.active_bytes);
    zp_receipt_int(json, "reserved_bytes", a->peak.reserved_bytes);
    zp_receipt_int(json, "device_bytes", s->reserved_bytes);
    zp_receipt_text(json, "event", event);
    zp_receipt_int(json, "request_bytes", a->request_bytes);
    zp_receipt_int(json, "time_ps", a->time);
    zp_receipt_int(json, "allocated_then_bytes", a->at_peak.allocated_bytes);
    zp_receipt_int(json, "rounding_bytes", a->rounding_bytes);
    zp_receipt_int(json, "waiting_bytes", a->waiting_bytes);
    zp_receipt_int(json, "fragmented_bytes", a->fragmented_bytes);
    zp_receipt_int(json, "other_streams_bytes", a->other_streams_bytes);
    zp_receipt_int(json, "other_sizes_bytes", a->other_sizes_bytes);
    zp_receipt_int(json, "segments", a->n_segments);
    zp_receipt_int(json, "deferred", a->n_deferred);
    zp_receipt_int(json, "flushes", a->n_flushes);
    allocator_pools(json, run);
    json_builder_end_object(json);
}

static void
verdict(JsonBuilder *json, const ZpReportRun *run)
{
    const ZpStepSummary *s = run->summary;
    g_autofree char *over =
        s->first_over_instr == ZP_TAPE_NONE ? NULL : zp_event_text(run->tape, s->first_over_instr);
    zp_receipt_object(json, "verdict");
    zp_receipt_verdict(json, s);
    zp_receipt_int(json, "needed_bytes", s->needed_bytes);
    zp_receipt_int(json, "needed_low_bytes", s->needed_low_bytes);
    zp_receipt_int(json, "needed_high_bytes", s->needed_high_bytes);
    zp_receipt_int(json, "capacity_bytes", s->capacity_bytes);
    zp_receipt_int(json, "contingency_bytes", s->contingency_bytes);
    zp_receipt_int(json, "headroom_bytes", s->headroom_bytes);
    zp_receipt_text(json, "first_over", over);
    json_builder_end_object(json);
}

char *
zp_receipt_run_json(const ZpReportRun *run, const ZpRecorder *trace)
{
    g_autoptr(JsonBuilder) json = json_builder_new();
    zp_receipt_head(json, run, "zeropeak-run/1");
    step(json, run->summary);
    peak(json, run);
    traffic(json, run->summary);
    parts(json, run->parts);
    prices(json, run->tape);
    allocator(json, run);
    verdict(json, run);
    zp_receipt_ledger(json, run->ledger);
    zp_receipt_array(json, "warnings");
    for (gsize i = 0; run->warnings != NULL && run->warnings[i] != NULL; i++)
        json_builder_add_string_value(json, run->warnings[i]);
    json_builder_end_array(json);
    if (trace != NULL)
        zp_receipt_trace(json, run->tape, trace);
    return zp_receipt_finish(json);
}

static void
add_overheads(JsonBuilder *json, const ZpDevice *device)
{
    zp_receipt_array(json, "overheads");
    for (int i = 0; i < device->n_overheads; i++) {
        const ZpOverhead *entry = &device->overheads[i];
        json_builder_begin_object(json);
        zp_receipt_text(json, "name", entry->name);
        zp_receipt_int(json, "bytes", entry->bytes);
        zp_receipt_text(json, "source", entry->evidence.source);
        zp_receipt_text(json, "confidence", entry->evidence.confidence);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

char *
zp_receipt_ledger_json(const ZpReportRun *run)
{
    g_autoptr(JsonBuilder) json = json_builder_new();
    zp_receipt_head(json, run, "zeropeak-ledger/1");
    zp_receipt_ledger(json, run->ledger);
    add_overheads(json, &run->job->device);
    return zp_receipt_finish(json);
}
