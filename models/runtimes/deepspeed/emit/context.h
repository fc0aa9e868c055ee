/* Shared by the files of the DeepSpeed runtime: what a compilation knows, and the few ways to
 * write to its tape. */
#pragma once

#include "models/job/deepspeed.h"
#include "models/job/runtime.h"
#include "models/prices/cost.h"
#include "models/runtimes/deepspeed/coordinator/coordinator.h"
#include "models/words/vocabulary.h"

/* Streams of a rank.  NCCL runs the collectives of one communicator in host order on a stream of
 * its own; the streams that launch them wait for it.  Process groups beside the data-parallel one
 * (hpZ, qgZ, MiCS) have communicators of their own: their streams, where they are used, follow the
 * ones below. */
enum {
    ZP_DS_STREAM_COMPUTE,
    ZP_DS_STREAM_GATHER,
    ZP_DS_STREAM_REDUCE,
    ZP_DS_STREAM_NCCL,
    ZP_DS_STREAM_TO_HOST,
    ZP_DS_STREAM_TO_DEVICE,
    ZP_DS_STREAM_HOST,
    ZP_DS_STREAM_NVME,
    ZP_DS_N_STREAMS,
};

enum {
    ZP_DS_GROUP_WORLD,
    ZP_DS_GROUP_SHARD,        /* ranks that share one copy of the parameters (MiCS) */
    ZP_DS_GROUP_REPLICA,      /* ranks with the same shard (MiCS) */
    ZP_DS_GROUP_SECONDARY,    /* hpZ */
    ZP_DS_GROUP_NODE,         /* qgZ */
    ZP_DS_GROUP_ACROSS,       /* qgZ: the same place in each node */
    ZP_DS_GROUP_SHARD_NODE,   /* hierarchical MiCS: ranks of a shard group in one node */
    ZP_DS_GROUP_SHARD_ACROSS, /* ... and the same place in its nodes */
};

typedef struct {
    const ZpJob *job;
    const ZpDeepspeed *settings;
    ZpTape *tape;
    /* Sees each stage-3 event after it was written to the tape; NULL: nobody. */
    ZpDsListener tap;
    gpointer tap_data;
    /* Effective formats: ZpDtype, as int beside ZP_DS_UINT8 and ZP_DS_INT64. */
    int model, accumulate, communicate, master, moments;
    ZpDsAdam adam;
    gint32 ranks;       /* world */
    gint32 shard_ranks; /* that partition one copy */
    gboolean overlap;
    guint8 communicators[ZP_TAPE_MAX_GROUPS]; /* by group: the stream of its collectives */
    gint32 labels[ZP_N_DTYPES + 2];           /* of the tape, by dtype; then uint8 and int64 */
    gboolean silent;                          /* memory only: works are not written (prologue) */
} ZpDs;

enum { ZP_DS_UINT8 = ZP_N_DTYPES, ZP_DS_INT64 };

/* Fills formats and declares streams, links and groups on an empty tape. */
gboolean zp_ds_init(ZpDs *ds, const ZpJob *job, const ZpDeepspeed *settings, ZpTape *tape,
                    GError **error);
int zp_ds_dtype_bits(int dtype); /* also ZP_DS_UINT8, ZP_DS_INT64 */

/* Works.  A collective runs on the NCCL stream after what `stream` holds so far. */
typedef struct {
    ZpKind kind;
    gint64 elements;
    int dtype; /* ZpDtype, ZP_DS_UINT8 or ZP_DS_INT64 */
    int group;
    guint8 stream;
    gint32 destination; /* rank; ZP_KIND_REDUCE only: its label says "bf16 to 3" */
} ZpDsCollective;
/* Returns the event of its end, for zp_ds_join(). */
gint32 zp_ds_launch(ZpDs *ds, const ZpDsCollective *collective);
void zp_ds_join(ZpDs *ds, guint8 stream, gint32 event); /* stream waits; NONE: nothing */
/* launch + join: a collective that is not async. */
void zp_ds_collective(ZpDs *ds, const ZpDsCollective *collective);
/* All-reduces one number of `dtype` over the world; the host reads the result. */
void zp_ds_reduce_scalar(ZpDs *ds, int dtype);
/* A kernel limited by memory: `bytes` read and written. */
void zp_ds_memory_kernel(ZpDs *ds, guint8 stream, gint64 bytes);
/* Of a layer, as zp_cost_layer() prices it. */
void zp_ds_timed_kernel(ZpDs *ds, guint8 stream, ZpKind kind, ZpTime duration_ps, double flops);
void zp_ds_kernel(ZpDs *ds, guint8 stream, ZpKind kind, double flops, double bytes);
/* A copy over the host link. */
void zp_ds_transfer(ZpDs *ds, guint8 stream, ZpKind kind, gint64 bytes);
/* A read or write of NVMe; blocking: the host waits for it. */
void zp_ds_nvme(ZpDs *ds, ZpKind kind, gint64 bytes, gboolean blocking);
/* The CPU's Adam over `elements`: the device is idle, the host waits for it. */
void zp_ds_host_adam(ZpDs *ds, gint64 elements);
/* later items of `stream` wait for what `other` holds now. */
void zp_ds_wait_stream(ZpDs *ds, guint8 stream, guint8 other);
/* The host blocks until `stream` is empty. */
void zp_ds_sync_stream(ZpDs *ds, guint8 stream);

/* Buffers on the host clock. */
gint32 zp_ds_make(ZpDs *ds, guint8 stream, ZpClass class_id, ZpRole role, gint64 bytes);
/* Pinned by torch: rounded up to a power of two where the settings say so. */
gint32 zp_ds_make_host(ZpDs *ds, ZpClass class_id, ZpRole role, gint64 bytes, gboolean pinned);
/* Page-locked by DeepSpeed's own I/O library, as asked. */
gint32 zp_ds_make_locked(ZpDs *ds, ZpClass class_id, ZpRole role, gint64 bytes);
void zp_ds_drop(ZpDs *ds, guint8 stream, gint32 *buffer); /* sets it to ZP_TAPE_NONE */

static inline gint64
zp_ds_bytes(int dtype, gint64 elements)
{
    return zp_dtype_bytes(zp_ds_dtype_bits(dtype), elements);
}
