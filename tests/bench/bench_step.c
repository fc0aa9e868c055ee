/* How long a step takes to compile and play: Llama-2-70B, stage 3, a unit a block, 64 ranks. */
#include <stdio.h>
#include <sys/resource.h>

#include "models/families/catalog.h"
#include "models/step/step.h"

static ZpJob
make_job(const ZpModel *model)
{
    return (ZpJob){
        .runtime = "ideal",
        .model = model,
        .optimizer = zp_optimizer_find("adamw"),
        .precision = {ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_FP32,
                      ZP_DTYPE_FP32},
        .training = {.micro_batch = 1, .sequence = 4096, .accumulation = 1},
        .world = {.ranks = 64, .shard_group = 64},
        .zero = {.stage = 3,
                 .wrap = ZP_WRAP_BLOCK,
                 .wrap_blocks = 1,
                 .outer = ZP_OUTER_OWN,
                 .prefetch_forward = 1,
                 .prefetch_backward = 1,
                 .bucket_elements = 1,
                 .overlap = TRUE,
                 .reshard_after_forward = TRUE},
        .network = {.link_bytes_per_s = 300e9,
                    .link_efficiency = 0.8,
                    .link_latency_ps = 20 * ZP_TIME_PER_US,
                    .gpus_per_node = 8,
                    .network_bytes_per_s = 200e9,
                    .network_efficiency = 0.9,
                    .network_latency_ps = 40 * ZP_TIME_PER_US},
        .device = {.flops_per_s = 312e12,
                   .flops_efficiency = 0.7,
                   .memory_bytes_per_s = 2e12,
                   .memory_efficiency = 0.8,
                   .kernel_latency_ps = 5 * ZP_TIME_PER_US},
        .host = {.launch_overhead_ps = 5 * ZP_TIME_PER_US},
        .simulation = {.simulated_ranks = 1, .steps = 1, .slow_rank = ZP_MODEL_NONE},
    };
}

static double
time_steps(ZpStep *step, const ZpJob *job, int repeats)
{
    ZpStepSummary summary;
    gint64 start = g_get_monotonic_time();
    for (int i = 0; i < repeats; i++) {
        g_autoptr(GError) error = NULL;
        if (!zp_step_simulate(step, job, NULL, NULL, &summary, &error))
            g_error("%s", error->message);
    }
    return (double)(g_get_monotonic_time() - start) / 1e3 / repeats;
}

int
main(void)
{
    ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpModel) model = zp_catalog_build("Llama-2-70B", &options, &error);
    g_assert_no_error(error);
    g_autoptr(ZpStep) step = zp_step_new();
    ZpJob job = make_job(model);
    (void)time_steps(step, &job, 100);
    double ms = time_steps(step, &job, 3000);
    printf(
        "Llama-2-70B stage 3, 80 blocks, compiled and played: %.3f ms (target 0.300, ratio %.2f), "
        "%d instructions\n",
        ms, ms / 0.3, zp_step_tape(step)->n_instrs);
    static const char *const runtimes[] = {"ideal", "fsdp1", "fsdp2", "deepspeed"};
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        job.runtime = runtimes[r];
        job.device.allocator = ZP_ALLOCATOR_NONE;
        double alone = time_steps(step, &job, 100);
        job.device.allocator = ZP_ALLOCATOR_CACHING;
        double with = time_steps(step, &job, 100);
        printf(
            "the same under %s with the caching allocator: %.3f ms (without: %.3f; target 3.000, "
            "ratio %.2f)\n",
            runtimes[r], with, alone, with / 3.0);
    }
    job.runtime = "ideal";
    job.device.allocator = ZP_ALLOCATOR_NONE;
    job.world.ranks = job.world.shard_group = 4096;
    job.simulation.simulated_ranks = 4096;
    job.simulation.jitter_ppm = 20000;
    double seconds = time_steps(step, &job, 1) / 1e3;
    struct rusage usage;
    (void)getrusage(RUSAGE_SELF, &usage);
    printf("4,096 jittered ranks: %.2f s (target 3.00, ratio %.2f), %.0f MiB (target 512)\n",
           seconds, seconds / 3.0, (double)usage.ru_maxrss / 1024.0);
    return 0;
}
