/* A trace of allocations: what a program of tensor operations and its backward keep alive.
 *
 * Nothing is computed: tensors are shapes, strides and a counted reference to a storage, and an
 * operation allocates its result, remembers what its backward needs and registers a node, as
 * PyTorch's eager autograd does.  What lives, and when, follows from the rules of the operators
 * (tools/autograd/derivatives.yaml, aten/src/ATen/native), of the engine
 * (torch/csrc/autograd/engine.cpp) and of the scopes of the program.
 *
 * Private to models/activation/. */
#pragma once

#include "models/words/dtype.h"

#include <glib.h>
#include <string.h>

#define ZP_TRACE_RANK 5
#define ZP_TRACE_INPUTS 4   /* of an operation */
#define ZP_TRACE_OUTPUTS 64 /* of an operation */
#define ZP_TRACE_SAVED 8    /* of a node */

/* What a storage is counted as. */
typedef enum {
    ZP_TRACE_ACTIVATION,
    ZP_TRACE_PARAMETER_COPY, /* a parameter in the dtype of the products */
    ZP_TRACE_PARAMETER_GRAD, /* its gradient, and temporaries of the same shape */
    ZP_TRACE_CONSTANT, /* parameters, tables, masks, ids: made before the block, not counted */
    ZP_TRACE_CLASSES,
} ZpTraceClass;

/* Which walk of the program an instant belongs to. */
typedef enum {
    ZP_TRACE_FORWARD,
    ZP_TRACE_RECOMPUTE, /* a checkpointed region runs again */
    ZP_TRACE_BACKWARD,
    ZP_TRACE_PASSES,
} ZpTracePass;

/* One storage comes to life or dies, or has become the gradient of a parameter. */
typedef struct {
    gint32 storage;
    gint16 part, pass; /* when it happens; part of the program, ZpTracePass */
    gint16 class;      /* ZpTraceClass, none of constants */
    gint16 parameter;  /* 1 + its number, in the order in which the program makes them; else 0 */
    gint64 bytes;      /* negative: dies; of a parameter, its elements */
} ZpTraceEvent;

typedef struct _ZpTrace ZpTrace;
typedef struct _ZpTraceNode ZpTraceNode;
typedef struct _ZpTraceFrame ZpTraceFrame;

typedef struct {
    int references;
    ZpTraceClass class;
    gint64 bytes;
    ZpTrace *trace;
    gint32 number; /* in the record of events */
} ZpTraceStorage;

typedef struct {
    int rank;
    gint64 size[ZP_TRACE_RANK];
    gint64 stride[ZP_TRACE_RANK]; /* in elements */
} ZpTraceShape;

/* A reference to a storage: every operation returns a new one, owned by the caller; NULL after an
 * early stop (zp_trace_stopped), and operations on NULL do nothing. */
typedef struct {
    int references;
    ZpTraceStorage *storage;
    ZpTraceShape shape;
    int element_bytes;
    gboolean parameter; /* made of parameters alone */
    gboolean needs_grad;
    gboolean temporary; /* dies with the operation it is given to: zp_take */
    ZpTraceNode *node;
    int output; /* which output of the node */
} ZpTensor;

typedef void (*ZpTraceBackward)(ZpTrace *trace, ZpTraceNode *node, ZpTensor **grads,
                                ZpTensor **results);

typedef struct {
    ZpTensor *tensor; /* NULL: dropped, in a checkpointed region */
    int handle;       /* number within the region, when there is one */
} ZpTraceSaved;

typedef struct {
    ZpTraceShape shape;
    int element_bytes;
    ZpTensor *gradient; /* what has come in so far while a backward runs */
} ZpTraceOutput;

