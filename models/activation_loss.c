#include "models/activation_program.h"

ZpActivationBytes
zp_activation_measure_loss(const ZpActivationLoss *loss)
{
    (void)loss;
    return (ZpActivationBytes){.forward_peak_at = "", .backward_peak_at = ""};
}
