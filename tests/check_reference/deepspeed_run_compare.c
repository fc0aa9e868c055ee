/* What a replayed run did against what was recorded. */
#include <stdio.h>
#include <string.h>

#include "deepspeed_run.h"
#include "deepspeed_snapshot.h"

/* Collectives */

static gint32
step_end(const ZpTape *tape, gint64 step)
{
    return step + 1 < tape->n_steps ? tape->step_begin[step + 1] : tape->n_instrs;
}

static const char *
phase_word(guint8 phase)
{
    if (phase == ZP_PHASE_FORWARD)
        return "forward";
    return phase == ZP_PHASE_BACKWARD || phase == ZP_PHASE_REDUCE ? "backward" : "step";
}

/* "bf16", or "bf16 to 3" of a reduce to rank 3. */
static char *
describe(const DsRun *run, const ZpTapeInstr *instr)
{
    const ZpTape *tape = run->tape;
    const ZpTapeWork *work = &tape->works[instr->a];
    g_auto(GStrv) label =
        g_strsplit(g_ptr_array_index(tape->labels, (guint)work->label), " to ", 2);
    const char *dtype = label[0];
    ZpDtype known = ZP_DTYPE_NONE;
    int bits = strcmp(dtype, "uint8") == 0     ? 8
               : zp_dtype_parse(dtype, &known) ? zp_dtype_bits(known)
                                               : 64;
    g_autofree char *kind = g_strdup(zp_vocabulary_kind_name((ZpKind)work->kind));
    g_strdelimit(kind, "- ", '_');
    g_autofree char *to = label[1] != NULL ? g_strconcat("_to_", label[1], NULL) : g_strdup("");
    g_autofree char *group = tape->groups[work->group].size == run->job.world.ranks
                                 ? g_strdup("")
                                 : g_strdup_printf(" group=%d", tape->groups[work->group].size);
    return g_strdup_printf("%s%s %" G_GINT64_FORMAT " %s%s", kind, to, work->bytes * 8 / bits,
                           dtype, group);
}

static gboolean
is_collective(const ZpTape *tape, gint32 i)
{
    return tape->instrs[i].op == ZP_TAPE_LAUNCH &&
           tape->works[tape->instrs[i].a].group != ZP_TAPE_NONE;
}

static GPtrArray *
list_collectives(const DsRun *run, gint32 begin, gint32 end, gboolean phases)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    for (gint32 i = begin; i < end; i++) {
        if (!is_collective(run->tape, i))
            continue;
        const ZpTapeInstr *instr = &run->tape->instrs[i];
        char *text = describe(run, instr);
        if (phases) {
            char *full = g_strconcat(phase_word(instr->phase), " ", text, NULL);
            g_free(text);
            text = full;
        }
        g_ptr_array_add(list, text);
    }
    return list;
}

void
ds_compare_collectives(DsRun *run)
{
    const ZpTape *tape = run->tape;
    g_autoptr(GPtrArray) init = list_collectives(run, 0, tape->step_begin[0], FALSE);
    ds_expect_list(run->check, "init_collectives", init,
                   ds_array(run->expected, "init_collectives"));
    const struct {
        const char *key;
        gint64 step;
    } steps[] = {{"first_step", 0}, {"second_step", 1}, {"steady_step", run->steps - 1}};
    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++) {
        JsonArray *theirs = ds_array(run->expected, steps[i].key);
        if (theirs == NULL)
            continue;
        g_autoptr(GPtrArray) ours = list_collectives(run, tape->step_begin[steps[i].step],
                                                     step_end(tape, steps[i].step), TRUE);
        ds_expect_list(run->check, steps[i].key, ours, theirs);
    }
}

/* In steady state a step does what the one before did. */
void
ds_compare_steadiness(DsRun *run)
{
    const ZpTape *tape = run->tape;
    if (!json_object_has_member(run->expected, "steady_equals_previous") || run->steps < 2)
        return;
    gint64 last = run->steps - 1;
    g_autoptr(GPtrArray) now =
        list_collectives(run, tape->step_begin[last], step_end(tape, last), TRUE);
    g_autoptr(GPtrArray) before =
        list_collectives(run, tape->step_begin[last - 1], step_end(tape, last - 1), TRUE);
    gboolean equal = now->len == before->len;
    for (guint i = 0; i < now->len && equal; i++)
        equal = strcmp(now->pdata[i], before->pdata[i]) == 0;
    ds_expect_int(run->check, "steady_equals_previous", equal,
                  ds_flag(run->expected, "steady_equals_previous"));
}

