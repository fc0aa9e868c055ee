/* What happens to memory and on the wire in one step, as both sides tell it: consecutive changes of
 * one buffer kind and unit merged, collectives in their places. */
#pragma once

#include <json-glib/json-glib.h>

#include "sim/tape/tape.h"

typedef struct {
    gboolean collective;
    const char *phase, *unit; /* interned; unit "" where it says nothing */
    gint32 micro_batch;
    const char *kind; /* buffer, or kind of collective */
    const char *from; /* buffer whose storage it takes over, or "" */
    const char *group;
    gint64 bytes; /* change, message or moved bytes */
    gint64 after_bytes;
    int sign;
    gint32 group_size;
    gint32 tensors; /* gradients in a bucket; 0 where it says nothing */
} FsdpEvent;

/* One phase of one micro-batch. */
typedef struct {
    const char *phase;
    gint32 micro_batch;
    gint64 entry_bytes;
    gint64 after_bytes;    /* most after any change of it; -1: nothing changed */
    gboolean begins_apart; /* recorded: its first event is one that model bytes leave out */
} FsdpPeak;

typedef struct {
    GArray *events;    /* FsdpEvent */
    GHashTable *start; /* buffer name -> GINT64 in g_new0(gint64): bytes at the start */
    gint64 start_bytes, end_bytes;
    GArray *peaks; /* FsdpPeak */
    gint64 peak_bytes;
    GHashTable
        *worst; /* of a tape: phase or "all" -> FsdpComposition at its first largest instant */
} FsdpHistory;

typedef struct {
    gint64 bytes;
    GHashTable *by_buffer; /* buffer name -> GINT64, as FsdpHistory.start */
} FsdpComposition;

/* Step `step` of a tape. */
FsdpHistory *fsdp_history_of_tape(const ZpTape *tape, gint32 step);
/* Recorded events ("allocated") and collectives. */
FsdpHistory *fsdp_history_of_case(JsonArray *allocated, JsonArray *collectives, gint64 start_bytes);
void fsdp_history_free(FsdpHistory *history);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FsdpHistory, fsdp_history_free)

/* One phase of one micro-batch, or NULL. */
FsdpPeak *fsdp_history_find_peak(const FsdpHistory *history, const char *phase, gint32 micro_batch);

gboolean fsdp_event_equal(const FsdpEvent *a, const FsdpEvent *b);
char *fsdp_event_text(const FsdpEvent *event);
/* "backward", "all" (the value on entry counts) or "backward[mb1]" (only values after an event
 * count, where `recorded` tells whether one that is left out stands for the entry).  -1: no such
 * phase. */
gint64 fsdp_history_peak(const FsdpHistory *history, const FsdpHistory *recorded, const char *key);
