#include "deepspeed_snapshot.h"

#include <string.h>

GArray *
ds_live_buffers(const ZpTape *tape, gint32 end)
{
    GArray *live = g_array_new(FALSE, FALSE, sizeof(DsLive));
    for (gint32 i = 0; i < end; i++) {
        const ZpTapeInstr *instr = &tape->instrs[i];
        if (instr->op == ZP_TAPE_ALLOC) {
            const ZpTapeBuffer *buffer = &tape->buffers[instr->a];
            DsLive entry = {instr->a, buffer->class_id, buffer->role};
            g_array_append_val(live, entry);
            continue;
        }
        if (instr->op != ZP_TAPE_FREE && instr->op != ZP_TAPE_RETAG)
            continue;
        for (guint k = live->len; k-- > 0;) {
            DsLive *entry = &g_array_index(live, DsLive, k);
            if (entry->buffer != instr->a)
                continue;
            if (instr->op == ZP_TAPE_FREE)
                g_array_remove_index(live, k);
            else {
                entry->class_id = (guint8)(instr->b & 0xff);
                entry->role = (guint8)(instr->b >> 8);
            }
            break;
        }
    }
    return live;
}

GArray *
ds_live_sizes(const ZpTape *tape, const GArray *live, ZpClass class_id, ZpRole role)
{
    GArray *sizes = g_array_new(FALSE, FALSE, sizeof(gint64));
    for (guint i = 0; i < live->len; i++) {
        const DsLive *entry = &g_array_index(live, DsLive, i);
        if (entry->class_id == class_id && entry->role == role)
            g_array_append_val(sizes, tape->buffers[entry->buffer].bytes);
    }
    return sizes;
}

gint64
ds_live_bytes(const ZpTape *tape, const GArray *live, ZpClass class_id, ZpRole role)
{
    g_autoptr(GArray) sizes = ds_live_sizes(tape, live, class_id, role);
    gint64 sum = 0;
    for (guint i = 0; i < sizes->len; i++)
        sum += g_array_index(sizes, gint64, i);
    return sum;
}

/* [{elements, dtype, bytes}...] against the sizes of one class and role. */
static void
compare_tensors(DsCheck *check, const char *what, const GArray *sizes, int dtype, JsonArray *theirs)
{
    ds_expect_int(check, what, sizes->len, json_array_get_length(theirs));
    for (guint i = 0; i < sizes->len && !ds_failed(check); i++) {
        JsonObject *tensor = json_array_get_object_element(theirs, i);
        gint64 bytes = g_array_index(sizes, gint64, i);
        ds_expect_int(check, what, bytes, ds_int(tensor, "bytes", -1));
        ds_expect_int(check, what, bytes * 8 / zp_ds_dtype_bits(dtype),
                      ds_int(tensor, "elements", -1));
        const char *sent = ds_text(tensor, "comm_dtype", zp_dtype_name((ZpDtype)dtype));
        if (strcmp(zp_dtype_name((ZpDtype)dtype), sent) != 0)
            ds_diverge(check, "%s: theirs sent in %s", what, sent);
        if (strcmp(zp_dtype_name((ZpDtype)dtype), ds_text(tensor, "dtype", "")) != 0)
            ds_diverge(check, "%s: ours in %s, theirs in %s", what, zp_dtype_name((ZpDtype)dtype),
                       ds_text(tensor, "dtype", ""));
    }
}

static void
compare_class(DsCheck *check, const char *where, const DsPlace *place, const GArray *live,
              ZpClass class_id, ZpRole role, int dtype, JsonObject *expected, const char *key)
{
    JsonArray *theirs = ds_array(expected, key);
    if (theirs == NULL)
        return;
    g_autofree char *what = g_strdup_printf("%s %s", where, key);
    g_autoptr(GArray) sizes = ds_live_sizes(place->tape, live, class_id, role);
    compare_tensors(check, what, sizes, dtype, theirs);
}

/* Both moments, as lists of elements. */
static void
compare_moments(DsCheck *check, const char *where, const DsPlace *place, const GArray *live,
                JsonObject *expected)
{
    static const struct {
        const char *name;
        ZpClass class_id;
    } moments[] = {{"exp_avg", ZP_CLASS_MOMENTUM}, {"exp_avg_sq", ZP_CLASS_VARIANCE}};
    JsonObject *lists = ds_object(expected, "moments_elements");
    const char *dtype = zp_dtype_name((ZpDtype)place->formats->moments);
    gint64 total = 0;
    for (gsize m = 0; m < G_N_ELEMENTS(moments); m++) {
        g_autoptr(GArray) sizes =
            ds_live_sizes(place->tape, live, moments[m].class_id, ZP_ROLE_OPTIMIZER_STATE);
        g_autofree char *key = g_strdup_printf("%s %s", moments[m].name, dtype);
        g_autofree char *what = g_strdup_printf("%s %s", where, key);
        JsonArray *theirs = ds_array(lists, key);
        ds_expect_int(check, what, sizes->len, theirs != NULL ? json_array_get_length(theirs) : 0);
        for (guint i = 0; i < sizes->len && !ds_failed(check); i++) {
            gint64 bytes = g_array_index(sizes, gint64, i);
            total += bytes;
            ds_expect_int(check, what, bytes * 8 / zp_ds_dtype_bits(place->formats->moments),
                          json_array_get_int_element(theirs, i));
        }
    }
    g_autofree char *what = g_strdup_printf("%s moments_bytes", where);
    ds_expect_int(check, what, total, ds_int(expected, "moments_bytes", -1));
}

