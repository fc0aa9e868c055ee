/* Stage-3 events of a run, as the recordings logged them. */
#include <string.h>

#include "deepspeed_run.h"

void
ds_tap_finish(DsTap *tap)
{
    if (tap->persisted->len == 0)
        return;
    g_ptr_array_add(tap->log, g_strdup_printf("P(%s)", tap->persisted->str));
    g_string_truncate(tap->persisted, 0);
}

static gint32
place_of(const DsTap *tap, const ZpDsEvent *event)
{
    gint32 position = tap->tape->n_instrs;
    /* param.data becomes a view of an all-reduced buffer before its collective is launched. */
    if (event->kind == ZP_DS_GATHER && event->n_ids > 1)
        while (position > 0 && tap->tape->instrs[position].op != ZP_TAPE_LAUNCH)
            position--;
    return position;
}

/* param.data now has the whole parameter, or (sign -1) what is left after its release. */
static void
mark(DsTap *tap, const ZpDsEvent *event, int sign)
{
    DsMark entry = {place_of(tap, event), sign * event->elements, sign * event->elements};
    gboolean leaves = sign < 0 && tap->fast && tap->module != ZP_MODEL_NONE &&
                      zp_ds_tree_module(tap->tree, tap->module)->leaf;
    g_array_set_size(tap->placeholder, tap->tree->parameters->len);
    for (gint32 i = 0; i < event->n_ids; i++) {
        guint8 *placeholder = &g_array_index(tap->placeholder, guint8, event->ids[i]);
        entry.data += leaves - *placeholder;
        *placeholder = (guint8)leaves;
        DsChange change = {entry.position, event->ids[i], sign};
        g_array_append_val(tap->changes, change);
    }
    g_array_append_val(tap->marks, entry);
}

static void
follow_hook(DsTap *tap, const ZpDsEvent *event)
{
    if (event->kind == ZP_DS_FORWARD_PRE || event->kind == ZP_DS_FORWARD_POST ||
        event->kind == ZP_DS_BACKWARD_PRE || event->kind == ZP_DS_BACKWARD_POST)
        tap->module = event->module;
    if (event->kind == ZP_DS_LEFTOVERS || event->kind == ZP_DS_STEP)
        tap->module = ZP_MODEL_NONE;
}

static gint32
released_id(const DsTap *tap, const char *line)
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
sort_releases(const DsTap *tap)
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

void
ds_tap_event(const ZpDsEvent *event, gpointer data)
{
    DsTap *tap = data;
    gboolean alias = event->n_ids == 1 || tap->all_reduce;
    follow_hook(tap, event);
    if (event->kind == (alias ? ZP_DS_GATHER : ZP_DS_WAIT) || event->kind == ZP_DS_PERSIST)
        mark(tap, event, 1);
    else if (event->kind == ZP_DS_RELEASE)
        mark(tap, event, -1);
    if (event->kind == ZP_DS_PERSIST) {
        g_string_append_printf(tap->persisted, "%s%s", tap->persisted->len > 0 ? "+" : "",
                               zp_ds_tree_parameter(tap->tree, event->ids[0])->name);
        return;
    }
    ds_tap_finish(tap);
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

DsMark
ds_tap_gathered(const DsTap *tap, gint32 position)
{
    DsMark sum = {position, 0, 0};
    for (guint i = 0; i < tap->marks->len; i++) {
        const DsMark *entry = &g_array_index(tap->marks, DsMark, i);
        if (entry->position > position)
            continue;
        sum.data += entry->data;
        sum.resident += entry->resident;
    }
    return sum;
}

gboolean
ds_tap_is_gathered(const DsTap *tap, gint32 id, gint32 position)
{
    int sum = 0;
    for (guint i = 0; i < tap->changes->len; i++) {
        const DsChange *change = &g_array_index(tap->changes, DsChange, i);
        if (change->id == id && change->position <= position)
            sum += change->sign;
    }
    return sum > 0;
}
