#include <stdio.h>
#include <string.h>

#include "deepspeed_models.h"
#include "deepspeed_snapshot.h"
#include "models/runtimes/deepspeed_flat.h"
#include "models/runtimes/deepspeed_program.h"

typedef struct {
    gint32 position; /* instructions of the tape before it */
    gint64 gathered; /* change of the elements of param.data */
} Mark;

/* Stage-3 events of one compilation, cut into steps by STEP. */
typedef struct {
    const ZpDsTree *tree;
    const ZpTape *tape;
    gboolean all_reduce;
    GPtrArray *log;
    GArray *step_begin; /* gint32: first line of each step */
    GArray *marks;      /* Mark */
    GString *persisted;
    gboolean stepped; /* the next root forward begins a step */
} Tap;

typedef struct {
    DsCheck *check;
    JsonObject *root, *expected;
    ZpDeepspeed settings;
    ZpJob job;
    ZpOptimizer optimizer;
    gint32 groups[4096];
    ZpTape *tape;
    ZpDs formats;
    Tap tap;
    ZpDsTree *tree; /* the compiler takes one; this is its twin */
    gint64 steps;
} Run;

/* Settings */

static ZpDtype
dtype_of(JsonObject *config, const char *key)
{
    ZpDtype dtype = ZP_DTYPE_NONE;
    const char *text = ds_text(config, key, NULL);
    if (text != NULL)
        zp_dtype_parse(text, &dtype);
    return dtype;
}

static void
read_flag(JsonObject *object, const char *key, gboolean *flag)
{
    if (object != NULL && json_object_has_member(object, key))
        *flag = json_object_get_boolean_member(object, key);
}

static void
read_offload(JsonObject *object, ZpDsOffload *offload)
{
    if (object == NULL)
        return;
    const char *device = ds_text(object, "device", "none");
    offload->device = strcmp(device, "cpu") == 0    ? ZP_DS_CPU
                      : strcmp(device, "nvme") == 0 ? ZP_DS_NVME
                                                    : ZP_DS_NOWHERE;
    read_flag(object, "pin_memory", &offload->pin_memory);
    if (json_object_has_member(object, "ratio"))
        offload->ratio = json_object_get_double_member(object, "ratio");
}

static void
read_zero(Run *run, JsonObject *zero)
{
    ZpDeepspeed *s = &run->settings;
    run->job.zero.stage = (int)ds_int(zero, "stage", 0);
    read_flag(zero, "contiguous_gradients", &s->contiguous_gradients);
    read_flag(zero, "reduce_scatter", &s->reduce_scatter);
    read_flag(zero, "use_multi_rank_bucket_allreduce", &s->multi_rank_bucket);
    read_flag(zero, "round_robin_gradients", &s->round_robin_gradients);
    read_flag(zero, "stage3_use_all_reduce_for_fetch_params", &s->all_reduce_for_fetch);
    read_flag(zero, "stage3_allgather_sequential", &s->allgather_sequential);
    if (json_object_has_member(zero, "overlap_comm"))
        s->overlap_comm = json_object_get_boolean_member(zero, "overlap_comm");
    const struct {
        const char *key;
        gint64 *value;
    } numbers[] = {
        {"reduce_bucket_size", &s->reduce_bucket_elements},
        {"allgather_bucket_size", &s->allgather_bucket_elements},
        {"sub_group_size", &s->sub_group_elements},
        {"stage3_prefetch_bucket_size", &s->prefetch_bucket_elements},
        {"stage3_max_live_parameters", &s->max_live_elements},
        {"stage3_max_reuse_distance", &s->max_reuse_distance_elements},
        {"stage3_param_persistence_threshold", &s->param_persistence_elements},
        {"stage3_model_persistence_threshold", &s->model_persistence_elements},
        {"stage3_module_granularity_threshold", &s->module_granularity},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++)
        *numbers[i].value = ds_int(zero, numbers[i].key, *numbers[i].value);
    s->hpz_partition_ranks = (gint32)ds_int(zero, "zero_hpz_partition_size", 1);
    read_offload(ds_object(zero, "offload_optimizer"), &s->offload_optimizer);
    read_offload(ds_object(zero, "offload_param"), &s->offload_param);
}

