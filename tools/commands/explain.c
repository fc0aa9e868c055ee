/* zeropeak explain: what a scenario key means. */
#include <stdio.h>

#include "scenarios/language/schema.h"
#include "tools/commands/commands.h"

static const ZpCommandOption explain_options[] = {{0}};

static const char *const explain_examples[] = {
    "zeropeak explain zero.prefetch",
    "zeropeak explain",
    NULL,
};

static void
list_keys(void)
{
    gsize n = 0;
    const ZpSchemaKey *keys = zp_schema_table(&n);
    for (gsize i = 0; i < n; i++) {
        g_autofree char *name = g_strdup_printf("%s.%s", keys[i].section, keys[i].key);
        printf("%-38s %s\n", name, keys[i].help);
    }
}

static int
run(const ZpCommandOptions *options, char **arguments, GError **error)
{
    (void)options;
    if (arguments[0] == NULL) {
        list_keys();
        return ZP_EXIT_OK;
    }
    for (char **name = arguments; *name != NULL; name++) {
        const ZpSchemaKey *key = zp_schema_find(*name, error);
        if (key == NULL)
            return ZP_EXIT_INPUT;
        g_autofree char *text = zp_schema_explain(key);
        printf("%s.%s\n%s", key->section, key->key, text);
        if (name[1] != NULL)
            printf("\n");
    }
    return ZP_EXIT_OK;
}

const ZpCommand zp_command_explain = {
    .name = "explain",
    .arguments = "[KEY...]",
    .summary = "Explain the keys of a scenario file",
    .description =
        "Tells type, unit, range, default and meaning of a key; without a key, lists all.",
    .options = explain_options,
    .examples = explain_examples,
    .run = run,
};
