/* Files embedded in the library (reports.gresource.xml): the schema and the plot templates. */
#pragma once

#include <gio/gio.h>

/* Text of an embedded file ("schema.sql"), NUL-terminated; owned by the library. */
const char *zp_data_text(const char *name);
