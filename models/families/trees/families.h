/* Families of models: how a config.json's keys become dimensions, and which module tree they fill.
 *
 * One data table (models/catalog/families.txt).  A section `family NAME`, one statement a line:
 *   types A B            values of model_type
 *   title TEXT           for people
 *   use KEY TEXT         {KEY} in the tree; P is the prefix of class names
 *   tree T               a tree of models/catalog/trees.txt
 *   like OTHER           falls back on the statements of OTHER
 *   read S KEY|KEY...    symbol S is the number or boolean at the first KEY present and not null;
 *                        a.b is key b of object a
 *   within KEY           the keys are looked for in the object at KEY first (not dotted ones)
 *   missing S EXPR       when none of S's keys is there at all: a null is not missing
 *   match S KEY GLOB     S is 1 where the string at KEY matches, else 0; unset where KEY is absent
 *   positive S KEY|KEY...   S is 1 where the number at the first KEY present and not null is above
 *                        0, else 0; unset where there is none
 *   word S KEY|KEY GLOB=N...   S is the N of the first GLOB that matches the string at the first
 *                        KEY present; unset where none does
 *   list S KEY           S is 1 in the blocks listed in the array at KEY; has_S is 1 where there
 *                        is such an array
 *   count S KEY          S is how many entries the array or object at KEY has
 *   need S...            symbols that must be set
 *   default S EXPR       when S is unset; in order
 *   fix S EXPR           always; in order with the defaults
 *   each S EXPR          computed anew for every block, which is number `i`
 *   demand EXPR TEXT     else the dimensions are refused with TEXT; {S} in it is S's value
 *   refuse EXPR TEXT     not modelled where true
 *   note EXPR TEXT       a warning where true
 *   choose EXPR TREE     this tree in place of the family's where true
 *   drop S...            takes back the need of the family it is like
 * What `like OTHER` brings comes after the family's own statements and gives way to them: titles
 * and types are not inherited, and a read, match, need, fix or each of a symbol the family has
 * itself is left out (positive and word likewise). */
#pragma once

#include "models/families/trees/expression.h"
#include "models/job/model.h"

typedef enum {
    ZP_FAMILY_READ,
    ZP_FAMILY_MATCH,
    ZP_FAMILY_POSITIVE,
    ZP_FAMILY_WORD,
    ZP_FAMILY_LIST,
    ZP_FAMILY_COUNT,
    ZP_FAMILY_NEED,
    ZP_FAMILY_DROP,
    ZP_FAMILY_MISSING,
    ZP_FAMILY_DEFAULT,
    ZP_FAMILY_FIX,
    ZP_FAMILY_EACH,
    ZP_FAMILY_DEMAND,
    ZP_FAMILY_REFUSE,
    ZP_FAMILY_NOTE,
    ZP_FAMILY_CHOOSE,
} ZpFamilyVerb;

typedef struct {
    ZpFamilyVerb verb;
    char *symbol;   /* "" for demand, refuse and note */
    char *argument; /* keys, expression, or KEY GLOB */
    char *text;     /* message, glob or TEXT; "" where there is none */
} ZpFamilyStatement;

typedef struct {
    char *name, *title, *tree;
    char *within; /* NULL: none */
    char **types;
    GHashTable *uses;      /* KEY -> text */
    GPtrArray *statements; /* ZpFamilyStatement */
} ZpFamily;

/* NULL where no family has that name, or that model_type. */
ZpFamily *zp_family_load(const char *name);
ZpFamily *zp_family_load_type(const char *model_type);
void zp_family_free(ZpFamily *family);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpFamily, zp_family_free)

/* All families in the table's order: GPtrArray of ZpFamily. */
GPtrArray *zp_families_load_all(void);

/* Applies missing, default, fix, demand, refuse, note and choose to what was read; `tree` is the
 * one to expand; warnings go to `warnings` (char *, may
 * be NULL).  All broken demands are named in one message. */
gboolean zp_family_resolve(const ZpFamily *family, ZpSymbols *symbols, const char **tree,
                           GPtrArray *warnings, GError **error) G_GNUC_WARN_UNUSED_RESULT;

/* The text of the module trees; static. */
const char *zp_families_trees(void);
