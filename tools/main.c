#include "tools/program.h"

int
main(int argc, char **argv)
{
    return zp_program_run(argc, argv);
}
