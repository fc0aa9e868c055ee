#include "models/job/script.h"

static void
clear(gpointer data)
{
    ZpModelScript *script = data;
    g_array_unref(script->events);
    g_array_unref(script->parameters);
}

ZpModelScript *
zp_model_script_new(void)
{
    ZpModelScript *script = g_atomic_rc_box_new0(ZpModelScript);
    script->events = g_array_new(FALSE, TRUE, sizeof(ZpModelScriptEvent));
    script->parameters = g_array_new(FALSE, TRUE, sizeof(ZpModelScriptParameter));
    return script;
}

ZpModelScript *
zp_model_script_ref(ZpModelScript *script)
{
    return script ? g_atomic_rc_box_acquire(script) : NULL;
}

ZpModelScript *
zp_model_script_copy(const ZpModelScript *script)
{
    ZpModelScript *copy = zp_model_script_new();
    GArray *events = copy->events, *parameters = copy->parameters;
    *copy = *script;
    copy->events = events;
    copy->parameters = parameters;
    g_array_append_vals(events, script->events->data, script->events->len);
    g_array_append_vals(parameters, script->parameters->data, script->parameters->len);
    return copy;
}

void
zp_model_script_unref(ZpModelScript *script)
{
    if (script)
        g_atomic_rc_box_release_full(script, clear);
}

/* Place in time of a pass of a part. */
static int
place(const ZpModelScript *script, int pass, int part)
{
    return pass * script->n_parts + (pass == ZP_MODEL_BACKWARD ? script->n_parts - 1 - part : part);
}

guint
zp_model_script_end(const ZpModelScript *script, ZpModelPass pass, int part)
{
    int own = place(script, (int)pass, part);
    for (guint i = script->events->len; i > 0; i--) {
        const ZpModelScriptEvent *event = zp_model_script_event(script, i - 1);
        if (place(script, event->pass, event->part) <= own)
            return i;
    }
    return 0;
}
