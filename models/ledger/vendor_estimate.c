#include "models/ledger/vendor_estimate.h"
#include "models/job/deepspeed.h"
#include "models/job/runtime.h"

ZpVendorEstimate
zp_vendor_estimate_zero2(const ZpVendorQuestion *question)
{
    gint64 total = question->total_elements;
    gint64 gpus = (gint64)question->nodes * question->gpus_per_node;
    if (question->offload_optimizer)
        return (ZpVendorEstimate){
            .host_bytes = (gint64)((double)(total * MAX(4 * gpus, 16)) * question->buffer_factor),
            .device_bytes = 2 * total,
        };
    return (ZpVendorEstimate){
        .host_bytes =
            (gint64)((double)(total * 4 * question->gpus_per_node) * question->buffer_factor),
        .device_bytes = 2 * total + (gint64)((double)(18 * total) / (double)gpus),
    };
}

/* Host bytes of an offloaded job: `per_element` bytes shared by the nodes; without zero.Init every
 * process of a node builds the whole fp32 model first. */
static gint64
offloaded_host_bytes(const ZpVendorQuestion *question, gint64 per_element)
{
    double factor = 1.0 / (double)question->nodes;
    double total = (double)question->total_elements;
    if (question->zero_init)
        return (gint64)(total * (double)per_element * factor * question->buffer_factor);
    double build = (double)(4 * (gint64)question->gpus_per_node);
    return (gint64)(total * MAX(build, (double)per_element * factor) * question->buffer_factor);
}

ZpVendorEstimate
zp_vendor_estimate_zero3(const ZpVendorQuestion *question)
{
    gint64 total = question->total_elements;
    double gpus = (double)((gint64)question->nodes * question->gpus_per_node);
    gint64 largest = 4 * question->largest_layer_elements;
    ZpVendorEstimate estimate = {.device_bytes = largest, .largest_layer_bytes = largest};
    if (question->offload_optimizer && question->offload_param) {
        estimate.host_bytes = offloaded_host_bytes(question, 18);
    } else if (question->offload_optimizer) {
        estimate.device_bytes += (gint64)((double)(2 * total) / gpus);
        estimate.host_bytes = offloaded_host_bytes(question, 16);
    } else {
        estimate.device_bytes += (gint64)((double)(18 * total) / gpus);
        gint64 built = question->zero_init ? question->largest_layer_elements : total;
        estimate.host_bytes =
            (gint64)((double)(built * 4 * question->gpus_per_node) * question->buffer_factor);
    }
    return estimate;
}

void
zp_vendor_estimate_measure(const ZpModel *model, ZpVendorQuestion *question)
{
    question->total_elements = model->n_elements;
    question->largest_layer_elements = 0;
    for (guint m = 0; m < model->modules->len; m++) {
        const ZpModelModule *module = zp_model_module(model, (gint32)m);
        gint64 own = 0;
        for (gint32 i = 0; i < module->n_parameters; i++)
            own += zp_model_parameter(model, module->first_parameter + i)->elements;
        question->largest_layer_elements = MAX(question->largest_layer_elements, own);
    }
    for (guint l = 0; model->modules->len == 0 && l < model->layers->len; l++)
        question->largest_layer_elements =
            MAX(question->largest_layer_elements, zp_model_layer(model, (gint32)l)->elements);
}

gboolean
zp_vendor_estimate_ask(const ZpJob *job, ZpVendorQuestion *question, GError **error)
{
    ZpDeepspeed defaults;
    zp_deepspeed_init(&defaults);
    const ZpDeepspeed *settings = job->deepspeed ? job->deepspeed : &defaults;
    gint32 per_node = MIN(job->world.ranks, MAX(job->network.gpus_per_node, 1));
    if (job->zero.stage < 2) {
        g_set_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_UNSUPPORTED,
                    "DeepSpeed has estimators for stages 2 and 3, not for stage %d",
                    job->zero.stage);
        return FALSE;
    }
    if (job->world.ranks % per_node != 0) {
        g_set_error(error, ZP_RUNTIME_ERROR, ZP_RUNTIME_ERROR_RANGE,
                    "DeepSpeed's estimators take nodes of equal size: %d ranks on nodes of %d GPUs",
                    job->world.ranks, per_node);
        return FALSE;
    }
    gboolean optimizer = settings->offload_optimizer.device != ZP_DS_NOWHERE;
    *question = (ZpVendorQuestion){
        .gpus_per_node = per_node,
        .nodes = job->world.ranks / per_node,
        .offload_optimizer = optimizer,
        .offload_param = optimizer && settings->offload_param.device != ZP_DS_NOWHERE,
        .zero_init = settings->zero_init,
        .buffer_factor = 1.5,
    };
    zp_vendor_estimate_measure(job->model, question);
    return TRUE;
}

ZpVendorEstimate
zp_vendor_estimate_stage(int stage, const ZpVendorQuestion *question)
{
    return stage == 3 ? zp_vendor_estimate_zero3(question) : zp_vendor_estimate_zero2(question);
}
