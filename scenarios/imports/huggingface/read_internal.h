/* Reads the keys a family asks for out of a parsed configuration. */
#pragma once

#include "models/families/trees/families.h"

#include <json-glib/json-glib.h>

typedef struct {
    const char *text; /* the JSON text, for line numbers */
    JsonObject *root;
    const ZpFamily *family;
    ZpSymbols *symbols; /* filled */
    GHashTable *lists;  /* filled: symbol -> GArray of gint64, owned */
} ZpHfReading;

/* FALSE with ZP_HF_ERROR_MISSING or _RANGE; the message has no file name. */
gboolean zp_hf_read(ZpHfReading *reading, GError **error);
