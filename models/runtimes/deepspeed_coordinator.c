#include "models/runtimes/deepspeed_coordinator.h"

#include <string.h>

typedef enum { MODE_INVALID, MODE_RECORD, MODE_COMPLETE } Mode;
typedef enum { NOT_AVAILABLE, IN_FLIGHT, AVAILABLE } Status;

typedef struct {
    guint8 status;
    gboolean secondary; /* has an hpZ secondary partition */
    gint32 gather;      /* index into gathers while the registry holds its handle, else -1 */
    gint32 fetched_for; /* last step of the trace it was fetched for; NEVER */
    guint64 active;     /* set of modules that use it now: bit = position in its list of users */
    gint32 attributed;  /* other modules in backward that a recomputation fetched it for */
} State;

#define NEVER G_MININT32

/* A handle in flight or waited for; alive while the registry refers to it. */
typedef struct {
    gint32 number;
    gint32 references;
    gboolean waited;
    gint32 first, n; /* range of gathered */
    gint64 elements, flat_elements;
} Gather;

typedef struct {
    gint32 parameter, step;
} Traced;

/* A release decision: which needs of a module may go at a step of the trace. */
typedef struct {
    gint32 module, previous; /* index of the step's memo before, or -1 */
    guint offset;            /* in decisions */
} Memo;

struct _ZpDsCoordinator {
    const ZpDsTree *tree;
    ZpDsCoordinatorConfig config;
    ZpDsListener listener;
    gpointer data;
    State *states;    /* by ds_id */
    gint8 *need_bits; /* by position in tree->needed: the module's bit in State.active */
    Mode mode;
    gint32 step_id;
    GArray *modules;    /* gint32: the trace */
    GArray *parameters; /* Traced */
    guint queue;        /* next of parameters to be fetched */
    gint64 n_available, max_available;
    GArray *gathers;  /* Gather */
    GArray *gathered; /* gint32 ds_ids of the gathers */
    GArray *registry; /* gint32 ds_ids in flight, in order of insertion */
    GArray *scratch;  /* gint32 ds_ids of one batch */
    gint32 n_gathers;
    GArray *backward;     /* gint32 modules in backward, in order of insertion */
    GArray **recompute;   /* by module: frozen ds_ids fetched for it in a recomputation, or NULL */
    GArray *memo_of_step; /* gint32: last memo of each step of the trace, or -1 */
    GArray *memos;        /* Memo */
    GByteArray *decisions;
    const char *error;
};

/* Which bit of State.active a module has for each parameter it needs. */
static void
number_users(ZpDsCoordinator *self)
{
    const ZpDsTree *tree = self->tree;
    g_autofree gint8 *users = g_new0(gint8, tree->parameters->len);
    self->need_bits = g_new0(gint8, MAX(tree->needed->len, 1));
    for (guint m = 0; m < tree->modules->len; m++) {
        const ZpDsModule *module = zp_ds_tree_module(tree, (gint32)m);
        for (gint32 i = 0; i < module->n_need && !module->hidden; i++) {
            gint32 id = zp_ds_tree_need(tree, module)[i];
            g_assert(users[id] < 64);
            self->need_bits[module->first_need + i] = users[id]++;
        }
    }
}

ZpDsCoordinator *
zp_ds_coordinator_new(const ZpDsTree *tree, const ZpDsCoordinatorConfig *config)
{
    ZpDsCoordinator *self = g_new0(ZpDsCoordinator, 1);
    self->tree = tree;
    self->config = *config;
    self->states = g_new0(State, MAX(tree->parameters->len, 1));
    for (guint i = 0; i < tree->parameters->len; i++) {
        self->states[i].gather = -1;
        self->states[i].fetched_for = NEVER;
        /* Partitioning at construction makes the first secondary partitions. */
        self->states[i].secondary = config->secondary_ranks > 1;
    }
    number_users(self);
    self->modules = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->parameters = g_array_new(FALSE, FALSE, sizeof(Traced));
    self->gathers = g_array_new(FALSE, TRUE, sizeof(Gather));
    self->gathered = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->registry = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->scratch = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->backward = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->recompute = g_new0(GArray *, tree->modules->len);
    self->memo_of_step = g_array_new(FALSE, FALSE, sizeof(gint32));
    self->memos = g_array_new(FALSE, FALSE, sizeof(Memo));
    self->decisions = g_byte_array_new();
    return self;
}

