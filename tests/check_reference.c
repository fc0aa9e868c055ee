/* check_reference KIND DIR...: see check_reference/check.h.  Exit code 0 when every case passes,
 * 1 when one fails, 2 on wrong usage. */
#include "check_reference/check.h"

#include <stdio.h>
#include <string.h>

int
main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: check_reference deepspeed|fsdp DIR...\n"
                        "       check_reference deepspeed-fields|fsdp-fields LIST DIR...\n");
        return 2;
    }
    int failures = -1;
    if (strcmp(argv[1], "deepspeed-fields") == 0 && argc > 3)
        return check_fields(argv[2], ds_passes, argv + 3, argc - 3) > 0;
    if (strcmp(argv[1], "fsdp-fields") == 0 && argc > 3)
        return check_fields(argv[2], fsdp_passes, argv + 3, argc - 3) > 0;
    if (strcmp(argv[1], "deepspeed") == 0)
        failures = check_deepspeed(argv + 2, argc - 2);
    else if (strcmp(argv[1], "fsdp") == 0)
        failures = check_fsdp(argv + 2, argc - 2);
    if (failures < 0) {
        fprintf(stderr, "check_reference: unknown kind '%s' (deepspeed, fsdp)\n", argv[1]);
        return 2;
    }
    return failures > 0;
}
