/* The events of a block for those who replay them. */
#include "models/activation/program_internal.h"
#include "models/activation/script_internal.h"

/* In the order of time, with the four ends that others own. */
typedef struct {
    guint input, output, output_gradient; /* indices of events */
    gint32 input_gradient;                /* the storage that is left */
} Ends;

static const ZpScriptEvent *
event_at(const ZpScript *script, guint index)
{
    return &g_array_index(script->events, ZpScriptEvent, index);
}

/* The walk begins with the input, forward ends with the output's end, and backward begins with its
 * gradient (activation.c). */
static Ends
find_ends(const ZpScript *script)
{
    Ends ends = {.input_gradient = -1};
    g_autofree gboolean *lives = g_new0(gboolean, (gsize)script->n_storages);
    for (guint i = 0; i < script->events->len; i++) {
        const ZpScriptEvent *event = event_at(script, i);
        if (!zp_script_is_activation(event))
            continue;
        lives[event->storage] = !event->dies;
        if (event->pass == ZP_TRACE_FORWARD)
            ends.output = i;
    }
    ends.output_gradient = ends.output + 1;
    while (!zp_script_is_activation(event_at(script, ends.output_gradient)))
        ends.output_gradient++;
    g_assert(event_at(script, ends.output)->dies);
    for (gint32 s = 0; s < script->n_storages; s++) {
        g_assert(!lives[s] || ends.input_gradient < 0);
        if (lives[s])
            ends.input_gradient = s;
    }
    g_assert(ends.input_gradient >= 0 || script->source.block.input_frozen);
    return ends;
}

ZpActivationScript *
zp_activation_script(const ZpActivationBlock *block, ZpBlockPolicy policy, gboolean one_sequence)
{
    static const ZpActivationPass passes[] = {
        [ZP_TRACE_FORWARD] = ZP_ACTIVATION_FORWARD,
        [ZP_TRACE_RECOMPUTE] = ZP_ACTIVATION_RECOMPUTE,
        [ZP_TRACE_BACKWARD] = ZP_ACTIVATION_BACKWARD,
    };
    ZpScriptSource source = {.block = *block};
    source.block.policy = policy;
    ZpScript script = zp_script_new(&source, one_sequence);
    Ends ends = find_ends(&script);
    const ZpScriptEvent *input = event_at(&script, ends.input);
    const ZpScriptEvent *gradient = event_at(&script, ends.output_gradient);
    ZpActivationScript *result = g_new0(ZpActivationScript, 1);
    *result = (ZpActivationScript){
        .n_parts = script.n_parts,
        .n_storages = script.n_storages,
        .input = input->storage,
        .output = event_at(&script, ends.output)->storage,
        .output_gradient = gradient->storage,
        .input_gradient = ends.input_gradient,
        .input_bytes = zp_form_bytes(&input->form, script.scale),
        .output_gradient_bytes = zp_form_bytes(&gradient->form, script.scale),
        .events = g_array_sized_new(FALSE, FALSE, sizeof(ZpActivationEvent), script.events->len),
    };
    for (guint i = 0; i < script.events->len; i++) {
        const ZpScriptEvent *event = event_at(&script, i);
        ZpActivationEvent own = {event->storage, event->part, passes[event->pass], event->dies,
                                 zp_form_bytes(&event->form, script.scale)};
        if (zp_script_is_activation(event) && i != ends.input && i != ends.output &&
            i != ends.output_gradient)
            g_array_append_val(result->events, own);
    }
    zp_script_clear(&script);
    return result;
}

typedef struct {
    gint16 parameter;    /* 1 + whose gradient the storage is; 0: none's */
    gboolean in_forward; /* it dies there */
} Fate;

static Fate *
find_fates(const ZpScript *script, GArray *parameters)
{
    Fate *fates = g_new0(Fate, (gsize)script->n_storages);
    for (guint i = 0; i < script->events->len; i++) {
        const ZpScriptEvent *event = event_at(script, i);
        if (event->parameter == 0) {
            fates[event->storage].in_forward |= event->dies && event->pass == ZP_TRACE_FORWARD;
            continue;
        }
        fates[event->storage].parameter = event->parameter;
        if (parameters->len < (guint)event->parameter)
            g_array_set_size(parameters, (guint)event->parameter);
        g_array_index(parameters, ZpModelScriptParameter, event->parameter - 1) =
            (ZpModelScriptParameter){event->part, event->form.of[ZP_TERM_ONE] / script->scale};
    }
    return fates;
}

