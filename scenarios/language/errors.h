/* What can be wrong with a text that stands for a quantity, a key or the value of a key. */
#pragma once

#include <glib.h>

typedef enum {
    ZP_QUANTITY_ERROR_SYNTAX, /* not a number, not a word of the list */
    ZP_QUANTITY_ERROR_UNIT,   /* missing, unknown or ambiguous */
    ZP_QUANTITY_ERROR_WHOLE,  /* a fraction where only whole numbers exist */
    ZP_QUANTITY_ERROR_RANGE,  /* too large to hold, too many digits */
} ZpQuantityError;
#define ZP_QUANTITY_ERROR (zp_quantity_error_quark())
GQuark zp_quantity_error_quark(void);

typedef enum {
    ZP_SCHEMA_ERROR_UNKNOWN,   /* no such key */
    ZP_SCHEMA_ERROR_AMBIGUOUS, /* several sections have it */
    ZP_SCHEMA_ERROR_RANGE,
    ZP_SCHEMA_ERROR_CHOICE, /* not one of the legal words */
} ZpSchemaError;
#define ZP_SCHEMA_ERROR (zp_schema_error_quark())
GQuark zp_schema_error_quark(void);
