#include "models/parallel/parallel.h"

#include <string.h>

G_DEFINE_QUARK(zp - parallel - error - quark, zp_parallel_error)

#define VOCABULARY_MULTIPLE 128

gint64
zp_parallel_padded_vocabulary(gint64 vocabulary, gint32 tensor)
{
    if (tensor <= 1)
        return vocabulary;
    gint64 multiple = (gint64)VOCABULARY_MULTIPLE * tensor;
    return vocabulary > G_MAXINT64 - multiple ? 0
                                              : (vocabulary + multiple - 1) / multiple * multiple;
}

/* "8 tensor x 2 context parallel ranks x 4 stages": of the first `n` cuts those that cut. */
static char *
name_cuts(const gint64 counts[3], int n)
{
    GString *text = g_string_new(NULL);
    for (int c = 0; c < MIN(n, 2); c++) {
        if (counts[c] > 1)
            g_string_append_printf(text, "%s%" G_GINT64_FORMAT " %s", text->len > 0 ? " x " : "",
                                   counts[c], c == 0 ? "tensor" : "context");
    }
    if (text->len > 0)
        g_string_append(text, " parallel ranks");
    if (n > 2)
        g_string_append_printf(text, "%s%" G_GINT64_FORMAT " stages", text->len > 0 ? " x " : "",
                               counts[2]);
    return g_string_free(text, FALSE);
}

static gboolean
check_world(const ZpParallel *parallel, gint64 gpus, GError **error)
{
    static const ZpParallelError about[] = {ZP_PARALLEL_ERROR_TENSOR, ZP_PARALLEL_ERROR_CONTEXT,
                                            ZP_PARALLEL_ERROR_PIPELINE};
    const gint64 counts[] = {zp_parallel_tensor(parallel), zp_parallel_context(parallel),
                             zp_parallel_pipeline(parallel)};
    gint64 left = gpus;
    for (int c = 0; c < 3; c++) {
        if (left % counts[c] != 0) {
            g_autofree char *cuts = name_cuts(counts, c + 1);
            g_set_error(error, ZP_PARALLEL_ERROR, (gint)about[c],
                        "%s do not divide %" G_GINT64_FORMAT " ranks", cuts, gpus);
            return FALSE;
        }
        left /= counts[c];
    }
    return TRUE;
}

/* Each rank of a context group takes a piece from the front and one from the back of the sequence,
 * so that causal attention is even (megatron/core/utils.py, get_batch_on_this_cp_rank). */
static gboolean
check_sequence(const ZpParallel *parallel, gint64 sequence, GError **error)
{
    gint64 tensor = zp_parallel_tensor(parallel), context = zp_parallel_context(parallel);
    if (context > 1 && (context > sequence / 2 || sequence % (2 * context) != 0)) {
        g_set_error(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_CONTEXT,
                    "a sequence of %" G_GINT64_FORMAT
                    " tokens is not divisible by 2 x %" G_GINT64_FORMAT " context parallel ranks",
                    sequence, context);
        return FALSE;
    }
    if (zp_parallel_sequence(parallel) && sequence / context % tensor != 0) {
        g_set_error(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_SEQUENCE,
                    "the %" G_GINT64_FORMAT " tokens that a context parallel rank takes are not "
                    "divisible by %" G_GINT64_FORMAT " tensor parallel ranks",
                    sequence / context, tensor);
        return FALSE;
    }
    return TRUE;
}

/* DeepSpeed and Megatron-LM: no sharded gradients, for every micro-batch adds to them
 * (deepspeed/runtime/pipe/engine.py, "ZeRO-2 and ZeRO-3 are incompatible with pipeline
 * parallelism"). */
static gboolean
check_pipeline(const ZpJob *job, GError **error)
{
    if (zp_parallel_pipeline(&job->world.parallel) == 1)
        return TRUE;
    if (strcmp(job->runtime, "ideal") != 0) {
        g_set_error(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_PIPELINE,
                    "the runtime %s has no pipeline here: the runtime ideal has", job->runtime);
        return FALSE;
    }
    if (job->zero.stage >= 2) {
        g_set_error(error, ZP_PARALLEL_ERROR, ZP_PARALLEL_ERROR_PIPELINE,
                    "a pipeline needs zero.stage 0 or 1, not %d: each of its micro-batches adds to "
                    "whole gradients",
                    job->zero.stage);
        return FALSE;
    }
    return TRUE;
}

gboolean
zp_parallel_check(const ZpJob *job, gint64 gpus, GError **error)
{
    const ZpParallel *parallel = &job->world.parallel;
    return check_world(parallel, gpus, error) &&
           check_sequence(parallel, job->training.sequence, error) && check_pipeline(job, error);
}

void
zp_parallel_place(ZpJob *job, gint64 gpus)
{
    const ZpParallel *parallel = &job->world.parallel;
    gint32 tensor = zp_parallel_tensor(parallel);
    job->world.ranks = (gint32)(gpus / tensor / zp_parallel_pipeline(parallel));
    job->training.sequence /= zp_parallel_context(parallel);
    job->network.rank_stride = tensor;
}

gint32
zp_parallel_ranks_per_node(const ZpNetwork *network)
{
    return MAX(1, network->gpus_per_node / MAX(1, network->rank_stride));
}

gint64
zp_parallel_in_flight(const ZpJob *job)
{
    return MIN(zp_parallel_pipeline(&job->world.parallel), job->training.accumulation);
}
