/* The classes of a model's modules, by which settings files name them. */
#pragma once

#include "models/job/model.h"

/* The class that wrapping policies name; "" for hand-spelt models. */
const char *zp_classes_block(const ZpModel *model);
/* All classes, NULL-terminated; the caller frees the array alone.  NULL where the model has none.
 */
const char **zp_classes_all(const ZpModel *model);
