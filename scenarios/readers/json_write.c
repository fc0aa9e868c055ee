#include "scenarios/readers/json_write.h"

void
zp_json_write_text(JsonBuilder *json, const char *name, const char *text)
{
    json_builder_set_member_name(json, name);
    json_builder_add_string_value(json, text);
}

void
zp_json_write_int(JsonBuilder *json, const char *name, gint64 value)
{
    json_builder_set_member_name(json, name);
    json_builder_add_int_value(json, value);
}

void
zp_json_write_bool(JsonBuilder *json, const char *name, gboolean value)
{
    json_builder_set_member_name(json, name);
    json_builder_add_boolean_value(json, value);
}

void
zp_json_write_object(JsonBuilder *json, const char *name)
{
    json_builder_set_member_name(json, name);
    json_builder_begin_object(json);
}

void
zp_json_write_array(JsonBuilder *json, const char *name)
{
    json_builder_set_member_name(json, name);
    json_builder_begin_array(json);
}

char *
zp_json_write_finish(JsonBuilder *json)
{
    json_builder_end_object(json);
    g_autoptr(JsonNode) root = json_builder_get_root(json);
    g_autofree char *text = json_to_string(root, TRUE);
    return g_strconcat(text, "\n", NULL);
}
