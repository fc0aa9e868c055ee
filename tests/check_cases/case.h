/* A public case as a file: a scenario whose "#!" lines say what was observed and what must hold.
 *
 *   #! case C16 Stage 3 peaks above stage 2
 *   #! source deepspeedai/DeepSpeed#3734
 *   #! observed what the source reports
 *   #! assumed what the source does not say and the scenario had to choose
 *   #! check A REL B [within TOLERANCE]      must hold
 *   #! differs A REL B [within TOLERANCE]    must not hold: a case that is answered otherwise ...
 *   #! because the reason                    ... for this reason (right behind it)
 *   #!   an indented line continues the one before
 *
 * Expressions: expression.h. */
#pragma once

#include <glib.h>

typedef struct {
    char *statement;  /* "peak(zero.stage=3) > peak(zero.stage=2)" */
    char *because;    /* NULL unless it differs */
    gboolean differs; /* a "differs" line */
    int line;
} CaseCheck;

typedef struct {
    char *path;
    char *id, *title;
    char *source, *observed, *assumed; /* assumed: NULL if nothing was */
    GPtrArray *checks;                 /* CaseCheck */
} Case;

/* Errors name file and line. */
Case *case_load(const char *path, GError **error);
void case_free(Case *c);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Case, case_free)

#define CASE_ERROR (case_error_quark())
GQuark case_error_quark(void);
