/* Reference cases of DeepSpeed: shared by the checker's files. */
#pragma once

#include <json-glib/json-glib.h>

#include "models/runtimes/deepspeed/emit/context.h"

/* Compares and keeps the first divergence only. */
typedef struct {
    GString *divergence; /* empty: none so far */
    gint64 n_compared;
    gboolean skipped; /* the case says itself that it is no target */
} DsCheck;

G_GNUC_PRINTF(2, 3) void ds_diverge(DsCheck *check, const char *format, ...);
gboolean ds_failed(const DsCheck *check);
void ds_expect_int(DsCheck *check, const char *what, gint64 ours, gint64 theirs);
/* Two lists of strings. */
void ds_expect_list(DsCheck *check, const char *what, GPtrArray *ours, JsonArray *theirs);

/* JSON with defaults for what a case leaves out. */
gint64 ds_int(JsonObject *object, const char *key, gint64 fallback);
gboolean ds_flag(JsonObject *object, const char *key);
const char *ds_text(JsonObject *object, const char *key, const char *fallback);
JsonObject *ds_object(JsonObject *object, const char *key); /* or NULL */
JsonArray *ds_array(JsonObject *object, const char *key);   /* or NULL */

void ds_check_coordinator(DsCheck *check, JsonObject *root);
void ds_check_arithmetic(DsCheck *check, const char *kind, JsonObject *root);
void ds_check_run(DsCheck *check, JsonObject *root);
/* A log of coordinator events in the words of the cases; names from the tree. */
void ds_log_event(GPtrArray *log, const ZpDsTree *tree, const ZpDsEvent *event);
/* A job whose numbers only have to exist. */
void ds_fill_job(ZpJob *job, gint32 ranks, int stage);
