/* Data files embedded in the library (models/models.gresource.xml). */
#pragma once

#include <glib.h>

/* The text of /zeropeak/models/NAME, e.g. "catalog/models.csv": NUL-terminated, valid for ever.
 * Aborts where it is missing.  Safe from any thread. */
const char *zp_resources_text(const char *name);