/* FALSE: no event of the model's script. */
static gboolean
translate(const ZpScript *script, const ZpScriptEvent *event, const Fate *fate,
          ZpModelScriptEvent *own)
{
    static const ZpModelPass passes[] = {
        [ZP_TRACE_FORWARD] = ZP_MODEL_FORWARD,
        [ZP_TRACE_RECOMPUTE] = ZP_MODEL_RECOMPUTE,
        [ZP_TRACE_BACKWARD] = ZP_MODEL_BACKWARD,
    };
    ZpModelStorageKind kind = ZP_MODEL_STORAGE;
    if (event->class == ZP_TRACE_PARAMETER_COPY && fate->in_forward)
        kind = ZP_MODEL_CACHED_COPY;
    else if (event->class == ZP_TRACE_PARAMETER_GRAD)
        kind = fate->parameter ? ZP_MODEL_GRADIENT : ZP_MODEL_GRADIENT_TEMPORARY;
    *own = (ZpModelScriptEvent){
        .storage = event->storage,
        .parameter = fate->parameter ? fate->parameter - 1 : ZP_MODEL_SCRIPT_NONE,
        .part = event->part,
        .pass = (guint8)passes[event->pass],
        .kind = (guint8)kind,
        .frees = event->dies,
        .bytes = zp_form_bytes(&event->form, script->scale),
    };
    return event->parameter == 0 && !(event->dies && kind == ZP_MODEL_CACHED_COPY);
}

ZpModelScript *
zp_script_for_model(const ZpScript *script)
{
    Ends ends = find_ends(script);
    const ZpScriptEvent *input = event_at(script, ends.input);
    const ZpScriptEvent *gradient = event_at(script, ends.output_gradient);
    ZpModelScript *result = zp_model_script_new();
    result->n_parts = script->n_parts;
    result->n_storages = script->n_storages;
    result->input = input->storage;
    result->output = event_at(script, ends.output)->storage;
    result->output_gradient = gradient->storage;
    result->input_gradient = ends.input_gradient;
    result->input_bytes = zp_form_bytes(&input->form, script->scale);
    result->output_gradient_bytes = zp_form_bytes(&gradient->form, script->scale);
    g_autofree Fate *fates = find_fates(script, result->parameters);
    for (guint i = 0; i < script->events->len; i++) {
        const ZpScriptEvent *event = event_at(script, i);
        ZpModelScriptEvent own;
        if (i != ends.input && i != ends.output && i != ends.output_gradient &&
            translate(script, event, &fates[event->storage], &own))
            g_array_append_val(result->events, own);
    }
    return result;
}

void
zp_activation_script_free(ZpActivationScript *script)
{
    if (!script)
        return;
    g_array_unref(script->events);
    g_free(script);
}

void
zp_activation_loss_events(const ZpActivationLoss *loss, gboolean one_sequence, GArray *events)
{
    ZpScriptSource source = {.kind = ZP_SCRIPT_LOSS, .loss = *loss};
    source.loss.without_norm = TRUE;
    ZpScript script = zp_script_new(&source, one_sequence);
    for (guint i = 0; i < script.events->len; i++) {
        const ZpScriptEvent *event = event_at(&script, i);
        if (!zp_script_is_activation(event))
            continue;
        ZpModelEvent own = {event->storage, event->pass == ZP_TRACE_BACKWARD, event->dies,
                            event->behind, zp_form_bytes(&event->form, script.scale)};
        g_array_append_val(events, own);
    }
    zp_script_clear(&script);
}

/* Place in time of a pass of a part. */
static int
place(const ZpActivationScript *script, ZpActivationPass pass, int part)
{
    return (int)pass * script->n_parts +
           (pass == ZP_ACTIVATION_BACKWARD ? script->n_parts - 1 - part : part);
}

guint
zp_activation_script_end(const ZpActivationScript *script, ZpActivationPass pass, int part)
{
    int own = place(script, pass, part);
    for (guint i = script->events->len; i > 0; i--) {
        const ZpActivationEvent *event = &g_array_index(script->events, ZpActivationEvent, i - 1);
        if (place(script, event->pass, event->part) <= own)
            return i;
    }
    return 0;
}
