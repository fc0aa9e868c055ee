/* Integer expressions over named dimensions: what the family tables are written in.
 *
 *   q+2*kv      heads*d      !gated      moe&first<=i      (i+1)%step==0      h/heads
 *
 * Operators by rising precedence: |  &  == < <= > >=  + -  * / %  ! ; all on int64, truth is 1 or
 * 0.  A name never set is 0.  Overflow and division by zero make the result invalid, never wrap. */
#pragma once

#include <glib.h>

/* Names with values.  A name's index never changes. */
typedef struct {
    GHashTable *index; /* name -> index + 1 */
    GPtrArray *names;  /* char * */
    GArray *values;    /* gint64 */
    GByteArray *state; /* nothing known, value given, or known to be null */
} ZpSymbols;

ZpSymbols *zp_symbols_new(void);
void zp_symbols_free(ZpSymbols *symbols);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpSymbols, zp_symbols_free)

/* The index of a name, made (unset, 0) when new. */
gint32 zp_symbols_index(ZpSymbols *symbols, const char *name);
void zp_symbols_set(ZpSymbols *symbols, const char *name, gint64 value);
gint64 zp_symbols_get(const ZpSymbols *symbols, const char *name);
/* Notes that the value was given as null: unset, but not absent. */
void zp_symbols_set_null(ZpSymbols *symbols, const char *name);
gboolean zp_symbols_is_absent(const ZpSymbols *symbols, const char *name);
gboolean zp_symbols_is_set(const ZpSymbols *symbols, const char *name);

typedef struct {
    guint32 first, length; /* a span of the program's code */
} ZpExpression;

/* Compiled expressions share one code array. */
typedef struct {
    ZpSymbols *symbols; /* borrowed */
    GArray *code;
} ZpExpressions;

ZpExpressions *zp_expressions_new(ZpSymbols *symbols);
void zp_expressions_free(ZpExpressions *expressions);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpExpressions, zp_expressions_free)

/* Compiles the longest expression at `text`; `end` is where it stops.  FALSE on a syntax error. */
gboolean zp_expressions_compile(ZpExpressions *expressions, const char *text, const char **end,
                                ZpExpression *expression) G_GNUC_WARN_UNUSED_RESULT;
/* FALSE on overflow or division by zero; `value` is then 0. */
gboolean zp_expressions_eval(const ZpExpressions *expressions, ZpExpression expression,
                             gint64 *value);