void
zp_ds_coordinator_free(ZpDsCoordinator *self)
{
    if (self == NULL)
        return;
    for (guint i = 0; i < self->tree->modules->len; i++)
        if (self->recompute[i] != NULL)
            g_array_unref(self->recompute[i]);
    g_free(self->recompute);
    g_free(self->states);
    g_free(self->need_bits);
    g_array_unref(self->modules);
    g_array_unref(self->parameters);
    g_array_unref(self->gathers);
    g_array_unref(self->gathered);
    g_array_unref(self->registry);
    g_array_unref(self->scratch);
    g_array_unref(self->backward);
    g_array_unref(self->memo_of_step);
    g_array_unref(self->memos);
    g_byte_array_unref(self->decisions);
    g_free(self);
}

void
zp_ds_coordinator_listen(ZpDsCoordinator *self, ZpDsListener listener, gpointer data)
{
    self->listener = listener;
    self->data = data;
}

static void
emit(ZpDsCoordinator *self, const ZpDsEvent *event)
{
    if (self->listener != NULL)
        self->listener(event, self->data);
}

gint64
zp_ds_coordinator_take_max_available(ZpDsCoordinator *self)
{
    gint64 max = self->max_available;
    self->max_available = 0;
    return max;
}

const char *
zp_ds_coordinator_error(const ZpDsCoordinator *self)
{
    return self->error;
}

static void
emit_parameter(ZpDsCoordinator *self, ZpDsEventKind kind, gint32 id)
{
    gint64 elements = zp_ds_tree_parameter(self->tree, id)->elements;
    ZpDsEvent event = {
        .kind = kind,
        .module = ZP_MODEL_NONE,
        .ids = &id,
        .n_ids = 1,
        .elements = elements,
        .flat_elements =
            zp_ds_partition_elements(elements, self->config.ranks) * self->config.ranks,
        .gather = -1,
    };
    emit(self, &event);
}

static void
emit_plain(ZpDsCoordinator *self, ZpDsEventKind kind, gint32 module, gboolean recompute,
           gint64 elements)
{
    ZpDsEvent event = {
        .kind = kind, .module = module, .recompute = recompute, .elements = elements, .gather = -1};
    emit(self, &event);
}

static void
emit_gather(ZpDsCoordinator *self, ZpDsEventKind kind, const Gather *gather, gboolean secondary)
{
    ZpDsEvent event = {
        .kind = kind,
        .module = ZP_MODEL_NONE,
        .ids = &g_array_index(self->gathered, gint32, (guint)gather->first),
        .n_ids = gather->n,
        .elements = gather->elements,
        .flat_elements = gather->flat_elements,
        .gather = gather->number,
        .secondary = secondary,
    };
    emit(self, &event);
}

/* Gathers */

static void
launch(ZpDsCoordinator *self, const gint32 *ids, gint32 n, gboolean secondary)
{
    if (n == 0)
        return;
    if (self->registry->len == 0) {
        /* No handle is referred to any more: their storage can be used again. */
        g_array_set_size(self->gathers, 0);
        g_array_set_size(self->gathered, 0);
    }
    Gather gather = {
        .number = self->n_gathers++, .references = n, .first = (gint32)self->gathered->len, .n = n};
    g_array_append_vals(self->gathered, ids, (guint)n);
    for (gint32 i = 0; i < n; i++) {
        gint64 elements = zp_ds_tree_parameter(self->tree, ids[i])->elements;
        gather.elements += elements;
        gather.flat_elements +=
            zp_ds_partition_elements(elements, self->config.ranks) * self->config.ranks;
        State *state = &self->states[ids[i]];
        state->status = IN_FLIGHT;
        state->gather = (gint32)self->gathers->len;
    }
    g_array_append_val(self->gathers, gather);
    g_array_append_vals(self->registry, ids, (guint)n);
    emit_gather(self, ZP_DS_GATHER, &gather, secondary);
}

/* Ascending ids; those with an hpZ secondary partition are gathered apart. */
static void
gather_parameters(ZpDsCoordinator *self, const gint32 *ids, gint32 n)
{
    for (int secondary = 1; secondary >= 0; secondary--) {
        g_array_set_size(self->scratch, 0);
        for (gint32 i = 0; i < n; i++) {
            const State *state = &self->states[ids[i]];
            if (state->status != NOT_AVAILABLE || state->secondary != secondary)
                continue;
            self->n_available += zp_ds_tree_parameter(self->tree, ids[i])->elements;
            g_array_append_val(self->scratch, ids[i]);
        }
        const gint32 *batch = &g_array_index(self->scratch, gint32, 0);
        gint32 count = (gint32)self->scratch->len;
        if (!self->config.sequential)
            launch(self, batch, count, secondary);
        for (gint32 i = 0; self->config.sequential && i < count; i++)
            launch(self, batch + i, 1, secondary);
    }
}

