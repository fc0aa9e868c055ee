/* What can be wrong with a config.json. */
#pragma once

#include <glib.h>

typedef enum {
    ZP_HF_ERROR_IO,
    ZP_HF_ERROR_SYNTAX,
    ZP_HF_ERROR_MISSING,
    ZP_HF_ERROR_RANGE,
    ZP_HF_ERROR_UNSUPPORTED,
} ZpHfError;
#define ZP_HF_ERROR (zp_hf_error_quark())
GQuark zp_hf_error_quark(void);