static void
read_config(Run *run)
{
    JsonObject *config = ds_object(run->root, "ds_config");
    ZpDeepspeed *s = &run->settings;
    zp_deepspeed_init(s);
    ds_fill_job(&run->job, (gint32)ds_int(run->root, "world_size", 1), 0);
    run->optimizer = (ZpOptimizer){.name = "adamw", .traffic_bits = 256};
    run->job.optimizer = &run->optimizer;
    read_zero(run, ds_object(config, "zero_optimization"));
    run->job.training.accumulation = ds_int(config, "gradient_accumulation_steps", 1);
    run->job.simulation.steps = (gint32)ds_int(run->root, "steps_run", 4);
    run->steps = run->job.simulation.steps;
    JsonObject *bf16 = ds_object(config, "bf16"), *fp16 = ds_object(config, "fp16");
    run->job.precision.parameter = ds_flag(bf16, "enabled")   ? ZP_DTYPE_BF16
                                   : ds_flag(fp16, "enabled") ? ZP_DTYPE_FP16
                                                              : ZP_DTYPE_FP32;
    read_flag(bf16, "check_grad_overflow", &s->check_grad_overflow);
    read_flag(bf16, "immediate_grad_update", &s->immediate_grad_update);
    s->gradient_accumulation = dtype_of(ds_object(config, "data_types"), "grad_accum_dtype");
    s->communication = dtype_of(config, "communication_data_type");
    if (json_object_has_member(config, "gradient_clipping"))
        s->gradient_clipping = json_object_get_double_member(config, "gradient_clipping");
    const char *adam = ds_text(run->root, "optimizer", "torch_adamw");
    s->adam = strcmp(adam, "fused_adam") == 0 ? ZP_DS_FUSED_ADAM
              : strcmp(adam, "cpu_adam") == 0 ? ZP_DS_CPU_ADAM
                                              : ZP_DS_TORCH_ADAM;
    s->cold = TRUE;
    s->rank = 0;
    s->parameter_groups = run->groups;
    s->n_parameter_groups = (gint32)json_array_get_length(ds_array(run->root, "optimizer_groups"));
}

/* Events */

static void
flush_persisted(Tap *tap)
{
    if (tap->persisted->len == 0)
        return;
    g_ptr_array_add(tap->log, g_strdup_printf("P(%s)", tap->persisted->str));
    g_string_truncate(tap->persisted, 0);
}

/* param.data becomes a view of an all-reduced buffer before its collective is launched. */
static void
mark(Tap *tap, const ZpDsEvent *event, gint64 gathered)
{
    gint32 position = tap->tape->n_instrs;
    if (event->kind == ZP_DS_GATHER && event->n_ids > 1)
        while (position > 0 && tap->tape->instrs[position].op != ZP_TAPE_LAUNCH)
            position--;
    Mark entry = {position, gathered};
    g_array_append_val(tap->marks, entry);
}

static gint32
released_id(const Tap *tap, const char *line)
{
    if (!g_str_has_prefix(line, "R("))
        return -1;
    for (gint32 id = 0; id < (gint32)tap->tree->parameters->len; id++) {
        const char *name = zp_ds_tree_parameter(tap->tree, id)->name;
        if (strncmp(line + 2, name, strlen(name)) == 0 && line[2 + strlen(name)] == ')')
            return id;
    }
    return -1;
}

