/* Reading JSON members with fallbacks. */
#pragma once

#include <json-glib/json-glib.h>

/* A name owned by the library for ever: plans borrow their names. */
static inline const char *
fsdp_json_interned(JsonObject *object, const char *key)
{
    return g_intern_string(json_object_get_string_member_with_default(object, key, ""));
}

static inline gint64
fsdp_json_number(JsonObject *object, const char *key, gint64 fallback)
{
    if (!json_object_has_member(object, key) || json_object_get_null_member(object, key))
        return fallback;
    return json_object_get_int_member(object, key);
}

static inline gboolean
fsdp_json_flag(JsonObject *object, const char *key, gboolean fallback)
{
    return json_object_get_boolean_member_with_default(object, key, fallback);
}

static inline JsonArray *
fsdp_json_list(JsonObject *object, const char *key)
{
    return json_object_has_member(object, key) ? json_object_get_array_member(object, key) : NULL;
}

static inline guint
fsdp_json_length(JsonArray *array)
{
    return array ? json_array_get_length(array) : 0;
}
