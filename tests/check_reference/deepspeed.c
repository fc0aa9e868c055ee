#include "check.h"

int
check_deepspeed(char **paths, int n_paths)
{
    (void)paths;
    return n_paths;
}