/* The runs were logged with the releases of one hook in the order of their parameters. */
static void
sort_releases(const Tap *tap)
{
    for (guint i = tap->log->len; i-- > 1;) {
        gint32 id = released_id(tap, tap->log->pdata[i]);
        gint32 before = released_id(tap, tap->log->pdata[i - 1]);
        if (id < 0 || before <= id)
            return;
        gpointer line = tap->log->pdata[i];
        tap->log->pdata[i] = tap->log->pdata[i - 1];
        tap->log->pdata[i - 1] = line;
    }
}

static void
tap_event(const ZpDsEvent *event, gpointer data)
{
    Tap *tap = data;
    gint64 sign = 0;
    gboolean alias = event->n_ids == 1 || tap->all_reduce;
    if (event->kind == ZP_DS_GATHER)
        sign = alias ? 1 : 0;
    else if (event->kind == ZP_DS_WAIT)
        sign = alias ? 0 : 1;
    else if (event->kind == ZP_DS_RELEASE)
        sign = -1;
    else if (event->kind == ZP_DS_PERSIST)
        sign = 1;
    if (sign != 0)
        mark(tap, event, sign * event->elements);
    if (event->kind == ZP_DS_PERSIST) {
        g_string_append_printf(tap->persisted, "%s%s", tap->persisted->len > 0 ? "+" : "",
                               zp_ds_tree_parameter(tap->tree, event->ids[0])->name);
        return;
    }
    flush_persisted(tap);
    tap->stepped |= event->kind == ZP_DS_STEP;
    if (event->kind == ZP_DS_FORWARD_PRE && event->module == 0 && tap->stepped) {
        gint32 line = (gint32)tap->log->len;
        g_array_append_val(tap->step_begin, line);
        tap->stepped = FALSE;
    }
    if (event->kind == ZP_DS_FLAT_FREED || event->kind == ZP_DS_CHECK || event->kind == ZP_DS_STEP)
        return;
    ds_log_event(tap->log, tap->tree, event);
    if (event->kind == ZP_DS_RELEASE)
        sort_releases(tap);
}

static gint64
gathered_at(const Tap *tap, gint32 position)
{
    gint64 sum = 0;
    for (guint i = 0; i < tap->marks->len; i++) {
        const Mark *entry = &g_array_index(tap->marks, Mark, i);
        if (entry->position <= position)
            sum += entry->gathered;
    }
    return sum;
}

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
describe(const Run *run, const ZpTapeInstr *instr)
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
list_collectives(const Run *run, gint32 begin, gint32 end, gboolean phases)
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

static void
compare_collectives(Run *run)
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

/* Lines of the log between two instructions. */
static gint32
lines_at(const Tap *tap, gint64 step)
{
    return step < tap->step_begin->len ? g_array_index(tap->step_begin, gint32, step)
                                       : (gint32)tap->log->len;
}

static void
compare_events(Run *run)
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
        ds_expect_list(run->check, steps[i].key, ours, theirs);
    }
}

