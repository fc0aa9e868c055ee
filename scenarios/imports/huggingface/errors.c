#include "scenarios/imports/huggingface/errors.h"

G_DEFINE_QUARK(zp_hf_error_quark, zp_hf_error)
