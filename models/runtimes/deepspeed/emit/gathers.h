/* Stage 3's gathered parameters on the tape: the memory, collectives and waits behind the
 * coordinator's events.
 *
 * One parameter: one buffer of its padded size, which the parameter then is a view of.  Several:
 * a flat buffer at the launch; at the wait one exact-size copy for each, the flat living until the
 * handle's last reference goes.  stage3_use_all_reduce_for_fetch_params: the parameters stay views
 * of the flat, which lives until the last of them is released.  Quantised weights (qwZ): int8 and
 * scales travel, a full fp16 flat is made at the wait.
 *
 * Source: DeepSpeed 0.19, runtime/zero/partition_parameters.py (_all_gather_sequential,
 * _all_gather_coalesced, AllGatherCoalescedHandle.wait, CUDAQuantizer). */
#pragma once

#include "models/runtimes/deepspeed/emit/context.h"
#include "models/runtimes/deepspeed/modules/partition.h"

typedef struct {
    gint32 flat;     /* buffer, or ZP_TAPE_NONE */
    gint32 payload;  /* qwZ: int8 flat; hierarchical MiCS: clone of the first gather */
    gint32 scales;   /* qwZ */
    gint32 done;     /* event: the collective ended */
    gint32 users;    /* parameters that are views of the flat */
    gint64 elements; /* padded */
} ZpDsFlat;

typedef struct {
    ZpDs *ds;
    const ZpDsTree *tree;
    gint32 *buffers;   /* by ds_id: what holds the gathered parameter */
    gint32 *flat_of;   /* by ds_id: gather whose flat it is a view of, or -1 */
    gint32 *secondary; /* by ds_id: hpZ partition */
    gint32 *saved;     /* by ds_id: released storage that autograd still holds */
    gboolean saves;    /* what is released now is kept so */
    GHashTable *flats; /* gather number -> ZpDsFlat */
    GQueue fetched;    /* events of waits the host has not synchronised: bounds its run-ahead */
    gboolean fast;     /* leaf modules do not record such events */
} ZpDsGathers;

void zp_ds_gathers_init(ZpDsGathers *gathers, ZpDs *ds, const ZpDsTree *tree);
void zp_ds_gathers_clear(ZpDsGathers *gathers);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpDsGathers, zp_ds_gathers_clear)
/* Writes what the event means; hooks and runs are none of its business. */
void zp_ds_gathers_handle(ZpDsGathers *gathers, const ZpDsEvent *event);
/* Parts of it: a gather begins, the host waits for it, a parameter becomes persistent. */
void zp_ds_gathers_launch(ZpDsGathers *gathers, const ZpDsEvent *event);
void zp_ds_gathers_wait(ZpDsGathers *gathers, const ZpDsEvent *event);
void zp_ds_gathers_persist(ZpDsGathers *gathers, const ZpDsEvent *event);
