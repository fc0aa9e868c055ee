/* A block's or a loss's record of storages (activation_trace.h, ZpTraceEvent) with bytes as forms
 * in batch and tokens: the program does the same at all sizes, so a few runs tell each storage's
 * form.  Private to models/activation*.c. */
#pragma once

#include "models/activation/activation.h"
#include "models/activation/operators/trace.h"

/* Bytes times ZpScript.scale, in units of these. */
typedef enum {
    ZP_TERM_ONE,
    ZP_TERM_SEQUENCE, /* b */
    ZP_TERM_POSITION, /* s */
    ZP_TERM_TOKEN,    /* b s */
    ZP_TERM_PAIR,     /* b s^2 */
    ZP_TERM_POSITION_PAIR,
    ZP_TERMS,
} ZpTerm;

typedef struct {
    gint64 of[ZP_TERMS];
} ZpForm;

typedef struct {
    gint32 storage;
    gint16 part, pass;       /* ZpTracePass */
    gint16 class, parameter; /* as ZpTraceEvent */
    gboolean dies;           /* else it comes to life */
    gboolean behind;         /* of a loss: behind the head's product */
    ZpForm form;             /* bytes of the storage; of a parameter its elements */
} ZpScriptEvent;

static inline gboolean
zp_script_is_activation(const ZpScriptEvent *event)
{
    return event->class == ZP_TRACE_ACTIVATION && event->parameter == 0;
}

typedef enum { ZP_SCRIPT_BLOCK, ZP_SCRIPT_LAST_NORM, ZP_SCRIPT_LOSS } ZpScriptKind;

/* What a script is of: a block under its own policy, the norm after such blocks, or a loss. */
typedef struct {
    ZpScriptKind kind;
    ZpActivationBlock block;
    ZpActivationLoss loss;
} ZpScriptSource;

typedef struct {
    ZpScriptSource source;
    GArray *events;    /* ZpScriptEvent */
    int n_parts;       /* a loss is one, and what its chunks recompute is backward */
    gint32 n_storages; /* numbers are below */
    /* What divides the tokens: ranks, experts or chunks.  Forms are scaled by it, so that shares
     * that are no whole bytes a token add up to whole ones. */
    gint64 scale;
    gboolean alone; /* holds for one sequence, else for more */
} ZpScript;

ZpScript zp_script_new(const ZpScriptSource *source, gboolean alone);
/* Whether a script of more sequences holds for one as well. */
gboolean zp_script_holds_alone(const ZpScript *script);
void zp_script_clear(ZpScript *script);

ZpForm zp_form_add(const ZpForm *a, const ZpForm *b, gint64 times); /* a + times b */
/* Scaled bytes at these sizes. */
gint64 zp_form_at(const ZpForm *form, gint64 batch, gint64 tokens);
gint64 zp_round_up(gint64 value, gint64 scale); /* quotient */
/* Whole bytes, each term rounded up. */
ZpModelBytes zp_form_bytes(const ZpForm *form, gint64 scale);

/* --- activation_replay.c --- */
ZpModelScript *zp_script_for_model(const ZpScript *script); /* of a block */

/* --- activation_parts.c --- */
/* One for every part; returns how often two forms of a peak had to be joined, because there are
 * more than ZP_MODEL_PEAK_FORMS of which none is below another: the peak is too large then. */
int zp_script_policy_bytes(const ZpScript *script, ZpModelPolicyBytes **parts);
