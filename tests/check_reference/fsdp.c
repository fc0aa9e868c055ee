/* check_reference fsdp: cases recorded from PyTorch's own FSDP2, FSDP1 and DDP code. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "fsdp_case.h"
#include "fsdp_events.h"
#include "models/runtimes/ddp/ddp.h"
#include "models/runtimes/fsdp1/fsdp1.h"
#include "models/runtimes/fsdp2/fsdp2.h"
#include "models/words/vocabulary.h"

/* Steps of a tape: the first differs (no optimizer states yet), the last is steady. */
enum { FIRST_STEP = 0, STEADY_STEP = 3, N_STEPS };

static gboolean diverges(char **why, const char *format, ...) G_GNUC_PRINTF(2, 3);

static gboolean
diverges(char **why, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    *why = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    return FALSE;
}

static gboolean
same_events(const FsdpHistory *ours, const FsdpHistory *theirs, const char *what, char **why)
{
    guint n = MAX(ours->events->len, theirs->events->len);
    for (guint i = 0; i < n; i++) {
        const FsdpEvent *a =
            i < ours->events->len ? &g_array_index(ours->events, FsdpEvent, i) : NULL;
        const FsdpEvent *b =
            i < theirs->events->len ? &g_array_index(theirs->events, FsdpEvent, i) : NULL;
        if (a && b && fsdp_event_equal(a, b))
            continue;
        g_autofree char *mine = a ? fsdp_event_text(a) : g_strdup("nothing");
        g_autofree char *recorded = b ? fsdp_event_text(b) : g_strdup("nothing");
        return diverges(why, "%s, merged event %u: ours %s; recorded %s", what, i, mine, recorded);
    }
    return TRUE;
}

/* Recordings of fake tensors contain something no training step does: DTensor's sharding
 * propagation runs each operation of the first optimizer step once more on fake tensors of the full
 * size, and the tracer counts them.  The last operation has its tensor lists alive: parameters,
 * momenta and roots (foreach), parameters, gradients and both moments (fused). */
static gint64
phantom_bytes(const FsdpCase *fsdp_case)
{
    const ZpFsdpPlan *plan = fsdp_case->plan;
    const char *source = json_object_get_string_member_with_default(fsdp_case->root, "source", "");
    if (strstr(source, "(fake tensors)") == NULL || strcmp(fsdp_case->runtime, "fsdp2") != 0 ||
        plan->settings.optimizer == ZP_FSDP_OPTIMIZER_FORLOOP)
        return 0;
    gint64 elements = 0;
    for (guint p = 0; p < plan->parameters->len; p++) {
        const ZpFsdpParameter *parameter = zp_fsdp_plan_parameter(plan, (gint32)p);
        elements += parameter->trainable ? zp_fsdp_parameter_elements(parameter) : 0;
    }
    gboolean fused = plan->settings.optimizer == ZP_FSDP_OPTIMIZER_FUSED;
    int lists = fused ? 2 + plan->moments : plan->square_root ? 3 : 2;
    return lists * elements * plan->stored_bytes;
}

static gboolean
same_peaks(const FsdpHistory *ours, const FsdpHistory *steady, JsonObject *recorded, gint64 phantom,
           const char *what, char **why)
{
    g_autoptr(GList) keys = json_object_get_members(recorded);
    gint64 optimizer = fsdp_history_peak(ours, steady, "optimizer") + phantom;
    for (GList *key = keys; key; key = key->next) {
        gint64 theirs = json_object_get_int_member(recorded, key->data);
        gint64 own = fsdp_history_peak(ours, steady, key->data);
        if (phantom > 0 && g_str_has_prefix(key->data, "optimizer"))
            own = optimizer;
        if (phantom > 0 && strcmp(key->data, "all") == 0)
            own = MAX(own, optimizer);
        if (own != theirs)
            return diverges(why,
                            "%s peak of %s: ours %" G_GINT64_FORMAT ", recorded %" G_GINT64_FORMAT,
                            what, (const char *)key->data, own, theirs);
    }
    return TRUE;
}

static gboolean
is_left_out(const char *buffer)
{
    static const char *const left_out[] = {"activation", "host_scalar", "ddp_index", NULL};
    return g_strv_contains(left_out, buffer);
}

