/* From the words of a case to the description of a block or a loss. */
#pragma once

#include "check_activations/cases.h"

typedef struct {
    const char *family, *regime, *policy;
    GHashTable *options; /* strings; booleans are "true" and "false" */
    GHashTable *sizes;   /* of gint64 pointers: b s h nq nkv d f V E k */
} CaseWords;

gboolean activation_case_describe(const CaseWords *words, ActivationCase *item, GError **error);
