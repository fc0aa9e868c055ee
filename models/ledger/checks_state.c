/* What a rank stores from step to step. */
#include "models/ledger/checks_internal.h"

#define PAPER "ZeRO (arXiv 1910.02054), "

static gboolean
is_there(const ChecksStored *stored)
{
    return stored->bounds.low == 0 || stored->measured > 0;
}

static gboolean
is_full(const ChecksStored *stored)
{
    return stored->measured >= stored->bounds.low;
}

static gboolean
is_no_more(const ChecksStored *stored)
{
    if (stored->absent)
        return stored->measured == 0;
    return stored->bounds.high == 0 ||
           stored->measured <= stored->bounds.high + stored->scale_bytes;
}

/* FALSE where a rank keeps at least the whole of what it should share. */
static gboolean
is_divided(const ChecksStored *stored)
{
    return stored->owners == 1 || is_no_more(stored) || stored->measured < stored->whole_bytes;
}

/* Too little by exactly what a narrower format would take. */
static gboolean
has_its_width(const ChecksFacts *facts, const ChecksStored *stored)
{
    int bits = checks_bits(stored->dtype);
    for (int narrow = 4; narrow < bits && !is_full(stored) && stored->measured > 0; narrow *= 2) {
        gint64 factor = bits / narrow;
        if (factor != facts->job->world.shard_group &&
            stored->measured >= stored->bounds.low / factor &&
            stored->measured <= checks_ceil(stored->bounds.high + stored->scale_bytes, factor))
            return FALSE;
    }
    return TRUE;
}

typedef gboolean (*Test)(const ChecksStored *stored);

/* Of the classes from `first` to `last`. */
static gboolean
all(const ChecksFacts *facts, int first, int last, Test test)
{
    for (int i = first; i <= last; i++)
        if (!test(&facts->stored[i]))
            return FALSE;
    return TRUE;
}

static gboolean
is_full_or_whole(const ChecksStored *stored)
{
    return stored->owners == 1 || is_full(stored);
}

static gboolean
is_full_or_divided(const ChecksStored *stored)
{
    return stored->owners > 1 || is_full(stored);
}

static gboolean
has_its_scales(const ChecksStored *stored)
{
    return !is_full(stored) || stored->measured >= stored->bounds.low + stored->scale_bytes;
}

static gboolean
numbers_have_their_width(const ChecksFacts *facts)
{
    for (int i = 0; i < CHECKS_N_STORED; i++)
        if (!has_its_width(facts, &facts->stored[i]))
            return FALSE;
    return TRUE;
}

static gboolean
master_is_counted(const ChecksFacts *facts)
{
    return is_there(&facts->stored[CHECKS_MASTER]);
}

static gboolean
moments_are_counted(const ChecksFacts *facts)
{
    return all(facts, CHECKS_MOMENTUM, CHECKS_VARIANCE, is_there);
}

static gboolean
gradients_are_counted(const ChecksFacts *facts)
{
    return is_there(&facts->stored[CHECKS_GRADIENTS]);
}

static gboolean
scales_are_counted(const ChecksFacts *facts)
{
    return all(facts, CHECKS_MOMENTUM, CHECKS_VARIANCE, has_its_scales);
}

static gboolean
shares_are_full(const ChecksFacts *facts)
{
    return all(facts, 0, CHECKS_N_STORED - 1, is_full_or_whole);
}

static gboolean
optimizer_is_divided(const ChecksFacts *facts)
{
    return all(facts, CHECKS_MASTER, CHECKS_VARIANCE, is_divided);
}

static gboolean
gradients_are_divided(const ChecksFacts *facts)
{
    return is_divided(&facts->stored[CHECKS_GRADIENTS]);
}

static gboolean
parameters_are_divided(const ChecksFacts *facts)
{
    return is_divided(&facts->stored[CHECKS_PARAMETERS]);
}

static gboolean
parameters_are_whole(const ChecksFacts *facts)
{
    return is_full_or_divided(&facts->stored[CHECKS_PARAMETERS]);
}

static gboolean
gradients_are_whole(const ChecksFacts *facts)
{
    return is_full_or_divided(&facts->stored[CHECKS_GRADIENTS]);
}

static gboolean
optimizer_is_whole(const ChecksFacts *facts)
{
    return all(facts, CHECKS_MASTER, CHECKS_VARIANCE, is_full_or_divided);
}