static void
compare_bytes(DsCheck *check, const char *where, const char *key, gint64 ours, JsonObject *expected)
{
    if (!json_object_has_member(expected, key))
        return;
    g_autofree char *what = g_strdup_printf("%s %s", where, key);
    ds_expect_int(check, what, ours, ds_int(expected, key, -1));
}

static void
compare_stage3(DsCheck *check, const char *where, const DsPlace *place, const GArray *live,
               JsonObject *expected)
{
    const ZpDs *formats = place->formats;
    compare_bytes(check, where, "resident_gathered_elements", place->gathered_elements, expected);
    g_autofree char *what = g_strdup_printf("%s lp_flat", where);
    gint64 theirs = 0;
    JsonArray *flats = ds_array(expected, "lp_flat");
    for (guint i = 0; flats != NULL && i < json_array_get_length(flats); i++)
        theirs += ds_int(json_array_get_object_element(flats, i), "bytes", 0); /* sizes: layout */
    /* The flats of the sub-groups are views of one buffer. */
    if (flats != NULL)
        ds_expect_int(check, what,
                      ds_live_bytes(place->tape, live, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD) -
                          place->frozen_bytes,
                      theirs);
    /* Gradients: the flat one first when offloaded, then fp32 ones by sub-group; partly offloaded
     * the ones on the device come before it. */
    g_autoptr(GArray) gradients =
        ds_live_sizes(place->tape, live, ZP_CLASS_GRADIENT, ZP_ROLE_SHARDED_GRADIENT);
    JsonObject *flat = ds_object(expected, "grad_flat");
    gint64 flat_bytes = ds_int(flat, "bytes", -1);
    gint64 ours_flat = -1;
    for (guint i = 0; flat != NULL && i < gradients->len; i++)
        if (g_array_index(gradients, gint64, i) == flat_bytes) {
            ours_flat = flat_bytes;
            g_array_remove_index(gradients, i);
            break;
        }
    g_autofree char *grad = g_strdup_printf("%s grad_flat", where);
    if (flat != NULL) {
        ds_expect_int(check, grad, ours_flat, flat_bytes);
        ds_expect_int(check, grad, flat_bytes * 8 / zp_ds_dtype_bits(formats->accumulate),
                      ds_int(flat, "elements", -1));
        if (strcmp(ds_text(flat, "dtype", ""), zp_dtype_name((ZpDtype)formats->accumulate)) != 0)
            ds_diverge(check, "%s: theirs in %s", grad, ds_text(flat, "dtype", ""));
    }
    JsonArray *fp32 = ds_array(expected, "fp32_grads");
    g_autofree char *fp32_what = g_strdup_printf("%s fp32_grads", where);
    if (fp32 != NULL)
        compare_tensors(check, fp32_what, gradients, formats->master, fp32);
}

void
ds_compare_snapshot(DsCheck *check, const char *where, const DsPlace *place, JsonObject *expected)
{
    const ZpDs *formats = place->formats;
    g_autoptr(GArray) live = ds_live_buffers(place->tape, place->begin);
    compare_moments(check, where, place, live, expected);
    compare_class(check, where, place, live, ZP_CLASS_PARAMETER, ZP_ROLE_SHARD, formats->model,
                  expected, "bit16_flat");
    compare_class(check, where, place, live, ZP_CLASS_MASTER, ZP_ROLE_SHARD, formats->master,
                  expected, "fp32_partition");
    compare_class(check, where, place, live, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_ACCUMULATOR,
                  formats->accumulate, expected, "fp32_gradients_flat");
    compare_class(check, where, place, live, ZP_CLASS_COMMUNICATION, ZP_ROLE_BUCKET,
                  place->stage == 3 ? formats->communicate : formats->model, expected,
                  "ipg_buffers");
    gint64 kept = ds_live_bytes(place->tape, live, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT_ACCUMULATOR);
    if (place->stage != 3) {
        compare_bytes(check, where, "averaged_gradients_storage_bytes", place->boundary ? kept : 0,
                      expected);
        compare_bytes(check, where, "all_grad_tensors_storage_bytes", place->boundary ? 0 : kept,
                      expected);
    } else
        compare_bytes(check, where, "averaged_gradients_storage_bytes", place->averaged_bytes,
                      expected);
    gint64 own = ds_live_bytes(place->tape, live, ZP_CLASS_GRADIENT, ZP_ROLE_GRADIENT);
    compare_bytes(check, where, "param_grads_elements", own * 8 / zp_ds_dtype_bits(formats->model),
                  expected);
    if (place->stage == 3)
        compare_stage3(check, where, place, live, expected);
}
