#include "reports/receipts/json.h"
#include "reports/text/words.h"

static void
micro_batch(JsonBuilder *json, gint16 index)
{
    if (index == ZP_TAPE_NONE)
        zp_receipt_text(json, "micro_batch", NULL);
    else
        zp_receipt_int(json, "micro_batch", index);
}

static void
operation(JsonBuilder *json, const ZpTape *tape, const ZpObserverSpan *span, ZpTime exposed)
{
    const ZpTapeInstr *instr = &tape->instrs[span->instr];
    const ZpTapeWork *work = &tape->works[instr->a];
    json_builder_begin_object(json);
    zp_receipt_text(json, "stream", tape->streams[instr->stream].name);
    zp_receipt_text(json, "kind", tape->vocabulary->kinds[work->kind]);
    zp_receipt_text(json, "phase", tape->vocabulary->phases[instr->phase]);
    zp_receipt_text(json, "unit",
                    instr->unit == ZP_TAPE_NONE
                        ? NULL
                        : g_ptr_array_index(tape->unit_names, (guint)instr->unit));
    micro_batch(json, instr->micro_batch);
    zp_receipt_int(json, "step", zp_recorder_step_of(tape, span->instr));
    zp_receipt_int(json, "rank", span->rank);
    zp_receipt_int(json, "start_ps", span->start);
    zp_receipt_int(json, "end_ps", span->end);
    zp_receipt_int(json, "exposed_ps", exposed);
    zp_receipt_int(json, "bytes", work->bytes);
    zp_receipt_int(json, "wire_bytes", work->wire_bytes);
    zp_receipt_text(json, "rule", zp_tape_rule(tape, work));
    json_builder_end_object(json);
}

static void
memory_change(JsonBuilder *json, const ZpTape *tape, const ZpObserverChange *change)
{
    json_builder_begin_object(json);
    zp_receipt_int(json, "time_ps", change->time);
    zp_receipt_text(json, "space", zp_words_spaces[change->space]);
    zp_receipt_text(json, "class", tape->vocabulary->classes[change->class_id]);
    zp_receipt_int(json, "delta_bytes", change->delta_bytes);
    zp_receipt_int(json, "class_bytes", change->class_bytes);
    zp_receipt_int(json, "total_bytes", change->total_bytes);
    zp_receipt_int(json, "rank", change->rank);
    json_builder_end_object(json);
}

static void
allocator_curves(JsonBuilder *json, const ZpRecorder *recorder)
{
    gsize n;
    const ZpObserverPools *pools = zp_recorder_pools(recorder, &n);
    zp_receipt_array(json, "allocator");
    for (gsize i = 0; i < n; i++) {
        json_builder_begin_object(json);
        zp_receipt_int(json, "time_ps", pools[i].time);
        zp_receipt_int(json, "allocated_bytes", pools[i].allocated_bytes);
        zp_receipt_int(json, "active_bytes", pools[i].active_bytes);
        zp_receipt_int(json, "reserved_bytes", pools[i].reserved_bytes);
        json_builder_end_object(json);
    }
    json_builder_end_array(json);
}

void
zp_receipt_trace(JsonBuilder *json, const ZpTape *tape, const ZpRecorder *recorder)
{
    gsize n_spans, n_changes;
    const ZpObserverSpan *spans = zp_recorder_spans(recorder, &n_spans);
    const ZpObserverChange *changes = zp_recorder_changes(recorder, &n_changes);
    g_autofree ZpTime *exposed = zp_recorder_exposed(recorder, tape);
    zp_receipt_object(json, "trace");
    zp_receipt_array(json, "operations");
    for (gsize i = 0; i < n_spans; i++)
        operation(json, tape, &spans[i], exposed[i]);
    json_builder_end_array(json);
    zp_receipt_array(json, "memory");
    for (gsize i = 0; i < n_changes; i++)
        memory_change(json, tape, &changes[i]);
    json_builder_end_array(json);
    allocator_curves(json, recorder);
    json_builder_end_object(json);
}