/* Lines of the log between two instructions. */
static gint32
lines_at(const DsTap *tap, gint64 step)
{
    return step < tap->step_begin->len ? g_array_index(tap->step_begin, gint32, step)
                                       : (gint32)tap->log->len;
}

static gboolean
is_wait(const char *line)
{
    return line != NULL && g_str_has_prefix(line, "W(");
}

static int
by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Waits inside one hook come from a set, in no order of their own. */
static void
order_waits(GPtrArray *lines)
{
    for (guint first = 0; first < lines->len;) {
        guint end = first;
        while (end < lines->len && is_wait(lines->pdata[end]))
            end++;
        if (end > first + 1)
            qsort(lines->pdata + first, end - first, sizeof(gpointer), by_text);
        first = end + 1;
    }
}

static JsonArray *
with_ordered_waits(JsonArray *recorded)
{
    g_autoptr(GPtrArray) lines = g_ptr_array_new();
    JsonArray *ordered = json_array_new();
    for (guint i = 0; i < json_array_get_length(recorded); i++) {
        const char *line = json_array_get_string_element(recorded, i);
        g_ptr_array_add(lines, (gpointer)(line != NULL ? line : "(not a string)"));
    }
    order_waits(lines);
    for (guint i = 0; i < lines->len; i++)
        json_array_add_string_element(ordered, lines->pdata[i]);
    return ordered;
}

void
ds_compare_events(DsRun *run)
{
    const struct {
        const char *key;
        gint64 step;
    } steps[] = {{"z3_first", 0}, {"z3_second", 1}, {"z3_steady", run->steps - 1}};
    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++) {
        JsonArray *theirs = ds_array(run->expected, steps[i].key);
        if (theirs == NULL)
            continue;
        g_autoptr(GPtrArray) ours = g_ptr_array_new();
        for (gint32 l = lines_at(&run->tap, steps[i].step);
             l < lines_at(&run->tap, steps[i].step + 1); l++)
            g_ptr_array_add(ours, run->tap.log->pdata[l]);
        order_waits(ours);
        g_autoptr(JsonArray) ordered = with_ordered_waits(theirs);
        ds_expect_list(run->check, steps[i].key, ours, ordered);
    }
}

static void
compare_ipg(DsRun *run, const char *where, const GArray *live, JsonArray *theirs)
{
    int dtype = run->job.zero.stage == 3 ? run->formats.communicate : run->formats.model;
    g_autoptr(GArray) ours = ds_live_sizes(run->tape, live, ZP_CLASS_COMMUNICATION, ZP_ROLE_BUCKET);
    g_autofree char *what = g_strconcat(where, ", bucket buffers", NULL);
    if (theirs == NULL)
        return;
    ds_expect_int(run->check, what, ours->len, json_array_get_length(theirs));
    for (guint k = 0; k < ours->len && !ds_failed(run->check); k++)
        ds_expect_int(run->check, what,
                      g_array_index(ours, gint64, k) * 8 / zp_ds_dtype_bits(dtype),
                      json_array_get_int_element(theirs, k));
}

static void
compare_before(DsRun *run, gint32 instr, guint number, JsonObject *expected)
{
    g_autofree char *ours = describe(run, &run->tape->instrs[instr]);
    const char *before = ds_text(expected, "before", "");
    g_autofree char *where = g_strdup_printf("before %s (number %u)", before, number);
    run->check->n_compared++;
    if (!g_str_has_prefix(ours, before))
        ds_diverge(run->check, "%s: ours is %s", where, ours);
    g_autoptr(GArray) live = ds_live_buffers(run->tape, instr);
    compare_ipg(run, where, live, ds_array(expected, "ipg"));
    if (run->job.zero.stage == 3) {
        g_autofree char *what = g_strconcat(where, ", gathered", NULL);
        ds_expect_int(run->check, what, ds_tap_gathered(&run->tap, instr).data,
                      ds_int(expected, "gathered", 0));
    } else if (run->settings.offload_optimizer.device == ZP_DS_NOWHERE) {
        g_autofree char *what = g_strconcat(where, ", grads_in_partition", NULL);
        gint64 bytes = ds_live_bytes(run->tape, live, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT);
        ds_expect_int(run->check, what, bytes * 8 / zp_ds_dtype_bits(run->formats.model),
                      ds_int(expected, "grads_in_partition", 0));
    }
}

