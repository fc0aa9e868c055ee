/* Receipts: a run or a ledger as JSON or CSV for programs.  The same input gives the same bytes.
 *
 * Bytes and picoseconds are integers (*_bytes, *_ps); seconds (*_s) and ratios are doubles for
 * convenience.  Names are the words of the vocabulary.  Absent values are null.
 *
 * "zeropeak-run/1":
 *   schema, zeropeak (version), name, source
 *   inputs      [{section, key, value, origin}], effective, in the order of the scenario schema
 *   job         {runtime, model, parameter_elements, stage, ranks, shard_group (of those that hold
 *               the same parameters), tensor_parallel, sequence_parallel, context_parallel,
 *               pipeline_stages, units}
 *   step        {step_ps, step_s, step_low_ps, step_high_ps (with nine chances of ten between
 * them), grade (of the constants that price its layers: measured, scaled, assumed), exposed_ps,
 * exposed_s, host_blocked_ps, busy_ps {category: ps}, tokens_per_step, tokens_per_s, model_flops,
 * mfu, slowest_rank_ps, fastest_rank_ps} peak        {bytes, time_ps, time_s, rank, event {text,
 * op, stream, kind, class, role, bytes}, unit, phase, micro_batch, by_class {class: bytes},
 *               live_set {buffers, bytes, largest [{class, role, unit, bytes}]}}
 *               (time: where the device is then, not the host that runs ahead of it)
 *   persistent  {bytes, by_class}; host_peak_bytes
 *   parts       null, or [{part (compute, slowed, waiting, host, idle), kind (null: slowed, idle),
 *               time_ps}]: where the last step's time went; sums to step_ps (models/step/account.h)
 *   traffic     [{kind, phase, count, bytes, wire_bytes, busy_ps}]
 *   prices      [{category, kind, ranks (1: no collective), rule (what priced it), count, bytes,
 *               wire_bytes, busy_ps (alone), bus_bytes_per_s (wire bytes over busy time), flops}],
 *               of the last step: collectives, copies, kernels, the host's work
 *   allocator   null, or {allocated_bytes, active_bytes, reserved_bytes (peaks), device_bytes (with
 *               runtime overhead), event, request_bytes, time_ps (of the reserved peak), then
 *               allocated_then_bytes, rounding_bytes, waiting_bytes, fragmented_bytes,
 *               other_streams_bytes, other_sizes_bytes, segments, deferred, flushes, pools
 *               [{stream, size_class, segments, allocated_bytes, active_bytes, reserved_bytes,
 *               largest_free_bytes}]}: models and words of sim/allocator/allocator.h
 *   verdict     {verdict ("fits", "tight", "does not fit"; null: memory is unlimited), fits (the
 *               simulated figure itself), needed_bytes, needed_low_bytes, needed_high_bytes (the
 * band; reserved with an allocator, else the peak; without contingency), capacity_bytes,
 * contingency_bytes, headroom_bytes, first_over (event text)} ledger      as below without its head
 *   warnings    [text]
 *   trace       with a recorder: {operations [{stream, kind, phase, unit, micro_batch, step, rank,
 *               start_ps, end_ps, exposed_ps, bytes, wire_bytes, rule}],
 *               memory [{time_ps, space, class, delta_bytes, class_bytes, total_bytes, rank}],
 *               allocator [{time_ps, allocated_bytes, active_bytes, reserved_bytes}] (rank 0)}
 *
 * "zeropeak-ledger/1": schema, zeropeak, name, source, inputs, job, then ledger {
 *   rows [{name, class, dtype, bytes_per_element, copies, owners, elements, padding_bytes,
 *   persistent_bytes, evidence}], bound {persistent_bytes, gathered_bytes, prefetched_bytes,
 *   buckets_bytes, ...}, total_bytes, capacity_bytes, headroom_bytes, fits}, then overheads
 *   [{name, bytes, source, confidence}]: what the runtime overhead is made of, empty where it was
 *   stated as a whole
 *
 * "zeropeak-validation/1": schema, zeropeak, rows [{id, subset, gpu, family, model, strategy,
 * ranks, micro_batch, cut (ranks that share a replica), measured_ms, simulated_ms, error,
 * null_error, exposed, rule, reason, memory [{figure, measured_mib, simulated_mib, error,
 * measured_fits, simulated_fits, reason}]}]; null: not stated, or not simulated.  Then subsets
 * [{subset, time {rows, mean, median, p90, max, bias}, null_model, ratios, memory {figure: the
 * same}}]
 *
 * The ledger's CSV has one record type per line, told by its first column:
 *   record,name,class,dtype,bytes_per_element,copies,owners,elements,padding_bytes,bytes,evidence
 * records "row", "bound" and "total" carry bytes; "capacity" and "headroom" too; "input" carries
 * section.key in name, its value in class and its origin in evidence.  RFC 4180 quoting, "\n"
 * line ends. */
#pragma once

#include "models/published/validate.h"
#include "reports/store/recorder.h"
#include "reports/text/report.h"

/* At most this many buffers of the live set are listed. */
#define ZP_RECEIPT_LIVE 50

/* `trace` may be NULL.  Each returns text ending in a newline; free with g_free(). */
char *zp_receipt_run_json(const ZpReportRun *run, const ZpRecorder *trace);
char *zp_receipt_ledger_json(const ZpReportRun *run);
char *zp_receipt_ledger_csv(const ZpReportRun *run);
char *zp_receipt_validation_json(const ZpValidation *validation);
/* "zeropeak-sweep/1": schema, zeropeak, name, source, axes [key], points [{values [text], step_ps,
 * exposed_ps, tokens_per_rank, peak_bytes, persistent_bytes, fits, front, knee} or {values,
 * error}]. */
char *zp_receipt_sweep_json(const ZpReportSweep *sweep, const ZpReportPoint *points,
                            gsize n_points);
