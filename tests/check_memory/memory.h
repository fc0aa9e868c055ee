/* Published memory figures: what check_memory prints and demands of models/published/memory.h. */
#pragma once

#include "models/published/memory.h"

void memory_print(const GArray *results);
/* The statements that the table supports, PASS or not; TRUE when all that are claimed pass. */
gboolean memory_check_claims(const GArray *results);
