#include "tools/line/command.h"

int
main(int argc, char **argv)
{
    return zp_command_main(argc, argv);
}