/* Just before each collective of the last backward. */
void
ds_compare_backward_state(DsRun *run)
{
    JsonArray *theirs = ds_array(run->expected, "backward_state_steady_rank0");
    const ZpTape *tape = run->tape;
    guint n = 0;
    for (gint32 i = tape->step_begin[run->steps - 1]; theirs != NULL && i < tape->n_instrs; i++) {
        if (!is_collective(tape, i) || strcmp(phase_word(tape->instrs[i].phase), "backward") != 0)
            continue;
        if (n < json_array_get_length(theirs))
            compare_before(run, i, n, json_array_get_object_element(theirs, n));
        n++;
    }
    if (theirs != NULL)
        ds_expect_int(run->check, "collectives in backward", n, json_array_get_length(theirs));
}

/* The end of a micro-batch's backward: before the first instruction of another phase. */
static gint32
backward_end(const ZpTape *tape, gint64 step, gint64 micro)
{
    gint32 end = tape->step_begin[step];
    for (gint32 i = tape->step_begin[step]; i < step_end(tape, step); i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->micro_batch != ZP_TAPE_NONE && instr->micro_batch <= micro)
            end = i + 1;
    }
    return end;
}

/* Names of what is whole at a place. */
static void
compare_gathered(DsRun *run, const char *where, gint32 place, JsonObject *expected)
{
    JsonArray *theirs = ds_array(expected, "gathered_params");
    if (theirs == NULL)
        return;
    g_autoptr(GPtrArray) ours = g_ptr_array_new();
    for (gint32 id = 0; id < (gint32)run->tree->parameters->len; id++)
        if (ds_tap_is_gathered(&run->tap, id, place))
            g_ptr_array_add(ours, (gpointer)zp_ds_tree_parameter(run->tree, id)->name);
    g_autofree char *what = g_strconcat(where, " gathered_params", NULL);
    ds_expect_list(run->check, what, ours, theirs);
}

void
ds_compare_snapshots(DsRun *run, JsonArray *snapshots)
{
    for (guint i = 0; snapshots != NULL && i < json_array_get_length(snapshots); i++) {
        JsonObject *expected = json_array_get_object_element(snapshots, i);
        const char *tag = ds_text(expected, "tag", "");
        DsPlace place = {.tape = run->tape,
                         .formats = &run->formats,
                         .settings = &run->settings,
                         .stage = run->job.zero.stage,
                         .boundary = TRUE};
        long step = 0, micro = 0;
        if (strcmp(tag, "after_init") == 0)
            place.begin = run->tape->step_begin[0];
        else if (sscanf(tag, "step%ld_micro%ld", &step, &micro) == 2) {
            place.begin = backward_end(run->tape, step, micro);
            place.boundary = micro == run->job.training.accumulation - 1;
            gint64 flat = 0;
            for (gint32 id = 0; id < (gint32)run->tree->parameters->len; id++)
                if (zp_ds_tree_parameter(run->tree, id)->trainable)
                    flat += zp_ds_partition_elements(zp_ds_tree_parameter(run->tree, id)->elements,
                                                     run->job.world.ranks);
            place.averaged_bytes = zp_ds_bytes(run->formats.accumulate, flat);
        } else if (sscanf(tag, "step%ld_end", &step) == 1)
            place.begin = step_end(run->tape, step);
        else {
            ds_diverge(run->check, "unknown snapshot '%s'", tag);
            return;
        }
        place.gathered_elements = ds_tap_gathered(&run->tap, place.begin).data;
        for (gint32 id = 0; id < (gint32)run->tree->parameters->len; id++)
            if (!zp_ds_tree_parameter(run->tree, id)->trainable)
                place.frozen_bytes += zp_ds_bytes(
                    run->formats.model,
                    zp_ds_partition_elements(zp_ds_tree_parameter(run->tree, id)->elements,
                                             run->job.world.ranks));
        ds_compare_snapshot(run->check, tag, &place, expected);
        ds_compare_averaged(run, tag, place.boundary, expected);
        ds_compare_flats(run, tag, expected);
        compare_gathered(run, tag, place.begin, expected);
    }
}
