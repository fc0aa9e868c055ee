/* The coordinator's state, shared by its files. */
#pragma once

#include "models/runtimes/deepspeed/coordinator/coordinator.h"

typedef enum { ZP_DS_TRACE_INVALID, ZP_DS_TRACE_RECORD, ZP_DS_TRACE_COMPLETE } ZpDsTraceMode;
typedef enum { ZP_DS_NOT_AVAILABLE, ZP_DS_IN_FLIGHT, ZP_DS_AVAILABLE } ZpDsStatus;

typedef struct {
    guint8 status;
    gboolean secondary; /* has an hpZ secondary partition */
    gint32 gather;      /* index into gathers while the registry holds its handle, else -1 */
    gint32 fetched_for; /* last step of the trace it was fetched for; ZP_DS_NEVER */
    guint64 active;     /* set of modules that use it now: bit = position in its list of users */
    gboolean swapped;   /* its partition is in a host buffer (NVMe) */
    gint32 attributed;  /* other modules in backward that a recomputation fetched it for */
} ZpDsParameterState;

#define ZP_DS_NEVER G_MININT32

/* A handle in flight or waited for; alive while the registry refers to it. */
typedef struct {
    gint32 number;
    gint32 references;
    gboolean waited;
    gint32 first, n; /* range of gathered */
    gint64 elements, flat_elements;
} ZpDsGatherHandle;

typedef struct {
    gint32 parameter, step;
} ZpDsTraced;

/* A release decision: which needs of a module may go at a step of the trace. */
typedef struct {
    gint32 module, previous; /* index of the step's memo before, or -1 */
    guint offset;            /* in decisions */
} ZpDsMemo;

struct _ZpDsCoordinator {
    const ZpDsTree *tree;
    ZpDsCoordinatorConfig config;
    ZpDsListener listener;
    gpointer data;
    ZpDsParameterState *states; /* by ds_id */
    gint8
        *need_bits; /* by position in tree->needed: the module's bit in ZpDsParameterState.active */
    ZpDsTraceMode mode;
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
    gint32 buffers_used;  /* of config.nvme_buffers */
    GArray *backward;     /* gint32 modules in backward, in order of insertion */
    GArray **recompute;   /* by module: frozen ds_ids fetched for it in a recomputation, or NULL */
    GArray *memo_of_step; /* gint32: last memo of each step of the trace, or -1 */
    GArray *memos;        /* Memo */
    GByteArray *decisions;
    const char *error;
};

/* fetch.c */
void zp_ds_emit_parameter(ZpDsCoordinator *self, ZpDsEventKind kind, gint32 id);
void zp_ds_emit_plain(ZpDsCoordinator *self, ZpDsEventKind kind, gint32 module, gboolean recompute,
                      gint64 elements);
/* Takes a parameter out of the registry and waits for its handle. */
void zp_ds_pop_and_wait(ZpDsCoordinator *self, gint32 id);
/* Frees a parameter unless it is not available or somebody uses it. */
void zp_ds_release_parameter(ZpDsCoordinator *self, gint32 id);
/* Whatever is in flight is waited for and released, then the registry is emptied. */
void zp_ds_clean_registry(ZpDsCoordinator *self);
void zp_ds_fetch(ZpDsCoordinator *self, gint32 module, gboolean recompute);

/* release.c */
/* By position among the module's needs; valid until the next decision. */
const guint8 *zp_ds_decide_release(ZpDsCoordinator *self, gint32 module);
/* Sets the module inactive on what it needs and on what recomputations fetched for it, and
 * releases what may go (decision NULL: all), in ascending order. */
void zp_ds_release_needs(ZpDsCoordinator *self, gint32 module, gboolean backward,
                         const guint8 *decision);
