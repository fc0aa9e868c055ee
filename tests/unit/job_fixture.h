/* A small job whose figures a reader can add up: four layers, eight ranks, bf16 with fp32 Adam. */
#pragma once

#include "models/step.h"

typedef struct {
    ZpModel *model;
    ZpOptimizer optimizer;
    ZpJob job;
} JobFixture;

/* Kernels take 1 ms a layer, collectives far less: what overlaps is known by hand. */
static inline void
job_fixture_init(JobFixture *fixture, gint64 elements_per_layer, gint32 n_layers)
{
    *fixture = (JobFixture){.model = zp_model_new("fixture")};
    zp_model_add_layer(fixture->model, "layer", elements_per_layer, n_layers, 1000000, 100, 10);
    zp_model_finish(fixture->model);
    fixture->optimizer = (ZpOptimizer){
        .name = "adamw",
        .master = TRUE,
        .momentum = TRUE,
        .variance = TRUE,
        .moments = ZP_DTYPE_FP32,
        .traffic_bits = 240,
    };
    fixture->job = (ZpJob){
        .runtime = "ideal",
        .model = fixture->model,
        .optimizer = NULL,
        .precision = {ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_FP32,
                      ZP_DTYPE_FP32},
        .training = {.micro_batch = 1, .sequence = 1000, .accumulation = 1},
        .world = {.ranks = 8, .shard_group = 8},
        .zero = {.stage = 3,
                 .wrap = ZP_WRAP_BLOCK,
                 .wrap_blocks = 1,
                 .bucket_elements = 1,
                 .reshard_after_forward = TRUE},
        .network = {.link_bytes_per_s = 300e9,
                    .link_efficiency = 1.0,
                    .link_latency_ps = 1000000,
                    .gpus_per_node = 8,
                    .network_bytes_per_s = 200e9,
                    .network_efficiency = 1.0,
                    .network_latency_ps = 1000000,
                    .host_to_device_bytes_per_s = 25e9,
                    .device_to_host_bytes_per_s = 25e9},
        .device = {.flops_per_s = 1e12,
                   .flops_efficiency = 1.0,
                   .memory_bytes_per_s = 2e12,
                   .memory_efficiency = 1.0},
        .simulation = {.simulated_ranks = 1, .steps = 1, .slow_rank = ZP_MODEL_NONE},
    };
}

static inline void
job_fixture_clear(JobFixture *fixture)
{
    zp_model_free(fixture->model);
}

/* Simulates and asserts success. */
static inline ZpStepSummary
job_fixture_run(JobFixture *fixture, ZpStep *step)
{
    ZpStepSummary summary;
    g_autoptr(GError) error = NULL;
    fixture->job.optimizer = &fixture->optimizer;
    gboolean ok = zp_step_simulate(step, &fixture->job, NULL, NULL, &summary, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    return summary;
}