static void
wait_for(ZpDsCoordinator *self, gint32 index)
{
    Gather *gather = &g_array_index(self->gathers, Gather, (guint)index);
    if (gather->waited)
        return;
    gather->waited = TRUE;
    const gint32 *ids = &g_array_index(self->gathered, gint32, (guint)gather->first);
    for (gint32 i = 0; i < gather->n; i++)
        self->states[ids[i]].status = AVAILABLE;
    emit_gather(self, ZP_DS_WAIT, gather, FALSE);
}

/* The registry lets go of a handle; the flat buffer dies with the last reference. */
static void
drop_reference(ZpDsCoordinator *self, gint32 index)
{
    Gather *gather = &g_array_index(self->gathers, Gather, (guint)index);
    if (--gather->references == 0 && gather->n > 1)
        emit_gather(self, ZP_DS_FLAT_FREED, gather, FALSE);
}

/* Takes a parameter out of the registry and waits for its handle. */
static void
pop_and_wait(ZpDsCoordinator *self, gint32 id)
{
    gint32 index = self->states[id].gather;
    if (index < 0)
        return;
    for (guint i = 0; i < self->registry->len; i++)
        if (g_array_index(self->registry, gint32, i) == id) {
            g_array_remove_index(self->registry, i);
            break;
        }
    self->states[id].gather = -1;
    wait_for(self, index);
    emit_parameter(self, ZP_DS_POP, id);
    drop_reference(self, index);
}

static void
release_parameter(ZpDsCoordinator *self, gint32 id)
{
    State *state = &self->states[id];
    if (state->status != AVAILABLE || state->active != 0 || state->attributed > 0)
        return;
    state->status = NOT_AVAILABLE;
    if (self->config.secondary_ranks > 1 && !state->secondary) {
        state->secondary = TRUE;
        emit_parameter(self, ZP_DS_SECONDARY, id);
    }
    emit_parameter(self, ZP_DS_RELEASE, id);
    self->n_available -= zp_ds_tree_parameter(self->tree, id)->elements;
}

/* Whatever is in flight is waited for and released, then the registry is emptied. */
static void
clean_registry(ZpDsCoordinator *self)
{
    for (guint i = 0; i < self->registry->len; i++) {
        gint32 id = g_array_index(self->registry, gint32, i);
        wait_for(self, self->states[id].gather);
        release_parameter(self, id);
    }
    for (guint i = 0; i < self->registry->len; i++) {
        gint32 id = g_array_index(self->registry, gint32, i);
        drop_reference(self, self->states[id].gather);
        self->states[id].gather = -1;
    }
    g_array_set_size(self->registry, 0);
}

/* Trace */

static void
forget_fetches(ZpDsCoordinator *self)
{
    for (guint i = 0; i < self->tree->parameters->len; i++)
        self->states[i].fetched_for = NEVER;
}

static void
build_parameter_trace(ZpDsCoordinator *self)
{
    g_array_set_size(self->parameters, 0);
    for (guint step = 0; step < self->modules->len; step++) {
        const ZpDsModule *module =
            zp_ds_tree_module(self->tree, g_array_index(self->modules, gint32, step));
        for (gint32 i = 0; i < module->n_need; i++) {
            Traced traced = {zp_ds_tree_need(self->tree, module)[i], (gint32)step};
            g_array_append_val(self->parameters, traced);
        }
    }
}

void
zp_ds_coordinator_reset_step(ZpDsCoordinator *self)
{
    clean_registry(self);
    if (self->mode != MODE_COMPLETE) {
        emit_plain(self, ZP_DS_CHECK, ZP_MODEL_NONE, FALSE, self->modules->len);
        if (self->mode == MODE_RECORD) {
            build_parameter_trace(self);
            emit_plain(self, ZP_DS_CHECK, ZP_MODEL_NONE, FALSE, self->parameters->len);
            emit_plain(self, ZP_DS_CHECK, ZP_MODEL_NONE, FALSE, self->parameters->len);
            self->mode = MODE_COMPLETE;
        } else
            self->mode = MODE_RECORD;
    }
    self->queue = 0;
    forget_fetches(self);
    self->step_id = 0;
    self->n_available = 0;
}