static gboolean
same_composition(const FsdpComposition *ours, JsonObject *recorded, const char *what, char **why)
{
    /* FSDP1's views of the first step; on a tape they are as others. */
    static const char full_precision[] = "unsharded_full_precision";
    gint64 wide = json_object_get_int_member_with_default(recorded, full_precision, 0);
    if (wide > 0 && !json_object_has_member(recorded, "unsharded"))
        json_object_set_int_member(recorded, "unsharded", 0);
    g_autoptr(GList) keys = json_object_get_members(recorded);
    gint64 sum = 0;
    for (GList *key = keys; key; key = key->next) {
        if (is_left_out(key->data) || strcmp(key->data, full_precision) == 0)
            continue;
        gint64 theirs = json_object_get_int_member(recorded, key->data);
        if (strcmp(key->data, "unsharded") == 0)
            theirs += wide;
        const gint64 *own = ours ? g_hash_table_lookup(ours->by_buffer, key->data) : NULL;
        if ((own ? *own : 0) != theirs)
            return diverges(
                why, "%s, %s at the peak: ours %" G_GINT64_FORMAT ", recorded %" G_GINT64_FORMAT,
                what, (const char *)key->data, own ? *own : 0, theirs);
        sum += theirs;
    }
    if (ours && sum != ours->bytes)
        return diverges(why, "%s: ours %" G_GINT64_FORMAT ", recorded %" G_GINT64_FORMAT, what,
                        ours->bytes, sum);
    return TRUE;
}

/* Of phases over all micro-batches; a single one's entry may be an event that is left out. */
static gboolean
same_compositions(const FsdpHistory *ours, JsonObject *recorded, gboolean phantom, const char *what,
                  char **why)
{
    g_autoptr(GList) keys = json_object_get_members(recorded);
    for (GList *key = keys; key; key = key->next) {
        gboolean doubtful =
            phantom && (g_str_has_prefix(key->data, "optimizer") || strcmp(key->data, "all") == 0);
        if (strchr(key->data, '[') != NULL || doubtful)
            continue;
        JsonObject *detail = json_object_get_object_member(recorded, key->data);
        g_autofree char *label = g_strdup_printf("%s %s", what, (const char *)key->data);
        if (!same_composition(g_hash_table_lookup(ours->worst, key->data),
                              json_object_get_object_member(detail, "composition"), label, why))
            return FALSE;
    }
    return TRUE;
}

static gboolean
same_start(const FsdpHistory *ours, JsonObject *recorded, const char *what, char **why)
{
    gint64 sum = 0;
    g_autoptr(GList) keys = json_object_get_members(recorded);
    for (GList *key = keys; key; key = key->next) {
        if (is_left_out(key->data))
            continue;
        gint64 theirs = json_object_get_int_member(recorded, key->data);
        const gint64 *own = g_hash_table_lookup(ours->start, key->data);
        if ((own ? *own : 0) != theirs)
            return diverges(why, "%s of %s: ours %" G_GINT64_FORMAT ", recorded %" G_GINT64_FORMAT,
                            what, (const char *)key->data, own ? *own : 0, theirs);
        sum += theirs;
    }
    if (sum != ours->start_bytes)
        return diverges(why, "%s: ours %" G_GINT64_FORMAT ", recorded %" G_GINT64_FORMAT, what,
                        ours->start_bytes, sum);
    return TRUE;
}

static gint64
sum_collectives(const FsdpHistory *history, const char *kind, gboolean bytes)
{
    gint64 sum = 0;
    for (guint i = 0; i < history->events->len; i++) {
        const FsdpEvent *event = &g_array_index(history->events, FsdpEvent, i);
        if (event->collective && strcmp(event->kind, kind) == 0)
            sum += bytes ? event->bytes : 1;
    }
    return sum;
}

static gboolean
same_counts(const FsdpHistory *ours, JsonObject *recorded, gboolean bytes, char **why)
{
    g_autoptr(GList) keys = json_object_get_members(recorded);
    for (GList *key = keys; key; key = key->next) {
        gint64 theirs = json_object_get_int_member(recorded, key->data);
        gint64 own = sum_collectives(ours, key->data, bytes);
        if (own != theirs)
            return diverges(why, "%s of %s: ours %" G_GINT64_FORMAT ", recorded %" G_GINT64_FORMAT,
                            bytes ? "bytes" : "number", (const char *)key->data, own, theirs);
    }
    return TRUE;
}

