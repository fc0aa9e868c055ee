#include "models/runtimes/deepspeed/stages/program.h"

void
zp_ds_program_tag(ZpDsProgram *self, ZpPhase phase, gint32 module)
{
    gint16 micro =
        phase == ZP_PHASE_FORWARD || phase == ZP_PHASE_BACKWARD || phase == ZP_PHASE_REDUCE
            ? (gint16)MIN(self->micro, G_MAXINT16)
            : ZP_TAPE_NONE;
    zp_tape_tag(self->ds.tape, (guint8)phase, micro,
                module == ZP_MODEL_NONE ? ZP_TAPE_NONE : self->unit_of[module]);
}

GArray *
zp_ds_program_group(const ZpDsProgram *self, gint32 group)
{
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(gint32));
    for (gint32 id = 0; id < (gint32)self->tree->parameters->len; id++)
        if (self->group_of[id] == group && zp_ds_tree_parameter(self->tree, id)->trainable)
            g_array_append_val(ids, id);
    return ids;
}

void
zp_ds_program_broadcast_model(ZpDsProgram *self)
{
    for (gint32 id = 0; id < (gint32)self->tree->parameters->len; id++) {
        ZpDsCollective broadcast = {ZP_KIND_BROADCAST,    zp_ds_program_elements(self, id),
                                    self->ds.model,       ZP_DS_GROUP_WORLD,
                                    ZP_DS_STREAM_COMPUTE, 0};
        zp_ds_collective(&self->ds, &broadcast);
    }
}

void
zp_ds_program_make_moments(ZpDsProgram *self, gint64 elements, gboolean on_host)
{
    gint64 bytes = zp_ds_bytes(self->ds.moments, elements);
    const ZpClass classes[] = {ZP_CLASS_MOMENTUM, ZP_CLASS_VARIANCE};
    const gboolean kept[] = {self->ds.job->optimizer->momentum, self->ds.job->optimizer->variance};
    for (gsize i = 0; i < G_N_ELEMENTS(classes); i++) {
        if (!kept[i])
            continue;
        if (on_host)
            zp_ds_make_host(&self->ds, classes[i], ZP_ROLE_OPTIMIZER_STATE, bytes, FALSE);
        else
            zp_ds_make(&self->ds, ZP_DS_STREAM_COMPUTE, classes[i], ZP_ROLE_OPTIMIZER_STATE, bytes);
    }
}

void
zp_ds_program_optimize(ZpDsProgram *self, gint64 elements, gint64 largest)
{
    ZpDs *ds = &self->ds;
    gint64 bytes = zp_ds_bytes(ds->moments, largest);
    gint32 root = ZP_TAPE_NONE, quotient = ZP_TAPE_NONE;
    if (ds->settings->adam == ZP_DS_TORCH_ADAM) {
        root =
            zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_OPTIMIZER_TEMPORARY, ZP_ROLE_NONE, bytes);
        quotient =
            zp_ds_make(ds, ZP_DS_STREAM_COMPUTE, ZP_CLASS_OPTIMIZER_TEMPORARY, ZP_ROLE_NONE, bytes);
        zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &root);
    }
    zp_ds_kernel(ds, ZP_DS_STREAM_COMPUTE, ZP_KIND_OPTIMIZER, 0.0,
                 (double)elements * ds->job->optimizer->traffic_bits / 8.0);
    zp_ds_drop(ds, ZP_DS_STREAM_COMPUTE, &quotient);
}
