#include "models/activation_program.h"

ZpTensor *
zp_program_experts(const ZpProgram *program, const ZpActivationBlock *block, ZpTensor *a)
{
    return zp_program_linear(program, a, block->hidden, FALSE);
}
