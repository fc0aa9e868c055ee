/* The forms of a case's bytes (models/activation/script_internal.h) against its measured figures.
 */
#pragma once

#include "check_activations/cases.h"

typedef struct {
    guint exact, rounded; /* rounded: above by less than a byte a token, where chunks or experts
                           * share the tokens */
    guint by_shape; /* exact but for a tensor that has a parameter's shape at this size alone, and
                     * that the measuring program took for a gradient */
    guint wrong, joined;
} FormsTally;

/* FALSE: wrong. */
gboolean activation_case_check_forms(const ActivationCase *item, FormsTally *tally);
