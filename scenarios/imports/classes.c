#include "scenarios/imports/classes.h"

const char *
zp_classes_block(const ZpModel *model)
{
    for (gint32 m = 0; m < (gint32)model->modules->len; m++) {
        if (zp_model_module(model, m)->is_block)
            return zp_model_module(model, m)->class_name;
    }
    return "";
}

const char **
zp_classes_all(const ZpModel *model)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint m = 0; m < model->modules->len; m++) {
        const char *name = zp_model_module(model, (gint32)m)->class_name;
        if (name != NULL && *name != '\0')
            g_hash_table_add(seen, (gpointer)name);
    }
    return g_hash_table_size(seen) > 0 ? (const char **)g_hash_table_get_keys_as_array(seen, NULL)
                                       : NULL;
}