static gboolean
parameters_are_counted_once(const ChecksFacts *facts)
{
    return is_no_more(&facts->stored[CHECKS_PARAMETERS]);
}

static gboolean
gradients_are_counted_once(const ChecksFacts *facts)
{
    return is_no_more(&facts->stored[CHECKS_GRADIENTS]);
}

static gboolean
master_is_counted_once(const ChecksFacts *facts)
{
    return is_no_more(&facts->stored[CHECKS_MASTER]);
}

static gboolean
moments_are_counted_once(const ChecksFacts *facts)
{
    return all(facts, CHECKS_MOMENTUM, CHECKS_VARIANCE, is_no_more);
}

static gboolean
overhead_is_counted(const ChecksFacts *facts)
{
    return facts->bytes[ZP_CLASS_RUNTIME] == facts->job->device.overhead_bytes;
}

const ChecksRule checks_state_rules[] = {
    {{"stored-numbers-have-their-width", "a number takes the bytes of its format in the precision",
      "IEEE 754; bfloat16; torch.finfo"},
     CHECKS_ALL,
     TRUE,
     numbers_have_their_width},
    {{"master-weights-are-counted", "a master copy exists when the precision asks for one",
      PAPER "section 3.1"},
     CHECKS_ALL,
     TRUE,
     master_is_counted},
    {{"moments-are-counted", "a momentum and a variance exist when the optimizer keeps them",
      PAPER "section 3.1; Adam (arXiv 1412.6980), algorithm 1"},
     CHECKS_ALL,
     TRUE,
     moments_are_counted},
    {{"gradients-are-counted", "every trainable element has a gradient when the optimizer steps",
      PAPER "section 3.1"},
     CHECKS_ALL,
     TRUE,
     gradients_are_counted},
    {{"scales-are-counted", "8-bit states keep an fp32 scale for each block",
      "8-bit optimizers (arXiv 2110.02861), section 2"},
     CHECKS_IDEAL,
     TRUE,
     scales_are_counted},
    {{"padding-is-kept", "the shards of all owners cover every element", PAPER "section 5"},
     CHECKS_ALL,
     TRUE,
     shares_are_full},
    {{"optimizer-state-is-divided", "from stage 1 on a rank stores its share alone",
      PAPER "section 5.1, figure 1"},
     CHECKS_ALL,
     TRUE,
     optimizer_is_divided},
    {{"gradients-are-divided-from-stage-2", "from stage 2 on a rank keeps its share alone",
      PAPER "section 5.2, figure 1"},
     CHECKS_ALL,
     TRUE,
     gradients_are_divided},
    {{"parameters-are-divided-at-stage-3", "at stage 3 a rank stores its share alone",
      PAPER "section 5.3, figure 1"},
     CHECKS_ALL,
     TRUE,
     parameters_are_divided},
    {{"parameters-are-whole-below-stage-3", "stages 0 to 2 replicate the parameters",
      PAPER "section 5, figure 1"},
     CHECKS_ALL,
     TRUE,
     parameters_are_whole},
    {{"gradients-are-whole-below-stage-2", "stages 0 and 1 replicate the gradients",
      PAPER "section 5, figure 1"},
     CHECKS_ALL,
     TRUE,
     gradients_are_whole},
    {{"optimizer-state-is-whole-at-stage-0", "stage 0 replicates the optimizer's state",
      PAPER "section 5, figure 1"},
     CHECKS_ALL,
     TRUE,
     optimizer_is_whole},
    {{"parameters-are-counted-once", "a rank stores one copy of its parameters",
      PAPER "section 3.1"},
     CHECKS_ALL,
     TRUE,
     parameters_are_counted_once},
    {{"gradients-are-counted-once", "a rank keeps one copy of its gradients", PAPER "section 3.1"},
     CHECKS_ALL,
     TRUE,
     gradients_are_counted_once},
    {{"master-weights-are-counted-once", "one master copy per owned element", PAPER "section 3.1"},
     CHECKS_ALL,
     TRUE,
     master_is_counted_once},
    {{"moments-are-counted-once", "one momentum and one variance per owned element",
      PAPER "section 3.1"},
     CHECKS_ALL,
     TRUE,
     moments_are_counted_once},
    {{"runtime-overhead-is-counted", "what lies outside the allocator is there from the start",
      "torch.cuda.mem_get_info against memory_reserved"},
     CHECKS_ALL,
     TRUE,
     overhead_is_counted},
    {{NULL, NULL, NULL}, 0, FALSE, NULL},
};