struct _ZpTraceNode {
    int references;
    guint64 sequence;
    ZpTraceBackward backward;
    int inputs, outputs, saved_count;
    ZpTraceNode *next[ZP_TRACE_INPUTS]; /* NULL: needs no gradient */
    int next_output[ZP_TRACE_INPUTS];
    ZpTraceSaved saved[ZP_TRACE_SAVED];
    ZpTraceFrame *frame; /* the checkpointed region that the saved tensors belong to */
    gboolean parameter;  /* only parameters lie behind it */
    int part;            /* of the program, that the operator is in */
    /* Shapes and element sizes of inputs; what else the rule needs. */
    ZpTraceShape input_shape[ZP_TRACE_INPUTS];
    int input_bytes[ZP_TRACE_INPUTS];
    ZpTraceOutput first, *others; /* see zp_node_output(): most nodes have one */
    gint64 number[4];
    gpointer extra; /* owner of the node's rule; freed with g_free */
    /* State of a backward. */
    int waiting;
};

static inline ZpTraceOutput *
zp_node_output(ZpTraceNode *node, int index)
{
    return index == 0 ? &node->first : &node->others[index - 1];
}

struct _ZpTrace {
    gint64 live[ZP_TRACE_CLASSES];
    gint64 peak;                      /* of activations */
    gint64 peak_all;                  /* of activations, copies and gradients of parameters */
    gint64 workspace, workspace_peak; /* of kernels that allocate inside; live included */
    const char *peak_at;              /* the operator that reached it */
    const char *operator_name;
    guint64 sequence;
    gboolean no_grad;
    gboolean in_backward;
    gboolean stopped;         /* a recomputation has all it needs */
    GArray *parameter_shapes; /* NULL: see ZpActivationBlock.gradients_by_shape */
    gint64 gradient_elements; /* size of the parameter a gradient is made for; 0: none */
    ZpTraceFrame *frame;      /* the checkpointed region being run */
    gboolean recomputing;
    gboolean unread;      /* no backward reads what is made: policies need not keep it */
    GPtrArray *copies;    /* of parameters, that autocast keeps while it is on */
    GPtrArray *gradients; /* of leaves, kept until the trace ends */
    /* What runs: a part of the program; backward, that of the node that runs or ran last. */
    int part;
    ZpTracePass pass;
    gint32 storages; /* numbered so far */
    int parameters;  /* leaves made so far by this run of the program */
    int weights;     /* and parameters, frozen ones too */
    GArray *events;  /* ZpTraceEvent, borrowed; NULL: none are recorded */
};

/* --- storages and tensors (graph.c), shapes (shape.c) --- */
ZpTensor *zp_tensor_new(ZpTrace *trace, ZpTraceClass class, const ZpTraceShape *shape,
                        int element_bytes);
ZpTensor *zp_tensor_ref(ZpTensor *tensor);
void zp_tensor_unref(ZpTensor *tensor);
/* Same storage, another shape, no history. */
ZpTensor *zp_tensor_alias(ZpTensor *tensor, const ZpTraceShape *shape);
/* What an operator that has nothing to do returns: the same value, history included. */
ZpTensor *zp_tensor_again(ZpTensor *tensor);
/* Marks a tensor as an argument made in place: it dies when the operation it is given to returns.
 */
ZpTensor *zp_take(ZpTensor *tensor);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpTensor, zp_tensor_unref)

ZpTraceShape zp_shape(int rank, const gint64 *sizes); /* contiguous */
gint64 zp_shape_elements(const ZpTraceShape *shape);
gboolean zp_shape_equal(const ZpTraceShape *a, const ZpTraceShape *b); /* of sizes */
gboolean zp_shape_contiguous(const ZpTraceShape *shape);
/* Shape of an elementwise result: broadcast sizes, strides in the order TensorIterator keeps. */
ZpTraceShape zp_shape_elementwise(ZpTensor *const *tensors, int count);
/* The same elements seen with other sizes, when no copy is needed (ATen's computeStride). */
gboolean zp_shape_view(const ZpTraceShape *from, int rank, const gint64 *sizes, ZpTraceShape *view);