static void
invalidate(ZpDsCoordinator *self)
{
    self->mode = MODE_INVALID;
    g_array_set_size(self->modules, 0);
    g_array_set_size(self->parameters, 0);
    forget_fetches(self);
    emit_plain(self, ZP_DS_INVALID, ZP_MODEL_NONE, FALSE, 0);
    clean_registry(self);
}

/* What a pre-hook does first: the trace must expect this module, or it is recorded. */
static void
follow_trace(ZpDsCoordinator *self, gint32 module)
{
    if (self->mode == MODE_COMPLETE &&
        ((guint)self->step_id >= self->modules->len ||
         g_array_index(self->modules, gint32, (guint)self->step_id) != module))
        invalidate(self);
    else if (self->mode == MODE_RECORD)
        g_array_append_val(self->modules, module);
}

/* Fetch */

static void
prefetch(ZpDsCoordinator *self)
{
    gint64 budget = MIN(self->config.max_live_elements - self->n_available,
                        self->config.prefetch_bucket_elements);
    g_autoptr(GArray) batch = NULL;
    gint64 collected = 0;
    while (self->queue < self->parameters->len && collected < budget) {
        Traced *traced = &g_array_index(self->parameters, Traced, self->queue++);
        State *state = &self->states[traced->parameter];
        state->fetched_for = MAX(state->fetched_for, traced->step);
        if (state->status != NOT_AVAILABLE)
            continue;
        if (batch == NULL)
            batch = g_array_new(FALSE, FALSE, sizeof(gint32));
        guint at = batch->len;
        while (at > 0 && g_array_index(batch, gint32, at - 1) > traced->parameter)
            at--;
        if (at > 0 && g_array_index(batch, gint32, at - 1) == traced->parameter)
            continue;
        g_array_insert_val(batch, at, traced->parameter);
        collected += zp_ds_tree_parameter(self->tree, traced->parameter)->elements;
    }
    if (batch != NULL)
        gather_parameters(self, &g_array_index(batch, gint32, 0), (gint32)batch->len);
}

/* Pops the module's own entries, unless an earlier prefetch already did. */
static void
advance_queue(ZpDsCoordinator *self, const gint32 *ids, gint32 n)
{
    gint32 missing = 0;
    for (gint32 i = 0; i < n; i++)
        missing += self->states[ids[i]].fetched_for < self->step_id;
    for (; missing > 0 && self->queue < self->parameters->len; missing--) {
        const Traced *traced = &g_array_index(self->parameters, Traced, self->queue++);
        if (traced->step != self->step_id)
            self->error = "tracing error: the fetch queue does not start with this module";
        self->states[traced->parameter].fetched_for = traced->step;
    }
    if (missing > 0)
        self->error = "tracing error: the fetch queue is empty";
}

/* The position of a parameter among a module's needs, or -1. */
static gint32
find_need(const ZpDsCoordinator *self, const ZpDsModule *module, gint32 id)
{
    const gint32 *ids = zp_ds_tree_need(self->tree, module);
    for (gint32 i = 0; i < module->n_need; i++)
        if (ids[i] == id)
            return i;
    return -1;
}

/* A frozen parameter has no gradient hook to release it after a recomputation: the module that is
 * in backward becomes its user and releases it. */
static void
attribute_recomputation(ZpDsCoordinator *self, gint32 id)
{
    gint32 owner = g_array_index(self->backward, gint32, self->backward->len - 1);
    const ZpDsModule *module = zp_ds_tree_module(self->tree, owner);
    gint32 need = find_need(self, module, id);
    if (need >= 0)
        self->states[id].active |= G_GUINT64_CONSTANT(1)
                                   << self->need_bits[module->first_need + need];
    GArray **list = &self->recompute[owner];
    if (*list == NULL)
        *list = g_array_new(FALSE, FALSE, sizeof(gint32));
    guint at = (*list)->len;
    while (at > 0 && g_array_index(*list, gint32, at - 1) > id)
        at--;
    if (at > 0 && g_array_index(*list, gint32, at - 1) == id)
        return;
    g_array_insert_val(*list, at, id);
    self->states[id].attributed += need < 0;
}

