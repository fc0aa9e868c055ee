/* How long an 80-layer step of PyTorch's runtimes takes to compile, to play, and to play with the
 * allocator model: best of several, in microseconds. */
#include <stdio.h>

#include "models/families/catalog.h"
#include "models/job/optimizer.h"
#include "models/runtimes/ddp/ddp.h"
#include "models/runtimes/fsdp1/fsdp1.h"
#include "models/runtimes/fsdp2/fsdp2.h"
#include "models/words/vocabulary.h"
#include "sim/allocator/allocator.h"
#include "sim/players/player.h"

enum { N_ROUNDS = 30 };

static ZpJob
make_job(const ZpModel *model)
{
    return (ZpJob){
        .runtime = "fsdp2",
        .model = model,
        .optimizer = zp_optimizer_find("adamw"),
        .precision = {.parameter = ZP_DTYPE_FP32,
                      .gradient = ZP_DTYPE_FP32,
                      .gathered = ZP_DTYPE_BF16,
                      .reduce = ZP_DTYPE_FP32,
                      .moments = ZP_DTYPE_FP32},
        .training = {.micro_batch = 1, .sequence = 4096, .accumulation = 1},
        .world = {.ranks = 64, .shard_group = 64},
        .zero = {.stage = 3,
                 .wrap = ZP_WRAP_BLOCK,
                 .wrap_blocks = 1,
                 .reshard_after_forward = TRUE},
        .network = {.link_bytes_per_s = 300e9,
                    .link_efficiency = 0.8,
                    .gpus_per_node = 8,
                    .network_bytes_per_s = 400e9,
                    .network_efficiency = 0.8},
        .device = {.flops_per_s = 989e12,
                   .flops_efficiency = 0.6,
                   .memory_bytes_per_s = 3.3e12,
                   .memory_efficiency = 0.8,
                   .kernel_latency_ps = 3000000},
        .host = {.launch_overhead_ps = 4000000, .instr_overhead_ps = 500000},
        .simulation = {.simulated_ranks = 1, .steps = 1, .slow_rank = ZP_MODEL_NONE},
    };
}

typedef struct {
    gint64 compile_us, play_us, allocator_us;
    gint64 reserved_bytes, allocated_bytes;
} Best;

static void
run_once(const ZpRuntime *runtime, const ZpJob *job, const ZpUnits *units, ZpTape *tape,
         ZpPlayScratch *scratch, ZpPlayResult *result, Best *best)
{
    g_autoptr(GError) error = NULL;
    gint64 t0 = g_get_monotonic_time();
    zp_tape_clear(tape);
    g_assert_true(runtime->compile(job, units, tape, &error));
    gint64 t1 = g_get_monotonic_time();
    ZpPlayConfig config = {.n_ranks = 1,
                           .launch_overhead_ps = job->host.launch_overhead_ps,
                           .instr_overhead_ps = job->host.instr_overhead_ps,
                           .scratch = scratch};
    g_assert_true(zp_player_play(tape, &config, result, &error));
    gint64 t2 = g_get_monotonic_time();
    ZpAllocatorConfig rules = {.outside_classes = 1u << ZP_CLASS_RUNTIME};
    g_autoptr(ZpAllocator) allocator = zp_allocator_new(tape, &rules);
    ZpObserver observer = zp_allocator_observer(allocator);
    config.observer = &observer;
    g_assert_true(zp_player_play(tape, &config, result, &error));
    gint64 t3 = g_get_monotonic_time();
    best->compile_us = MIN(best->compile_us, t1 - t0);
    best->play_us = MIN(best->play_us, t2 - t1);
    best->allocator_us = MIN(best->allocator_us, t3 - t2);
    best->reserved_bytes = zp_allocator_result(allocator)->peak.reserved_bytes;
    best->allocated_bytes = zp_allocator_result(allocator)->peak.allocated_bytes;
}

int
main(void)
{
    static const ZpRuntime *const runtimes[] = {&zp_runtime_fsdp2, &zp_runtime_fsdp1,
                                                &zp_runtime_ddp};
    ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(ZpModel) model = zp_catalog_build("Llama-3-70B", &options, NULL);
    ZpJob job = make_job(model);
    g_autoptr(ZpUnits) units = zp_wrapping_apply(model, &job.zero);
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    ZpPlayScratch *scratch = zp_play_scratch_new();
    for (gsize r = 0; r < G_N_ELEMENTS(runtimes); r++) {
        Best best = {G_MAXINT64, G_MAXINT64, G_MAXINT64, 0, 0};
        g_auto(ZpPlayResult) result = {0};
        for (int i = 0; i < N_ROUNDS; i++)
            run_once(runtimes[r], &job, units, tape, scratch, &result, &best);
        printf("%-6s %6d instructions: compile %5" G_GINT64_FORMAT " us, play %5" G_GINT64_FORMAT
               " us, with allocator %5" G_GINT64_FORMAT " us; reserved / allocated peak %.3f\n",
               runtimes[r]->name, tape->n_instrs, best.compile_us, best.play_us,
               best.compile_us + best.allocator_us,
               (double)best.reserved_bytes / (double)best.allocated_bytes);
    }
    zp_play_scratch_free(scratch);
    return 0;
}
