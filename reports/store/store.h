/* The run database: SQLite, schema in schema.sql (version ZP_STORE_SCHEMA).
 *
 * A run is written in one transaction, a sweep in one transaction per thousand points: what a
 * crash, a full disk or an error leaves is the file as it was before the transaction.  Files that
 * are not ours (no SQLite header, another application_id, a newer schema) are refused before SQLite
 * touches them and stay as they are, byte for byte.  A store belongs to one thread at a time. */
#pragma once

#include "reports/store/recorder.h"
#include "reports/text/report.h"

#define ZP_STORE_SCHEMA 3
#define ZP_STORE_APPLICATION_ID 0x5a45504b /* "ZEPK", at offset 68 of the file */

typedef enum {
    ZP_STORE_APPEND, /* opens or creates */
    ZP_STORE_READ,   /* must exist; writing is refused */
} ZpStoreMode;

typedef enum {
    ZP_STORE_ERROR_FOREIGN, /* not a database of this program */
    ZP_STORE_ERROR_VERSION, /* written by a newer schema */
    ZP_STORE_ERROR_OPEN,    /* missing, no permission, a folder */
    ZP_STORE_ERROR_WRITE,   /* full disk, I/O error, read-only */
    ZP_STORE_ERROR_BUSY,    /* another process holds it for longer than five seconds */
    ZP_STORE_ERROR_CORRUPT, /* ours, but damaged */
    ZP_STORE_ERROR_MISSING, /* no such run or sweep; the message lists what there is */
    ZP_STORE_ERROR_QUERY,   /* any other refusal of SQLite */
} ZpStoreError;
#define ZP_STORE_ERROR (zp_store_error_quark())
GQuark zp_store_error_quark(void);

typedef struct _ZpStore ZpStore;

ZpStore *zp_store_open(const char *path, ZpStoreMode mode, GError **error);
/* Would zp_store_open() append there?  For a look before long work; touches nothing. */
gboolean zp_store_check(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;
void zp_store_free(ZpStore *store); /* rolls back what is not committed */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpStore, zp_store_free)

/* Adds a run and returns its id, or -1.  Without a recorder there are no operations and no
 * timeline. */
gint64 zp_store_add_run(ZpStore *store, const ZpReportRun *run, const ZpRecorder *recorder,
                        GError **error);

/* Sweeps: begin returns an id or -1; points are numbered from 0 in the order they are added.
 * A sweep that is never ended keeps `complete` 0 and the points committed so far. */
gint64 zp_store_begin_sweep(ZpStore *store, const ZpReportSweep *sweep, GError **error);
gboolean zp_store_add_point(ZpStore *store, const ZpReportPoint *point, GError **error);
gboolean zp_store_end_sweep(ZpStore *store, GError **error);

/* What is in the file, in order of id. */
typedef struct {
    gint64 id;
    char *name;
} ZpStoreEntry;
GArray *zp_store_list_runs(ZpStore *store, GError **error);   /* of ZpStoreEntry; frees its names */
GArray *zp_store_list_sweeps(ZpStore *store, GError **error); /* likewise */

/* A run or sweep by id ("3") or name (the latest of that name); NULL: the latest.  -1 with
 * ZP_STORE_ERROR_MISSING. */
gint64 zp_store_find_run(ZpStore *store, const char *id_or_name, GError **error);
gint64 zp_store_find_sweep(ZpStore *store, const char *id_or_name, GError **error);