static gboolean
same_collectives(const FsdpHistory *ours, JsonArray *recorded, const char *what, char **why)
{
    g_autoptr(JsonArray) nothing = json_array_new();
    g_autoptr(FsdpHistory) theirs = fsdp_history_of_case(nothing, NULL, 0);
    g_autoptr(FsdpHistory) own = fsdp_history_of_case(nothing, NULL, 0);
    for (guint i = 0; i < ours->events->len; i++) {
        FsdpEvent event = g_array_index(ours->events, FsdpEvent, i);
        if (event.collective)
            g_array_append_val(own->events, event);
    }
    for (guint i = 0; i < json_array_get_length(recorded); i++) {
        g_autoptr(JsonArray) one = json_array_new();
        g_autoptr(JsonObject) object = json_object_new();
        JsonObject *source = json_array_get_object_element(recorded, i);
        g_autoptr(GList) keys = json_object_get_members(source);
        for (GList *key = keys; key; key = key->next)
            json_object_set_member(object, key->data, json_object_dup_member(source, key->data));
        json_object_set_int_member(object, "after_event", 0);
        json_array_add_object_element(one, json_object_ref(object));
        g_autoptr(FsdpHistory) single = fsdp_history_of_case(nothing, one, 0);
        g_array_append_val(theirs->events, g_array_index(single->events, FsdpEvent, 0));
    }
    return same_events(own, theirs, what, why);
}

/* Events, totals and peaks of one step against a recorded object with "allocated". */
static gboolean
same_step(const FsdpCase *fsdp_case, const ZpTape *tape, gint32 step, JsonObject *recorded,
          JsonObject *start, const char *what, char **why)
{
    g_autoptr(FsdpHistory) ours = fsdp_history_of_tape(tape, step);
    g_autofree char *label = g_strdup_printf("%s, start", what);
    if (start && !same_start(ours, start, label, why))
        return FALSE;
    if (json_object_has_member(recorded, "allocated")) {
        JsonArray *collectives = json_object_has_member(recorded, "collectives")
                                     ? json_object_get_array_member(recorded, "collectives")
                                     : NULL;
        g_autoptr(FsdpHistory) theirs = fsdp_history_of_case(
            json_object_get_array_member(recorded, "allocated"), collectives, ours->start_bytes);
        if (!same_events(ours, theirs, what, why))
            return FALSE;
    } else if (json_object_has_member(recorded, "collectives") &&
               !same_collectives(ours, json_object_get_array_member(recorded, "collectives"), what,
                                 why)) {
        return FALSE;
    }
    gint64 phantom = step == FIRST_STEP ? phantom_bytes(fsdp_case) : 0;
    if (json_object_has_member(recorded, "peak_detail")) {
        JsonObject *detail = json_object_get_object_member(recorded, "peak_detail");
        if (!same_compositions(ours, json_object_get_object_member(detail, "model"), phantom > 0,
                               what, why))
            return FALSE;
    }
    if (!json_object_has_member(recorded, "peak_bytes"))
        return TRUE;
    JsonObject *peaks = json_object_get_object_member(recorded, "peak_bytes");
    JsonObject *expected = json_object_get_object_member(fsdp_case->root, "expected");
    g_autoptr(FsdpHistory) steady =
        fsdp_history_of_case(json_object_get_array_member(expected, "allocated"), NULL, 0);
    return same_peaks(ours, steady, json_object_get_object_member(peaks, "model"), phantom, what,
                      why);
}

/* NULL where there is none. */
static JsonObject *
member(JsonObject *object, const char *name)
{
    return json_object_has_member(object, name) ? json_object_get_object_member(object, name)
                                                : NULL;
}

