/* A recorded case of a PyTorch runtime: what was run (as a plan) and what it did (as the parsed
 * file). */
#pragma once

#include <json-glib/json-glib.h>

#include "models/runtimes/fsdp/plan.h"

typedef struct {
    JsonParser *parser;
    JsonObject *root; /* of the file; owned by the parser */
    const char *id, *runtime;
    ZpFsdpPlan *plan;
} FsdpCase;

FsdpCase *fsdp_case_read(const char *path, GError **error);
FsdpCase *fsdp_case_parse(const char *text, GError **error);
void fsdp_case_free(FsdpCase *fsdp_case);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FsdpCase, fsdp_case_free)
