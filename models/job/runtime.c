#include "models/job/runtime.h"

G_DEFINE_QUARK(zp - runtime - error - quark, zp_runtime_error)
