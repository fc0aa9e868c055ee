#include "check.h"

int
check_fsdp(char **paths, int n_paths)
{
    (void)paths;
    return n_paths;
}