static void
fetch(ZpDsCoordinator *self, gint32 index, gboolean recompute)
{
    const ZpDsModule *module = zp_ds_tree_module(self->tree, index);
    const gint32 *ids = zp_ds_tree_need(self->tree, module);
    gather_parameters(self, ids, module->n_need);
    for (gint32 i = 0; i < module->n_need; i++) {
        self->states[ids[i]].active |= G_GUINT64_CONSTANT(1)
                                       << self->need_bits[module->first_need + i];
        if (recompute && self->backward->len > 0 &&
            !zp_ds_tree_parameter(self->tree, ids[i])->trainable)
            attribute_recomputation(self, ids[i]);
        pop_and_wait(self, ids[i]);
    }
    emit_plain(self, ZP_DS_COMPUTE_WAIT, index, recompute, 0);
    if (self->mode == MODE_COMPLETE) {
        advance_queue(self, ids, module->n_need);
        if (self->config.prefetch_bucket_elements > 0)
            prefetch(self);
    }
    self->step_id++;
    self->max_available = MAX(self->max_available, self->n_available);
}

/* Release */

static const Memo *
find_memo(const ZpDsCoordinator *self, gint32 module)
{
    if ((guint)self->step_id >= self->memo_of_step->len)
        return NULL;
    for (gint32 m = g_array_index(self->memo_of_step, gint32, self->step_id); m >= 0;) {
        const Memo *memo = &g_array_index(self->memos, Memo, m);
        if (memo->module == module)
            return memo;
        m = memo->previous;
    }
    return NULL;
}

static void
remember(ZpDsCoordinator *self, gint32 module, guint offset)
{
    const gint32 none = -1;
    while (self->memo_of_step->len <= (guint)self->step_id)
        g_array_append_val(self->memo_of_step, none);
    gint32 *last = &g_array_index(self->memo_of_step, gint32, self->step_id);
    Memo memo = {module, *last, offset};
    *last = (gint32)self->memos->len;
    g_array_append_val(self->memos, memo);
}

/* Which of the module's needs may be released at this step of the trace.  The decision is
 * memoised for ever, even when the trace is recorded again. */
static const guint8 *
decide_release(ZpDsCoordinator *self, gint32 index)
{
    const ZpDsModule *module = zp_ds_tree_module(self->tree, index);
    const Memo *known = find_memo(self, index);
    if (known != NULL)
        return self->decisions->data + known->offset;
    guint offset = self->decisions->len;
    g_byte_array_set_size(self->decisions, offset + (guint)module->n_need);
    guint8 *decision = self->decisions->data + offset;
    const gint32 *ids = zp_ds_tree_need(self->tree, module);
    gint32 candidates = 0;
    for (gint32 i = 0; i < module->n_need; i++) {
        decision[i] = !zp_ds_tree_parameter(self->tree, ids[i])->persistent &&
                      self->states[ids[i]].fetched_for <= self->step_id;
        candidates += decision[i];
    }
    gint64 traversed = 0;
    for (guint step = (guint)self->step_id; step < self->modules->len && candidates > 0 &&
                                            traversed < self->config.max_reuse_distance_elements;
         step++) {
        const ZpDsModule *visited =
            zp_ds_tree_module(self->tree, g_array_index(self->modules, gint32, step));
        /* The scan recurses according to the released module, not the visited one. */
        gint32 first = visited->first_own;
        gint32 end = module->leaf
                         ? (visited->subtree_end < (gint32)self->tree->modules->len
                                ? zp_ds_tree_module(self->tree, visited->subtree_end)->first_own
                                : (gint32)self->tree->owned->len)
                         : first + visited->n_own;
        gint64 own = 0;
        for (gint32 k = first; k < end; k++) {
            gint32 id = g_array_index(self->tree->owned, gint32, (guint)k);
            own += zp_ds_tree_parameter(self->tree, id)->elements;
            for (gint32 i = 0; i < module->n_need; i++)
                if (ids[i] == id && decision[i]) {
                    decision[i] = FALSE;
                    candidates--;
                }
        }
        traversed += module->leaf ? visited->subtree_elements : own;
    }
    remember(self, index, offset);
    return decision;
}

/* Sets the module inactive on what it needs and on what recomputations fetched for it, and
 * releases what may go, in ascending order. */
