/* Why a description gives no model. */
#pragma once

#include <glib.h>

typedef enum {
    ZP_ARCHITECTURE_ERROR_MISSING,
    ZP_ARCHITECTURE_ERROR_RANGE,
    ZP_ARCHITECTURE_ERROR_UNSUPPORTED,
} ZpArchitectureError;
#define ZP_ARCHITECTURE_ERROR (zp_architecture_error_quark())
GQuark zp_architecture_error_quark(void);
