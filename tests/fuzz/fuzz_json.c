/* Any bytes through the JSON reader, forgiving and strict. */
#include "scenarios/readers/readers.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int mode = ZP_JSON_FORGIVING; mode <= ZP_JSON_STRICT; mode++) {
        g_autoptr(ZpImportMessages) messages = zp_import_message_list_new("fuzz");
        g_autoptr(ZpTree) tree =
            zp_json_text_parse((const char *)data, size, (ZpJsonMode)mode, messages);
        g_autofree char *error = zp_import_message_first_error(messages);
        if (!tree)
            g_assert(error); /* nothing read, and nobody says why */
        else {
            g_autofree char *shown = zp_tree_show(tree);
            g_assert(g_utf8_validate(shown, -1, NULL));
        }
    }
    return 0;
}
