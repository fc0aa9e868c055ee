#include "scenarios/language/errors.h"

G_DEFINE_QUARK(zp_quantity_error_quark, zp_quantity_error)
G_DEFINE_QUARK(zp_schema_error_quark, zp_schema_error)
