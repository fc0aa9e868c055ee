/* check_memory TABLE.csv: published memory figures against the simulator; see
 * check_memory/memory.h.  Exit code 0 when every claim passes, 1 when one fails, 2 on wrong usage.
 */
#include <stdio.h>

#include "tests/check_memory/memory.h"

int
main(int argc, char **argv)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (argc != 2) {
        fprintf(stderr, "usage: check_memory TABLE.csv\n");
        return 2;
    }
    if (!g_file_get_contents(argv[1], &text, NULL, &error)) {
        fprintf(stderr, "check_memory: %s\n", error->message);
        return 2;
    }
    g_autoptr(ZpValidateCsv) csv = zp_validate_csv_parse(text, &error);
    if (csv == NULL) {
        fprintf(stderr, "check_memory: %s\n", error->message);
        return 2;
    }
    g_autoptr(GArray) results = zp_validate_memory_run(csv);
    memory_print(results);
    return memory_check_claims(results) ? 0 : 1;
}
