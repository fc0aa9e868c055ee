/* One recorded run being replayed: shared by the files that replay and compare. */
#pragma once

#include "deepspeed_case.h"
#include "models/runtimes/deepspeed/stages/program.h"

typedef struct {
    gint32 position; /* instructions of the tape before it */
    gint64 data;     /* change of the elements of param.data over all parameters */
    gint64 resident; /* ... of those that are available */
} DsMark;

/* One parameter becomes whole (sign 1) or is released. */
typedef struct {
    gint32 position, id, sign;
} DsChange;

/* Stage-3 events of one compilation, cut into steps by STEP. */
typedef struct {
    const ZpDsTree *tree;
    const ZpTape *tape;
    gboolean all_reduce;
    GPtrArray *log;
    GArray *step_begin; /* gint32: first line of each step */
    GArray *marks;      /* DsMark */
    GArray *changes;    /* DsChange */
    GString *persisted;
    gboolean stepped;    /* the next root forward begins a step */
    gboolean fast;       /* leaf modules leave a one-element tensor in what they release */
    gint32 module;       /* of the last hook, or ZP_MODEL_NONE outside of hooks */
    GArray *placeholder; /* guint8 by ds_id: param.data is such a tensor */
} DsTap;

typedef struct {
    DsCheck *check;
    JsonObject *root, *expected;
    ZpDeepspeed settings;
    ZpJob job;
    ZpOptimizer optimizer;
    gint32 groups[4096];
    ZpTape *tape;
    ZpDs formats;
    DsTap tap;
    ZpDsTree *tree; /* the compiler takes one; this is its twin */
    gint64 steps;
} DsRun;

/* Listens to the compiler: DsTap is the data. */
void ds_tap_event(const ZpDsEvent *event, gpointer tap);
/* Writes what the last event left open. */
void ds_tap_finish(DsTap *tap);
/* Sums of the marks up to a place of the tape. */
DsMark ds_tap_gathered(const DsTap *tap, gint32 position);

/* Is the parameter whole at that place of the tape? */
gboolean ds_tap_is_gathered(const DsTap *tap, gint32 id, gint32 position);

void ds_compare_layout(DsRun *run);
void ds_compare_averaged(DsRun *run, const char *where, gboolean boundary, JsonObject *expected);
void ds_compare_flats(DsRun *run, const char *where, JsonObject *expected);
void ds_compare_steadiness(DsRun *run);
void ds_compare_events(DsRun *run);
void ds_compare_collectives(DsRun *run);
void ds_compare_backward_state(DsRun *run);
void ds_compare_snapshots(DsRun *run, JsonArray *snapshots);
