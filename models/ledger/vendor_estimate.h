/* DeepSpeed's own memory estimators, reproduced to the byte: what its documentation tells people
 * to run before a job.  They know neither buckets nor gathered parameters, padding, persistent
 * parameters or activations; zeropeak prints them next to what it simulates.
 *
 * Source: DeepSpeed 0.19, runtime/zero/stage_1_and_2.py
 * (estimate_zero2_model_states_mem_needs) and runtime/zero/stage3.py
 * (estimate_zero3_model_states_mem_needs).  The documentation page still prints an older formula
 * for ZeRO-2 (4 T + 16 T / G); the code says 2 T + 18 T / G. */
#pragma once

#include <glib.h>

#include "models/job/job.h"

typedef struct {
    gint64 total_elements;
    gint64 largest_layer_elements; /* direct parameters of the largest single module; ZeRO-3 only */
    gint32 gpus_per_node, nodes;
    gboolean offload_optimizer;
    gboolean offload_param; /* ZeRO-3, with offload_optimizer only */
    gboolean zero_init;     /* ZeRO-3 */
    double buffer_factor;   /* additional_buffer_factor: 1.5 */
} ZpVendorQuestion;

typedef struct {
    gint64 host_bytes;          /* per node */
    gint64 device_bytes;        /* per GPU */
    gint64 largest_layer_bytes; /* ZeRO-3: part of device_bytes; 0 for ZeRO-2 */
} ZpVendorEstimate;

ZpVendorEstimate zp_vendor_estimate_zero2(const ZpVendorQuestion *question);
ZpVendorEstimate zp_vendor_estimate_zero3(const ZpVendorQuestion *question);
/* Fills total and largest layer as DeepSpeed's model_to_params does: shared parameters once; the
 * largest layer is the module with most direct parameters (a layer where no module is known). */
void zp_vendor_estimate_measure(const ZpModel *model, ZpVendorQuestion *question);

/* The question that a job is, at stages 2 and 3 (the estimators know no other).  Offload to NVMe
 * counts as offload: they know one place beside the device.  Fails with ZP_RUNTIME_ERROR at other
 * stages and where the ranks do not fill their nodes evenly. */
gboolean zp_vendor_estimate_ask(const ZpJob *job, ZpVendorQuestion *question,
                                GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The estimator of the stage. */
ZpVendorEstimate zp_vendor_estimate_stage(int stage, const ZpVendorQuestion *question);
