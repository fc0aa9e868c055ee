/* One row of a table of runs: its columns as text, numbers and words. */
#pragma once

#include "models/job/job.h"
#include "models/machine/hardware.h"
#include "models/published/csv.h"

typedef struct {
    const ZpValidateCsv *csv;
    guint record;
} ZpValidateRecord;

/* "" where the table has no such column. */
const char *zp_validate_record_text(const ZpValidateRecord *record, const char *column);
/* A positive whole number; `missing` where there is none. */
gint64 zp_validate_record_integer(const ZpValidateRecord *record, const char *column,
                                  gint64 missing);
/* Does the column contain `part` (given in small letters)? */
gboolean zp_validate_record_has(const ZpValidateRecord *record, const char *column,
                                const char *part);
/* The number behind `part` (in small letters, at the start of a word): 8 of "tp8", 4 of "sharded in
 * 4"; `missing` where there is none. */
gint64 zp_validate_record_behind(const ZpValidateRecord *record, const char *column,
                                 const char *part, gint64 missing);

/* Micro-batch, sequence and vocabulary; notes speak where the columns are silent (validate.h).  0:
 * not stated. */
gint64 zp_validate_record_micro_batch(const ZpValidateRecord *record);
gint64 zp_validate_record_sequence(const ZpValidateRecord *record);
gint64 zp_validate_record_vocabulary(const ZpValidateRecord *record);

/* The stage of ZeRO that the strategy means, wherever in it the word stands; 0 where it names cuts
 * alone.  Under FSDP 2 is SHARD_GRAD_OP.  Fails on a word that is not understood. */
gboolean zp_validate_record_stage(const ZpValidateRecord *record, int *stage, GError **error);

/* The catalogue's board that the words of the column "gpu" mean, and in `variant` that board with
 * the memory and the limit of power that they say.  NULL with a reason where a word is not
 * understood. */
const ZpGpu *zp_validate_record_gpu(const ZpValidateRecord *record, const ZpHardware *hardware,
                                    ZpGpu *variant, GError **error);

/* Cuts of the model, as the strategy names them: "zero1 + tp8 pp4 dp2", "fsdp32 x tp8".  Fails on
 * those that are not modelled. */
gboolean zp_validate_record_parallel(const ZpValidateRecord *record, ZpParallel *parallel,
                                     GError **error);
/* Ranks of a shard group among `ranks` data parallel ranks, `node` of them on a node: all, those of
 * a node, or a number that the strategy states. */
gint64 zp_validate_record_shard_group(const ZpValidateRecord *record, gint64 ranks, gint64 node);

/* A cumulative ladder of settings keeps what an earlier step of it added: does this row or one
 * before it in its ladder note `part`? */
gboolean zp_validate_record_is_after(const ZpValidateRecord *record, const char *part);
/* Is attention written out? */
gboolean zp_validate_record_is_eager(const ZpValidateRecord *record);