static void
release(ZpDsCoordinator *self, gint32 index, gboolean backward, const guint8 *decision)
{
    const ZpDsModule *module = zp_ds_tree_module(self->tree, index);
    const gint32 *ids = zp_ds_tree_need(self->tree, module);
    GArray *extra = backward ? self->recompute[index] : NULL;
    guint n_extra = extra != NULL ? extra->len : 0;
    guint k = 0;
    for (gint32 i = 0; i < module->n_need || k < n_extra;) {
        gint32 own = i < module->n_need ? ids[i] : G_MAXINT32;
        gint32 other = k < n_extra ? g_array_index(extra, gint32, k) : G_MAXINT32;
        gint32 id = MIN(own, other);
        gboolean allowed = FALSE;
        if (own == id) {
            self->states[id].active &=
                ~(G_GUINT64_CONSTANT(1) << self->need_bits[module->first_need + i]);
            allowed = decision == NULL || decision[i];
            i++;
        }
        if (other == id) {
            allowed |= !zp_ds_tree_parameter(self->tree, id)->persistent;
            if (own != id && self->states[id].attributed > 0)
                self->states[id].attributed--;
            k++;
        }
        if (allowed)
            release_parameter(self, id);
    }
    if (extra != NULL)
        g_array_set_size(extra, 0);
}

static void
leave_backward(ZpDsCoordinator *self, gint32 index)
{
    for (guint i = 0; i < self->backward->len; i++)
        if (g_array_index(self->backward, gint32, i) == index) {
            g_array_remove_index(self->backward, i);
            return;
        }
}

/* Hooks */

void
zp_ds_coordinator_pre_forward(ZpDsCoordinator *self, gint32 module, gboolean recompute)
{
    emit_plain(self, ZP_DS_FORWARD_PRE, module, recompute, 0);
    follow_trace(self, module);
    fetch(self, module, recompute);
}

void
zp_ds_coordinator_post_forward(ZpDsCoordinator *self, gint32 module, gboolean recompute)
{
    emit_plain(self, ZP_DS_FORWARD_POST, module, recompute, 0);
    release(self, module, FALSE, self->mode == MODE_COMPLETE ? decide_release(self, module) : NULL);
}

void
zp_ds_coordinator_pre_backward(ZpDsCoordinator *self, gint32 module)
{
    emit_plain(self, ZP_DS_BACKWARD_PRE, module, FALSE, 0);
    follow_trace(self, module);
    gboolean present = FALSE;
    for (guint i = 0; i < self->backward->len; i++)
        present |= g_array_index(self->backward, gint32, i) == module;
    if (!present)
        g_array_append_val(self->backward, module);
    fetch(self, module, FALSE);
}

void
zp_ds_coordinator_post_backward(ZpDsCoordinator *self, gint32 module)
{
    emit_plain(self, ZP_DS_BACKWARD_POST, module, FALSE, 0);
    const guint8 *decision = self->mode == MODE_COMPLETE ? decide_release(self, module) : NULL;
    leave_backward(self, module);
    release(self, module, TRUE, decision);
}

void
zp_ds_coordinator_leftovers(ZpDsCoordinator *self)
{
    emit_plain(self, ZP_DS_LEFTOVERS, ZP_MODEL_NONE, FALSE, 0);
    while (self->backward->len > 0) {
        gint32 index = g_array_index(self->backward, gint32, self->backward->len - 1);
        g_array_set_size(self->backward, self->backward->len - 1);
        const ZpDsModule *module = zp_ds_tree_module(self->tree, index);
        g_autofree guint8 *decision = g_new(guint8, module->n_need);
        for (gint32 i = 0; i < module->n_need; i++)
            decision[i] = !zp_ds_tree_parameter(self->tree, zp_ds_tree_need(self->tree, module)[i])
                               ->persistent;
        release(self, index, TRUE, decision);
    }
}

void
zp_ds_coordinator_step(ZpDsCoordinator *self)
{
    emit_plain(self, ZP_DS_STEP, ZP_MODEL_NONE, FALSE, 0);
    for (gint32 id = 0; id < (gint32)self->tree->parameters->len; id++) {
        pop_and_wait(self, id);
        self->states[id].active = 0;
        self->states[id].attributed = 0;
        release_parameter(self, id);
    }
}

void
zp_ds_coordinator_persist(ZpDsCoordinator *self)
{
    for (gint32 id = 0; id < (gint32)self->tree->parameters->len; id++) {
        if (!zp_ds_tree_parameter(self->tree, id)->persistent)
            continue;
        self->states[id].status = AVAILABLE;
        emit_parameter(self, ZP_DS_PERSIST, id);
    }
    for (gint32 id = 0; id < (gint32)self->tree->parameters->len; id++) {
        const ZpDsParameter *parameter = zp_ds_tree_parameter(self->tree, id);
        State *state = &self->states[id];
        if (parameter->trainable && state->secondary) {
            state->secondary = FALSE;
            emit_parameter(self, ZP_DS_DROP_SECONDARY, id);
        }
    }
}
