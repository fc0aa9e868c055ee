/* Module trees as data (models/catalog/trees.txt): parsed here, expanded by families_tree.
 *
 * A tree is a section `tree NAME`, one module a line, children indented by two spaces:
 *
 *   NAME CLASS ITEM...          NAME `.` is the root, `#` the index inside a repeated list
 *   + OTHER                     splices the tree OTHER here
 *
 * {KEY} in CLASS or OTHER is what the family's `use KEY` says.  Items (expressions have no spaces):
 *   L(out,in,b)      linear: weight[out,in], bias[out] where b is true
 *   X(in,out,b)      the same, stored transposed (GPT-2's Conv1D)
 *   T(rows,columns)  a looked-up table: weight[rows,columns], no arithmetic
 *   N(n)             a norm over the block's width: weight where nw, bias where nb
 *   Q(a) Q(a,b)      another norm (query, key, latent): weight where qnw, bias where qnb
 *   A(heads,kv_heads,qk,v)      attention core: widths of a head of queries and keys, of values
 *   F(dense)  F(dense,experts)  inner width of an MLP that one token uses: the dense part, and
 *                               its chosen experts together
 *   R(n)             width of the stream it reads and writes, where that is not h
 *   name[a,b]  name[a,b]?c      a parameter, where c is true
 *   name{a,b}  name{a,b}?c      the same, used as a matrix (counts FLOPs)
 *   name<a,b>  name<a,b>?c      the same, a table
 *   ~name...         stored but never trained
 *   @KIND  @KIND.NAME           the execution layer it belongs to (inherited by children)
 *   >n               place among its siblings in call order; siblings without one are not called
 *   ?c               the module exists where c is true
 *   *n               its children are repeated n times
 *   tie:PATH?c       its first parameter shares PATH's storage where c (default: tied) is true
 *   !block !expert   what it is */
#pragma once

#include "models/families/trees/expression.h"
#include "models/job/model.h"

#define ZP_TEMPLATE_MAX_DIMS 4

typedef enum { ZP_TEMPLATE_PLAIN, ZP_TEMPLATE_MATRIX, ZP_TEMPLATE_TABLE } ZpTemplateUse;

typedef struct {
    const char *name; /* interned */
    ZpTemplateUse use;
    gboolean untrained;
    gint32 n_dims;
    ZpExpression dims[ZP_TEMPLATE_MAX_DIMS];
    ZpExpression condition; /* length 0: always */
} ZpTemplateParameter;

typedef struct {
    const char *name, *class_name; /* interned */
    gint32 end;                    /* index after the last descendant */
    gint32 first_parameter, n_parameters;
    ZpExpression condition, repeat; /* length 0: always, once */
    ZpExpression norm, latent;      /* width of a block norm or another; length 0: not one */
    ZpExpression stream;            /* R */
    ZpExpression core[4], inner[2]; /* A and F; length 0: not one */
    const char *tie;                /* interned path or NULL */
    ZpExpression tie_condition;
    const char *layer_name; /* interned; NULL: inherited */
    ZpLayerKind layer_kind;
    gint32 call_order; /* 0: not given */
    gboolean block, expert;
} ZpTemplateNode;

typedef struct {
    GArray *nodes;      /* ZpTemplateNode, pre-order, [0] is the root */
    GArray *parameters; /* ZpTemplateParameter */
} ZpTemplate;

/* Parses the tree `name` of `text`.  The text is the library's own: a mistake in it aborts with
 * the line.  `uses`: the family's KEY -> text. */
ZpTemplate *zp_template_parse(const char *text, const char *name, GHashTable *uses,
                              ZpExpressions *expressions);
void zp_template_free(ZpTemplate *template);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpTemplate, zp_template_free)
