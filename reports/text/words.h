/* Words for the engine's small enumerations, and the parts of the ledger in reading order. */
#pragma once

#include "models/ledger/ledger.h"
#include "models/step/verdict.h"
#include "sim/tape/tape.h"

extern const char *const zp_words_categories[ZP_TAPE_N_CATEGORIES];
extern const char *const zp_words_spaces[ZP_TAPE_N_SPACES];

/* "yes", "tight", "no"; "-" without a capacity. */
const char *zp_words_verdict(ZpVerdict verdict);

/* One term of the ledger's upper bound. */
typedef struct {
    const char *name; /* "persistent", "gathered", ... */
    gint64 bytes;
} ZpWordsPart;

#define ZP_WORDS_N_PARTS 9
/* Fills ZP_WORDS_N_PARTS terms; they sum to ledger->total_bytes. */
void zp_words_parts(const ZpLedger *ledger, ZpWordsPart *parts);
