#include "deepspeed_models.h"

#include <string.h>

/* Children in execution order by class; classes not listed call theirs as registered. */
static const struct {
    const char *class_name;
    const char *calls[4];
} orders[] = {
    {"Layer", {"ln1", "attn", "ln2", "mlp"}},
    {"SwiGLU", {"gate", "act", "up", "down"}},
};

typedef struct {
    ZpDsTree *tree;
    JsonArray *modules;
    JsonArray *parameters;
} Builder;

static const char *
module_name(const Builder *builder, guint index)
{
    return json_array_get_string_element(json_array_get_array_element(builder->modules, index), 0);
}

static const char *
class_name(const Builder *builder, guint index)
{
    return json_array_get_string_element(json_array_get_array_element(builder->modules, index), 1);
}

static char *
full_name(const char *module, const char *parameter)
{
    return strcmp(module, "root") == 0 ? g_strdup(parameter)
                                       : g_strconcat(module, ".", parameter, NULL);
}

static JsonArray *
find_parameter(const Builder *builder, const char *name)
{
    for (guint i = 0; i < json_array_get_length(builder->parameters); i++) {
        JsonArray *p = json_array_get_array_element(builder->parameters, i);
        if (strcmp(json_array_get_string_element(p, 0), name) == 0)
            return p;
    }
    return NULL;
}

/* The parent of "a.b.c" is "a.b"; of "a", the root. */
static gint32
find_parent(const Builder *builder, const char *name)
{
    const char *dot = strrchr(name, '.');
    if (dot == NULL)
        return 0;
    g_autofree char *parent = g_strndup(name, (gsize)(dot - name));
    return zp_ds_tree_find_module(builder->tree, parent);
}

static void
add_parameters(Builder *builder, gint32 module, JsonArray *own)
{
    for (guint i = 0; i < json_array_get_length(own); i++) {
        g_autofree char *name = full_name(zp_ds_tree_module(builder->tree, module)->name,
                                          json_array_get_string_element(own, i));
        JsonArray *p = find_parameter(builder, name);
        /* named_parameters() lists a tied head under the embedding's name. */
        if (p == NULL)
            p = json_array_get_array_element(builder->parameters, 0);
        zp_ds_tree_add_parameter(
            builder->tree, module, g_intern_string(json_array_get_string_element(p, 0)),
            json_array_get_int_element(p, 1), json_array_get_boolean_element(p, 2));
    }
}

static void
call(Builder *builder, GArray *calls, const char *module, const char *child)
{
    g_autofree char *name = full_name(module, child);
    gint32 index = zp_ds_tree_find_module(builder->tree, name);
    g_array_append_val(calls, index);
}

/* MoeNet interleaves its two lists: ln.0, moe.0, ln.1, moe.1 ... */
static void
call_interleaved(Builder *builder, GArray *calls)
{
    call(builder, calls, "root", "emb");
    for (int i = 0;; i++) {
        g_autofree char *ln = g_strdup_printf("ln.%d", i);
        g_autofree char *moe = g_strdup_printf("moe.%d", i);
        if (zp_ds_tree_find_module(builder->tree, ln) == ZP_MODEL_NONE)
            break;
        call(builder, calls, "root", ln);
        call(builder, calls, "root", moe);
    }
    call(builder, calls, "root", "head");
}

/* Gpt with "twice" runs its first block again after the others. */
static void
call_twice(Builder *builder, GArray *calls)
{
    static const char *const names[] = {"wte", "wpe", "drop", "h", "h.0", "ln_f", "head"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        call(builder, calls, "root", names[i]);
}

static void
set_calls(Builder *builder, JsonObject *model)
{
    for (guint m = 0; m < json_array_get_length(builder->modules); m++) {
        g_autoptr(GArray) calls = g_array_new(FALSE, FALSE, sizeof(gint32));
        const char *class = class_name(builder, m);
        for (gsize o = 0; o < G_N_ELEMENTS(orders); o++)
            if (strcmp(class, orders[o].class_name) == 0)
                for (int i = 0; i < 4; i++)
                    call(builder, calls, module_name(builder, m), orders[o].calls[i]);
        if (strcmp(class, "MoeNet") == 0)
            call_interleaved(builder, calls);
        if (strcmp(class, "Gpt") == 0 && ds_flag(model, "twice"))
            call_twice(builder, calls);
        if (calls->len > 0)
            zp_ds_tree_set_calls(builder->tree, (gint32)m, &g_array_index(calls, gint32, 0),
                                 (gint32)calls->len);
    }
}

static void
set_groups(const ZpDsTree *tree, JsonArray *lists, gint32 *groups)
{
    for (guint g = 0; g < json_array_get_length(lists); g++) {
        JsonArray *list = json_array_get_array_element(lists, g);
        for (guint i = 0; i < json_array_get_length(list); i++)
            for (gint32 id = 0; id < (gint32)tree->parameters->len; id++)
                if (strcmp(zp_ds_tree_parameter(tree, id)->name,
                           json_array_get_string_element(list, i)) == 0)
                    groups[id] = (gint32)g;
    }
}

ZpDsTree *
ds_build_run_tree(JsonObject *root, gint32 *groups)
{
    Builder builder = {zp_ds_tree_new(), ds_array(root, "modules"), ds_array(root, "parameters")};
    JsonObject *model = ds_object(root, "model");
    JsonArray *leaves = ds_array(root, "leaf_classes");
    for (guint m = 0; m < json_array_get_length(builder.modules); m++) {
        const char *name = module_name(&builder, m);
        const char *class = class_name(&builder, m);
        gint32 index = zp_ds_tree_add_module(builder.tree, g_intern_string(name),
                                             m == 0 ? ZP_MODEL_NONE : find_parent(&builder, name));
        ZpDsModule *module = zp_ds_tree_module(builder.tree, index);
        module->container = strcmp(class, "ModuleList") == 0;
        module->linear = strcmp(class, "Linear") == 0;
        module->checkpointed =
            ds_flag(model, "ac") && (strcmp(class, "Layer") == 0 || strcmp(class, "Blk") == 0);
        /* Fed with data that needs no gradient: tokens, or the first layer of an MLP. */
        module->no_post_backward =
            m == 0 || strcmp(class, "Embedding") == 0 || strcmp(class, "Core") == 0 ||
            (strcmp(class_name(&builder, 0), "MLP") == 0 && strcmp(name, "l.0") == 0);
        add_parameters(
            &builder, index,
            json_array_get_array_element(json_array_get_array_element(builder.modules, m), 2));
    }
    set_calls(&builder, model);
    zp_ds_tree_finish(builder.tree);
    for (guint m = 0; leaves != NULL && m < json_array_get_length(builder.modules); m++)
        for (guint i = 0; i < json_array_get_length(leaves); i++)
            if (strcmp(json_array_get_string_element(leaves, i), class_name(&builder, m)) == 0)
                zp_ds_tree_set_leaf(builder.tree, (gint32)m);
    set_groups(builder.tree, ds_array(root, "optimizer_groups"), groups);
    return builder.tree;
}
