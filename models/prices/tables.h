/* Measured collectives (models/catalog/collectives.csv, embedded): time by message size. */
#pragma once

#include "models/job/job.h"
#include "models/words/vocabulary.h"

typedef struct {
    gint64 bytes; /* message, nccl-tests convention */
    double seconds;
} ZpCostPoint;

typedef struct {
    const char *gpu;     /* "A100-SXM": the family, without the memory size */
    const char *network; /* "EFAv2 32x100Gb" */
    const char *source;
    const char *rule; /* "measured, SOURCE": what a price from this table says of itself */
    gint32 nodes, gpus_per_node;
    ZpKind kind;
    GArray *points; /* ZpCostPoint, by bytes */
} ZpCostTable;

/* All built-in tables: GArray of ZpCostTable. */
const GArray *zp_cost_tables_all(void);

/* Tables of one platform: the GPU by its name without memory size and case ("A100-SXM-80" finds
 * "A100-SXM"), and for several nodes those whose network contains `network` ("EFAv2"); NULL or "":
 * one node only. */
ZpCostTables *zp_cost_tables_new(const char *gpu, const char *network);
void zp_cost_tables_free(ZpCostTables *tables);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpCostTables, zp_cost_tables_free)
guint zp_cost_tables_count(const ZpCostTables *tables);

/* The table for a group of contiguous ranks that fills its nodes, or lies in one; NULL if none. */
const ZpCostTable *zp_cost_tables_find(const ZpCostTables *tables, ZpKind kind, gint32 nodes,
                                       gint32 gpus_per_node);

/* Seconds by log-log interpolation.  Beyond the largest message the last bandwidth holds, below the
 * smallest its time. */
double zp_cost_table_seconds(const ZpCostTable *table, gint64 bytes);
