/* Small DeepSpeed jobs for tests. */
#pragma once

#include "models/catalog.h"
#include "models/runtimes/deepspeed.h"
#include "models/runtimes/deepspeed_program.h"
#include "sim/player.h"

typedef struct {
    ZpOptimizer optimizer;
    ZpDeepspeed settings;
    ZpJob job;
    ZpTape *tape;
    ZpModel *owned;
} DsFixture;

static inline void
ds_fixture_init(DsFixture *f, const ZpModel *model, gint32 ranks, int stage)
{
    *f = (DsFixture){.tape = zp_tape_new(zp_vocabulary_get())};
    f->optimizer = (ZpOptimizer){.name = "adamw",
                                 .master = TRUE,
                                 .momentum = TRUE,
                                 .variance = TRUE,
                                 .moments = ZP_DTYPE_FP32,
                                 .traffic_bits = 240};
    zp_deepspeed_init(&f->settings);
    f->settings.pinned_power_of_two = FALSE;
    f->job = (ZpJob){
        .runtime = "deepspeed",
        .model = model,
        .precision = {ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_BF16, ZP_DTYPE_FP32,
                      ZP_DTYPE_FP32},
        .training = {.micro_batch = 1, .sequence = 128, .accumulation = 1},
        .world = {.ranks = ranks, .shard_group = ranks},
        .zero = {.stage = stage},
        .network = {.link_bytes_per_s = 300e9,
                    .link_efficiency = 1.0,
                    .link_latency_ps = 1000000,
                    .gpus_per_node = 8,
                    .network_bytes_per_s = 200e9,
                    .network_efficiency = 1.0,
                    .network_latency_ps = 1000000,
                    .host_to_device_bytes_per_s = 25e9,
                    .device_to_host_bytes_per_s = 25e9},
        .device = {.flops_per_s = 3e14,
                   .flops_efficiency = 0.5,
                   .memory_bytes_per_s = 2e12,
                   .memory_efficiency = 1.0},
        .simulation = {.simulated_ranks = 1, .steps = 1, .slow_rank = ZP_MODEL_NONE},
    };
}

static inline void
ds_fixture_clear(DsFixture *f)
{
    zp_tape_free(f->tape);
    zp_model_free(f->owned);
}

/* Compiles and checks the tape's own rules. */
static inline void
ds_fixture_compile(DsFixture *f)
{
    g_autoptr(GError) error = NULL;
    f->job.optimizer = &f->optimizer;
    f->job.deepspeed = &f->settings;
    zp_tape_clear(f->tape);
    zp_runtime_deepspeed.compile(&f->job, NULL, f->tape, &error);
    g_assert_no_error(error);
    zp_tape_check(f->tape, TRUE, ZP_CLASSES_PERSISTENT, &error);
    g_assert_no_error(error);
}

static inline ZpModel *
ds_catalogue(const char *name)
{
    ZpArchitectureOptions options = {.compute = ZP_DTYPE_BF16, .causal = TRUE};
    g_autoptr(GError) error = NULL;
    ZpModel *model = zp_catalog_build(name, &options, &error);
    g_assert_no_error(error);
    return model;
}

/* Micro-model M: p0 = 1000, p1 = 501, p2 = 7 elements in one module each, in this order. */
static inline ZpModel *
ds_model_m(void)
{
    static const gint64 sizes[] = {1000, 501, 7};
    ZpModel *model = zp_model_new("M");
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autofree char *name = g_strdup_printf("p%d", (int)i);
        zp_model_add_layer(model, name, sizes[i], 1, -1, 0, 0);
    }
    zp_model_finish(model);
    return model;
}

typedef struct {
    gint64 now[ZP_TAPE_N_SPACES][ZP_N_CLASSES];
    gint64 total[ZP_TAPE_N_SPACES], peak[ZP_TAPE_N_SPACES];
} DsMemory;

/* Plays allocations in host order over instructions [0, end). */
static inline void
ds_play_memory(const ZpTape *tape, gint32 end, DsMemory *memory)
{
    *memory = (DsMemory){0};
    g_autofree guint8 *class_of = g_new0(guint8, (gsize)MAX(tape->n_buffers, 1));
    for (gint32 i = 0; i < end; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op != ZP_TAPE_ALLOC && instr->op != ZP_TAPE_FREE && instr->op != ZP_TAPE_RETAG)
            continue;
        const ZpTapeBuffer *buffer = &tape->buffers[instr->a];
        guint8 space = buffer->space;
        if (instr->op == ZP_TAPE_RETAG) {
            memory->now[space][class_of[instr->a]] -= buffer->bytes;
            class_of[instr->a] = (guint8)(instr->b & 0xff);
            memory->now[space][class_of[instr->a]] += buffer->bytes;
            continue;
        }
        if (instr->op == ZP_TAPE_ALLOC)
            class_of[instr->a] = buffer->class_id;
        gint64 delta = instr->op == ZP_TAPE_ALLOC ? buffer->bytes : -buffer->bytes;
        memory->now[space][class_of[instr->a]] += delta;
        memory->total[space] += delta;
        memory->peak[space] = MAX(memory->peak[space], memory->total[space]);
    }
}

/* Collectives of kind in a phase (ZP_N_PHASES: any) of the last step: sizes in elements of bytes
 * `width`, in order. */
static inline GArray *
ds_collectives(const ZpTape *tape, ZpKind kind, ZpPhase phase, int width)
{
    GArray *sizes = g_array_new(FALSE, FALSE, sizeof(gint64));
    for (gint32 i = tape->step_begin[tape->n_steps - 1]; i < tape->n_instrs; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op != ZP_TAPE_LAUNCH || tape->works[instr->a].kind != (gint16)kind ||
            (phase != ZP_N_PHASES && instr->phase != phase))
            continue;
        gint64 elements = tape->works[instr->a].bytes / width;
        g_array_append_val(sizes, elements);
    }
    return sizes;
}

static inline void
ds_assert_sizes(const GArray *sizes, guint n, const gint64 *expected)
{
    g_assert_cmpuint(sizes->len, ==, n);
    for (guint i = 0; i < n; i++)
        g_assert_cmpint(g_array_index(sizes, gint64, i), ==, expected[i]);
}
