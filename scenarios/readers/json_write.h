/* Members of an open JSON object, and its text. */
#pragma once

#include <json-glib/json-glib.h>

/* NULL becomes null. */
void zp_json_write_text(JsonBuilder *json, const char *name, const char *text);
void zp_json_write_int(JsonBuilder *json, const char *name, gint64 value);
void zp_json_write_bool(JsonBuilder *json, const char *name, gboolean value);
/* Opened; the caller ends them. */
void zp_json_write_object(JsonBuilder *json, const char *name);
void zp_json_write_array(JsonBuilder *json, const char *name);
/* Ends the outermost object and prints it, with a newline at the end. */
char *zp_json_write_finish(JsonBuilder *json);
