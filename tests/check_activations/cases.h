/* Measured cases of activation memory: a JSON list as published by the measuring program
 * (objects with variant, family, dtype, policy, options, dims, measured) or its compact CSV. */
#pragma once

#include "models/activation/activation.h"

enum {
    CASE_KEPT,
    CASE_INPUT_KEPT,
    CASE_FORWARD_PEAK,
    CASE_BACKWARD_ENTRY,
    CASE_BACKWARD_PEAK,
    CASE_INPUT,
    CASE_OUTPUT,
    CASE_KEPT_COPIES,
    CASE_FORWARD_WITH_COPIES,
    CASE_PARAMETER_GRADIENTS,
    CASE_BACKWARD_WITH_GRADIENTS,
    CASE_FLASH_WORKSPACE,
    CASE_BACKWARD_WITH_WORKSPACE,
    CASE_COLUMNS,
};
extern const char *const case_columns[CASE_COLUMNS];

typedef struct {
    char *variant, *regime, *policy, *shape, *forward_at, *backward_at;
    gboolean is_loss;
    ZpActivationBlock block;
    ZpActivationLoss loss;
    gint64 measured[CASE_COLUMNS];
} ActivationCase;

void activation_case_free(ActivationCase *item);
/* Cases of every .json and .csv file of a folder, by name; NULL and `error` otherwise. */
GPtrArray *activation_cases_load(const char *folder, GError **error);
void activation_case_compute(const ActivationCase *item, gint64 *computed,
                             ZpActivationBytes *bytes);
