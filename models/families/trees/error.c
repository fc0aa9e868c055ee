#include "models/families/trees/error.h"

G_DEFINE_QUARK(zp - architecture - error - quark, zp_architecture_error)
