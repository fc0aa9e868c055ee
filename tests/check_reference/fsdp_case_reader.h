/* A case while it is read. */
#pragma once

#include "fsdp_case.h"
#include "fsdp_json.h"

/* One computation in forward order: which parameters it uses and where it is in the module tree. */
typedef struct {
    const char *module;
    JsonArray *params;
} FsdpCaseOperation;

typedef struct {
    FsdpCase *fsdp_case;
    ZpFsdpPlan *plan;
    JsonArray *units, *order;
    GHashTable *parameters; /* name -> index + 1 */
    GArray *operations;     /* FsdpCaseOperation: one forward */
    GArray *first, *last;   /* gint32 by unit: operations, or -1 */
    GArray *rank_in_unit;   /* gint32 by parameter: place in the unit's grad_order */
} FsdpCaseReader;

/* fsdp_case_order.c: the optimizer's order of parameters, and lists of units to prefetch. */
void fsdp_case_order_parameters(FsdpCaseReader *reader);
void fsdp_case_read_prefetch(FsdpCaseReader *reader, JsonObject *policy, const char *key,
                             gboolean forward);