/* --- the trace, its nodes and backward (graph.c, trace.c, backward.c) --- */
void zp_trace_init(ZpTrace *trace);
void zp_trace_clear(ZpTrace *trace); /* drops the gradients of leaves */
void zp_trace_reset_peak(ZpTrace *trace);
void zp_trace_grow(ZpTrace *trace, ZpTraceClass class, gint64 bytes); /* negative: frees */
/* A storage's bytes; recorded, but for constants. */
void zp_trace_count(ZpTrace *trace, const ZpTraceStorage *storage, gboolean dies);
/* A leaf that collects a gradient. */
void zp_trace_make_leaf(ZpTensor *tensor, gboolean parameter);
/* Takes the references to the root's node and to the gradient. */
void zp_trace_backward(ZpTrace *trace, ZpTraceNode *root, int output, ZpTensor *grad);
ZpTraceNode *zp_node_ref(ZpTraceNode *node);
void zp_node_unref(ZpTraceNode *node);
void zp_node_release_saved(ZpTraceNode *node);

/* --- building an operation --- */
typedef struct {
    ZpTrace *trace;
    ZpTraceNode *node; /* NULL: no gradient is asked for */
    int count;
    ZpTensor *input[ZP_TRACE_INPUTS];
    gboolean parameter; /* all inputs are made of parameters */
} ZpOperation;

/* FALSE: the program has been stopped, or an input is missing; return zp_operation_skip(). */
gboolean zp_operation_begin(ZpOperation *operation, ZpTrace *trace, const char *name,
                            ZpTraceBackward backward, int count, ZpTensor *const *inputs);
gboolean zp_operation_needs(const ZpOperation *operation, int input);
void zp_operation_save(ZpOperation *operation, ZpTensor *tensor); /* may stop the program */
ZpTensor *zp_operation_allocate(ZpOperation *operation, const ZpTraceShape *shape,
                                int element_bytes);
/* Makes `result` the next output of the node. */
ZpTensor *zp_operation_output(ZpOperation *operation, ZpTensor *result);
ZpTensor *zp_operation_end(ZpOperation *operation, ZpTensor *result); /* drops temporaries */
/* In a backward rule: what follows is the gradient of this input. */
void zp_trace_gradient_of(ZpTrace *trace, const ZpTraceNode *node, int input);

/* --- checkpointed regions (checkpoint.c, recompute.c) --- */
typedef ZpTensor *(*ZpTraceProgram)(ZpTrace *trace, ZpTensor *input, gconstpointer data);
typedef enum {
    ZP_RECOMPUTE_NONE,
    ZP_RECOMPUTE_REENTRANT,
    ZP_RECOMPUTE_NON_REENTRANT,
    ZP_RECOMPUTE_SAVE_ATTENTION, /* of the fused kernels */
    ZP_RECOMPUTE_SAVE_PRODUCTS,  /* mm and addmm */
    ZP_RECOMPUTE_SAVE_BOTH,
    ZP_RECOMPUTE_SAVE_EVERY_SECOND, /* product, and attention */
} ZpTraceRecompute;
ZpTensor *zp_trace_checkpoint(ZpTrace *trace, ZpTraceRecompute policy, ZpTraceProgram program,
                              ZpTensor *input, gconstpointer data);
ZpTraceFrame *zp_frame_ref(ZpTraceFrame *frame);
void zp_frame_unref(ZpTraceFrame *frame);
/* Notes one saved tensor of the running region; returns its number. */
int zp_frame_pack(ZpTrace *trace, ZpTensor *tensor);
/* The recomputed value: the first call runs the region again. */
ZpTensor *zp_frame_unpack(ZpTrace *trace, ZpTraceFrame *frame, int handle);
typedef enum { ZP_CACHED_PRODUCT, ZP_CACHED_ATTENTION, ZP_CACHED_KINDS } ZpTraceCached;
/* In a recomputation: the outputs kept by the forward, if the policy keeps this call (TRUE). */
gboolean zp_frame_cached(ZpTrace *trace, ZpTraceCached kind, ZpTensor **outputs, int count);
/* In a forward: keeps the outputs if the policy says so. */
void zp_frame_cache(ZpTrace *trace, ZpTraceCached kind, ZpTensor *const *outputs, int count);