/* Just before each collective of the last backward. */
static void
compare_backward_state(Run *run)
{
    JsonArray *theirs = ds_array(run->expected, "backward_state_steady_rank0");
    const ZpTape *tape = run->tape;
    guint n = 0;
    for (gint32 i = tape->step_begin[run->steps - 1]; theirs != NULL && i < tape->n_instrs; i++) {
        if (!is_collective(tape, i) || strcmp(phase_word(tape->instrs[i].phase), "backward") != 0)
            continue;
        if (n >= json_array_get_length(theirs)) {
            ds_diverge(run->check, "backward state: more collectives than recorded");
            return;
        }
        JsonObject *expected = json_array_get_object_element(theirs, n);
        g_autofree char *where =
            g_strdup_printf("before %s (number %u)", ds_text(expected, "before", ""), n);
        n++;
        g_autoptr(GArray) live = ds_live_buffers(tape, i);
        g_autoptr(GArray) ipg = ds_live_sizes(tape, live, ZP_CLASS_COMMUNICATION, ZP_ROLE_BUCKET);
        JsonArray *buffers = ds_array(expected, "ipg");
        ZpDtype dtype = run->job.zero.stage == 3 ? run->formats.communicate : run->formats.model;
        for (guint k = 0; buffers != NULL && k < MAX(ipg->len, json_array_get_length(buffers)); k++)
            ds_expect_int(
                run->check, where,
                k < ipg->len ? g_array_index(ipg, gint64, k) * 8 / zp_dtype_bits(dtype) : 0,
                k < json_array_get_length(buffers) ? json_array_get_int_element(buffers, k) : 0);
        if (run->job.zero.stage == 3)
            ds_expect_int(run->check, where, gathered_at(&run->tap, i),
                          ds_int(expected, "gathered", 0));
        else
            ds_expect_int(run->check, where,
                          ds_live_bytes(tape, live, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT) *
                              8 / zp_dtype_bits(run->formats.model),
                          ds_int(expected, "grads_in_partition",
                                 run->settings.offload_optimizer.device != ZP_DS_NOWHERE
                                     ? ds_live_bytes(tape, live, ZP_CLASS_GRADIENT,
                                                     ZP_ROLE_SHARDED_GRADIENT) *
                                           8 / zp_dtype_bits(run->formats.model)
                                     : 0));
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

static void
compare_snapshots(Run *run, JsonArray *snapshots)
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
            place.averaged_bytes = zp_ds_bytes((int)run->formats.accumulate, flat);
        } else if (sscanf(tag, "step%ld_end", &step) == 1)
            place.begin = step_end(run->tape, step);
        else {
            ds_diverge(run->check, "unknown snapshot '%s'", tag);
            return;
        }
        place.gathered_elements = gathered_at(&run->tap, place.begin);
        ds_compare_snapshot(run->check, tag, &place, expected);
    }
}

/* Flattening and partitions, from the arithmetic the compilers use. */
static void
compare_layout(Run *run)
{
    JsonArray *orders = ds_array(run->expected, "flat_order");
    const ZpDsTree *tree = run->tree;
    for (guint g = 0; orders != NULL && g < json_array_get_length(orders); g++) {
        g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(gint32));
        g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(gint64));
        for (gint32 id = 0; id < (gint32)tree->parameters->len; id++)
            if (run->groups[id] == (gint32)g && zp_ds_tree_parameter(tree, id)->trainable) {
                g_array_append_val(ids, id);
                g_array_append_val(sizes, zp_ds_tree_parameter(tree, id)->elements);
            }
        g_auto(ZpDsFlatGroup) group = {0};
        zp_ds_flat_group_init(&group, (const gint64 *)(gconstpointer)sizes->data, (gint32)ids->len,
                              run->job.world.ranks, run->settings.round_robin_gradients);
        g_autoptr(GPtrArray) names = g_ptr_array_new();
        for (gint32 p = 0; p < group.n; p++)
            g_ptr_array_add(names, (gpointer)zp_ds_tree_parameter(
                                       tree, g_array_index(ids, gint32, group.order[p]))
                                       ->name);
        ds_expect_list(run->check, "flat_order", names, json_array_get_array_element(orders, g));
        ds_expect_int(run->check, "partition_size", group.slice_elements,
                      json_array_get_int_element(ds_array(run->expected, "partition_size"), g));
        /* groups_padding of rank 0: what its slice lacks. */
        gint64 padding = MAX(group.slice_elements - group.elements, 0);
        ds_expect_int(run->check, "padding", padding,
                      json_array_get_int_element(ds_array(run->expected, "padding"), g));
    }
}

