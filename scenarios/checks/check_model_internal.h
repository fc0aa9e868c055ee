/* A model as `zeropeak check` shows it: its units with their parameters. */
#pragma once

#include <json-glib/json-glib.h>

#include "models/job/model.h"

/* One line a unit; equal neighbours are counted. */
char *zp_check_model_text(const ZpModel *model);
/* The members "model" and "units" of an open JSON object. */
void zp_check_model_members(const ZpModel *model, JsonBuilder *builder);