static gboolean
check_tape(const FsdpCase *fsdp_case, const ZpTape *tape, char **why)
{
    JsonObject *expected = json_object_get_object_member(fsdp_case->root, "expected");
    JsonObject *start = json_object_get_object_member(expected, "persistent_bytes");
    if (!same_step(fsdp_case, tape, STEADY_STEP, expected, start, "steady step", why))
        return FALSE;
    g_autoptr(FsdpHistory) steady = fsdp_history_of_tape(tape, STEADY_STEP);
    JsonObject *totals = member(expected, "start");
    if (totals != NULL && steady->start_bytes != json_object_get_int_member(totals, "model_bytes"))
        return diverges(why, "start: ours %" G_GINT64_FORMAT, steady->start_bytes);
    if (json_object_has_member(expected, "counts") &&
        !same_counts(steady, json_object_get_object_member(expected, "counts"), FALSE, why))
        return FALSE;
    if (json_object_has_member(expected, "collective_bytes") &&
        !same_counts(steady, json_object_get_object_member(expected, "collective_bytes"), TRUE,
                     why))
        return FALSE;
    if (json_object_has_member(expected, "first_step")) {
        JsonObject *first = json_object_get_object_member(expected, "first_step");
        JsonObject *by_class = member(first, "start_by_class");
        if (!same_step(fsdp_case, tape, FIRST_STEP, first, by_class, "first step", why))
            return FALSE;
    }
    if (json_object_has_member(expected, "second_step")) {
        JsonObject *second = json_object_get_object_member(expected, "second_step");
        JsonObject *by_class = member(second, "start_by_class");
        return same_step(fsdp_case, tape, FIRST_STEP + 1, second, by_class, "second step", why);
    }
    return TRUE;
}

/* Is the optimizer a ZeroRedundancyOptimizer? */
static gboolean
is_partitioned(const FsdpCase *fsdp_case)
{
    JsonObject *optimizer = json_object_get_object_member(fsdp_case->root, "optimizer");
    return json_object_get_boolean_member_with_default(optimizer, "zero_redundancy", FALSE);
}

static gboolean
compile(const FsdpCase *fsdp_case, ZpTape *tape)
{
    if (strcmp(fsdp_case->runtime, "fsdp2") == 0)
        zp_fsdp2_compile(fsdp_case->plan, NULL, N_STEPS, tape);
    else if (strcmp(fsdp_case->runtime, "fsdp1") == 0)
        zp_fsdp1_compile(fsdp_case->plan, NULL, N_STEPS, tape);
    else if (strcmp(fsdp_case->runtime, "ddp") == 0)
        zp_ddp_compile(fsdp_case->plan, NULL, is_partitioned(fsdp_case), N_STEPS, tape);
    else
        return FALSE;
    return TRUE;
}

/* Is the case as the compilers have it?  `why` not, owned by the caller. */
static gboolean
holds(const FsdpCase *fsdp_case, char **why)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ZpTape) tape = zp_tape_new(zp_vocabulary_get());
    if (!compile(fsdp_case, tape))
        return diverges(why, "no runtime '%s'", fsdp_case->runtime);
    if (!zp_tape_check(tape, FALSE, 0, &error))
        return diverges(why, "broken tape: %s", error->message);
    return check_tape(fsdp_case, tape, why);
}

static gboolean
check_case(const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(FsdpCase) fsdp_case = fsdp_case_read(path, &error);
    if (fsdp_case == NULL) {
        printf("FAIL %s: %s\n", path, error->message);
        return FALSE;
    }
    g_autofree char *why = NULL;
    gboolean passed = holds(fsdp_case, &why);
    printf("%s %s%s%s\n", passed ? "pass" : "FAIL", fsdp_case->id, passed ? "" : ": ",
           passed ? "" : why);
    return passed;
}

gboolean
fsdp_passes(const char *text)
{
    g_autofree char *why = NULL;
    g_autoptr(FsdpCase) fsdp_case = fsdp_case_parse(text, NULL);
    return fsdp_case != NULL && holds(fsdp_case, &why);
}

static int
by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
collect(const char *path, GPtrArray *files)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    if (dir == NULL) {
        g_ptr_array_add(files, g_strdup(path));
        return;
    }
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL) {
        if (g_str_has_suffix(name, ".json"))
            g_ptr_array_add(files, g_build_filename(path, name, NULL));
    }
}

int
check_fsdp(char **paths, int n_paths)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    for (int i = 0; i < n_paths; i++)
        collect(paths[i], files);
    g_ptr_array_sort(files, by_name);
    int failures = 0;
    for (guint i = 0; i < files->len; i++)
        failures += !check_case(g_ptr_array_index(files, i));
    printf("%u passed, %d failed\n", files->len - (guint)failures, failures);
    return files->len == 0 ? 1 : failures;
}