static void
compare_partition(Run *run)
{
    JsonArray *partition = ds_array(run->expected, "partition");
    for (guint i = 0; partition != NULL && i < json_array_get_length(partition); i++) {
        JsonArray *row = json_array_get_array_element(partition, i);
        const ZpDsParameter *parameter = zp_ds_tree_parameter(run->tree, (gint32)i);
        const char *name = json_array_get_string_element(row, 0);
        if (strcmp(name, parameter->name) != 0)
            ds_diverge(run->check, "partition: ours %s, theirs %s", parameter->name, name);
        ds_expect_int(run->check, name, parameter->elements, json_array_get_int_element(row, 1));
        ds_expect_int(run->check, name,
                      zp_ds_partition_elements(parameter->elements, run->job.world.ranks),
                      json_array_get_int_element(row, 2));
        ds_expect_int(run->check, name, parameter->persistent,
                      json_array_get_boolean_element(row, 3));
    }
}

static gboolean
compile(Run *run)
{
    g_autoptr(GError) error = NULL;
    zp_tape_clear(run->tape);
    ZpDsTree *tree = ds_build_run_tree(run->root, run->groups);
    run->tap.tree = tree;
    run->tap.tape = run->tape;
    run->tap.all_reduce = run->settings.all_reduce_for_fetch;
    g_ptr_array_set_size(run->tap.log, 0);
    g_array_set_size(run->tap.marks, 0);
    g_array_set_size(run->tap.step_begin, 0);
    run->tap.stepped = TRUE;
    zp_tape_clear(run->tape);
    ZpDs formats = {0};
    if (!zp_ds_init(&formats, &run->job, &run->settings, run->tape, &error)) {
        ds_diverge(run->check, "%s", error->message);
        zp_ds_tree_free(tree);
        return FALSE;
    }
    run->formats = formats;
    zp_tape_clear(run->tape);
    if (!zp_ds_program_compile_tree(&run->job, &run->settings, tree, run->tape, tap_event,
                                    &run->tap, &error)) {
        ds_diverge(run->check, "%s", error->message);
        return FALSE;
    }
    flush_persisted(&run->tap);
    run->tap.tree = NULL;
    g_clear_pointer(&run->tree, zp_ds_tree_free);
    run->tree = ds_build_run_tree(run->root, run->groups);
    zp_ds_tree_mark_persistent(run->tree, run->settings.param_persistence_elements,
                               run->settings.model_persistence_elements);
    if (!zp_tape_check(run->tape, TRUE, ZP_CLASSES_PERSISTENT, &error)) {
        ds_diverge(run->check, "tape: %s", error->message);
        return FALSE;
    }
    return TRUE;
}

void
ds_check_run(DsCheck *check, JsonObject *root)
{
    Run *run = g_new0(Run, 1);
    run->check = check;
    run->root = root;
    run->expected = ds_object(root, "expected");
    run->tape = zp_tape_new(zp_vocabulary_get());
    run->tap.log = g_ptr_array_new_with_free_func(g_free);
    run->tap.marks = g_array_new(FALSE, FALSE, sizeof(Mark));
    run->tap.step_begin = g_array_new(FALSE, FALSE, sizeof(gint32));
    run->tap.persisted = g_string_new(NULL);
    read_config(run);
    if (ds_flag(root, "cpu_artifact"))
        check->n_compared++; /* documents a fault of the recording, not of DeepSpeed */
    else if (compile(run)) {
        compare_layout(run);
        compare_partition(run);
        compare_events(run);
        compare_collectives(run);
        compare_backward_state(run);
        compare_snapshots(run, ds_array(run->expected, "snapshots_rank0"));
        JsonArray *others = ds_array(run->expected, "snapshots_other_ranks");
        for (guint i = 0; others != NULL && i < json_array_get_length(others); i++) {
            run->settings.rank = (gint32)i + 1;
            if (compile(run))
                compare_snapshots(run, json_array_get_array_element(others, i));
        }
    }
    zp_tape_free(run->tape);
    zp_ds_tree_free(run->tree);
    g_ptr_array_unref(run->tap.log);
    g_array_unref(run->tap.marks);
    g_array_unref(run->tap.step_begin);
    g_string_free(run->tap.persisted, TRUE);
    g_free(run);
}
