/* One recorded run being replayed: shared by the files that replay and compare. */
#pragma once

#include "deepspeed_case.h"
#include "models/runtimes/deepspeed_program.h"

typedef struct {
    gint32 position; /* instructions of the tape before it */
    gint64 gathered; /* change of the elements of param.data */
} DsMark;

/* Stage-3 events of one compilation, cut into steps by STEP. */
typedef struct {
    const ZpDsTree *tree;
    const ZpTape *tape;
    gboolean all_reduce;
    GPtrArray *log;
    GArray *step_begin; /* gint32: first line of each step */
    GArray *marks;      /* DsMark */
    GString *persisted;
    gboolean stepped; /* the next root forward begins a step */
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
/* Elements of param.data at a place of the tape. */
gint64 ds_tap_gathered(const DsTap *tap, gint32 position);

void ds_compare_layout(DsRun *run);
void ds_compare_events(DsRun *run);
void ds_compare_collectives(DsRun *run);
void ds_compare_backward_state(DsRun *run);
void ds_compare_snapshots(DsRun *run, JsonArray *snapshots);
