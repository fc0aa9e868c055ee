/* What a block allocates and frees, in order, as forms in micro-batch and sequence: activations,
 * copies of parameters that autocast caches, gradients of parameters and what is made on the way to
 * them.  Made by models/activation/activation.h, played by runtimes.
 *
 * Blocks hand on what lies between them: `input` lives when forward begins and is the output of the
 * block before, `output` when it ends; `output_gradient` lives when backward begins and is the
 * input gradient of the block after.  So the four are in the script from both sides: neither the
 * allocation of `input` and `output_gradient` nor the end of `output` and `input_gradient` are
 * events.  Gradients of parameters come to life and stay; all else comes to life once and dies
 * once. */
#pragma once

#include <glib.h>

/* Bytes that a micro-batch of b sequences of s tokens takes, as a sum of these times 1, b s, b s^2,
 * s, s^2 and b (labels and logits that are shifted by a token). */
typedef struct {
    gint64 constant_bytes;
    gint64 bytes_per_token, bytes_per_pair, bytes_per_position, bytes_per_position_pair;
    gint64 bytes_per_sequence;
} ZpModelBytes;

#define ZP_MODEL_SCRIPT_NONE (-1)

typedef enum {
    ZP_MODEL_FORWARD,
    ZP_MODEL_RECOMPUTE,
    ZP_MODEL_BACKWARD,
    ZP_MODEL_PASSES,
} ZpModelPass;

typedef enum {
    ZP_MODEL_STORAGE,
    ZP_MODEL_CACHED_COPY, /* dies when the forward of all blocks has ended */
    ZP_MODEL_GRADIENT_TEMPORARY,
    ZP_MODEL_GRADIENT, /* of a parameter; its bytes are the runtime's */
} ZpModelStorageKind;

typedef struct {
    gint32 storage;   /* below n_storages */
    gint32 parameter; /* ZP_MODEL_GRADIENT: number in `parameters`; else ZP_MODEL_SCRIPT_NONE */
    gint16 part;
    guint8 pass, kind;  /* ZpModelPass, ZpModelStorageKind */
    gboolean frees;     /* else it is allocated */
    ZpModelBytes bytes; /* of the storage, either way; shares of tokens are rounded up */
} ZpModelScriptEvent;

typedef struct {
    gint16 part;
    gint64 elements;
} ZpModelScriptParameter;

typedef struct {
    int n_parts; /* layers of the block */
    gint32 n_storages;
    gint32 input, output, output_gradient;
    gint32 input_gradient; /* ZP_MODEL_SCRIPT_NONE: the input wants none */
    ZpModelBytes input_bytes, output_gradient_bytes;
    GArray *events;     /* ZpModelScriptEvent */
    GArray *parameters; /* ZpModelScriptParameter, in the order in which the block uses them; 0
                         * elements: gets no gradient */
} ZpModelScript;

/* Counted references, safe from several threads. */
ZpModelScript *zp_model_script_new(void);
ZpModelScript *zp_model_script_ref(ZpModelScript *script);
ZpModelScript *zp_model_script_copy(const ZpModelScript *script);
void zp_model_script_unref(ZpModelScript *script);

static inline const ZpModelScriptEvent *
zp_model_script_event(const ZpModelScript *script, guint index)
{
    return &g_array_index(script->events, ZpModelScriptEvent, index);
}

/* How many events have happened when a part of a pass is through.  Forward and recomputation run
 * parts in rising order, backward in falling order; the last part's backward may allocate before
 * the recomputation that it asks for, and those events count to the recomputation's first part. */
guint zp_model_script_end(const ZpModelScript *script, ZpModelPass pass, int part);
