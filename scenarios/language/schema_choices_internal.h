/* The words of the table's keys that take one of several; included by schema_table.c alone. */
#pragma once

#include "models/families/architecture.h"
#include "scenarios/language/schema.h"

static const ZpSchemaChoice norms[] = {
    {"rmsnorm", FALSE, "a weight, no bias"},
    {"layernorm", TRUE, "a weight and a bias"},
    {0},
};
static const ZpSchemaChoice attentions[] = {
    {"default", ZP_ATTENTION_DEFAULT,
     "as transformers runs the family: flash, through scaled_dot_product_attention with grouped "
     "keys (enable_gqa: no padding mask, PyTorch 2.5 and on); eager where it has no fused kernel "
     "(bloom, codegen, gpt_neo, gptj, gpt_oss, mpt, t5) or advises against one (gemma2)"},
    {"flash", ZP_ATTENTION_FLASH, "fused: no scores are kept, keys and values stay grouped"},
    {"flash_repeated", ZP_ATTENTION_FLASH_REPEATED,
     "fused, keys and values repeated to all heads before (repeat_kv: transformers with a mask or "
     "an older PyTorch, torchtitan)"},
    {"efficient", ZP_ATTENTION_EFFICIENT, "the memory-efficient kernel, repeated as well"},
    {"cudnn", ZP_ATTENTION_CUDNN, "cuDNN's kernel, grouped"},
    {"eager", ZP_ATTENTION_EAGER, "scores and their softmax are kept, quadratic in the sequence"},
    {0},
};
static const ZpSchemaChoice compiles[] = {
    {"none", ZP_COMPILE_NONE, "every operator is a kernel"},
    {"blocks", ZP_COMPILE_BLOCKS, "torch.compile of every block"},
    {"blocks_and_loss", ZP_COMPILE_BLOCKS_AND_LOSS, "and of the loss"},
    {0},
};
static const ZpSchemaChoice norm_kernels[] = {
    {"default", ZP_TRAIT_DEFAULT, "RMS norms written out, as transformers does"},
    {"written_out", ZP_TRAIT_NO, "RMS norms in the framework's operators, with an fp32 copy"},
    {"fused", ZP_TRAIT_YES, "one kernel (torch.nn.RMSNorm, Liger, apex)"},
    {0},
};
static const ZpSchemaChoice rotary_kernels[] = {
    {"written_out", FALSE, "in the framework's operators, as transformers does"},
    {"fused", TRUE, "one kernel (flash-attn, Liger, Megatron-LM)"},
    {0},
};
static const ZpSchemaChoice traits[] = {
    {"default", ZP_TRAIT_DEFAULT, "as config.json has it, else as its configuration class does"},
    {"no", ZP_TRAIT_NO, "no"},
    {"yes", ZP_TRAIT_YES, "yes"},
    {0},
};
static const ZpSchemaChoice experts[] = {
    {"default", ZP_TRAIT_DEFAULT, "grouped, as transformers does since version 5"},
    {"loop", ZP_TRAIT_NO, "expert by expert"},
    {"grouped", ZP_TRAIT_YES, "rows sorted by expert, one product for all"},
    {0},
};
static const ZpSchemaChoice transformers_versions[] = {
    {"4", ZP_TRANSFORMERS_4, "4.57: a mixture's experts are a module each"},
    {"5", ZP_TRANSFORMERS_NEWEST, "5.24: experts of a layer are 3-D parameters, T5 is fused"},
    {0},
};
static const ZpSchemaChoice checkpointings[] = {
    {"none", ZP_CHECKPOINTING_NONE, "all activations are kept"},
    {"selective", ZP_CHECKPOINTING_SELECTIVE, "what training.selective says is kept"},
    {"full", ZP_CHECKPOINTING_FULL, "only the inputs of blocks are kept"},
    {0},
};
static const ZpSchemaChoice selectives[] = {
    {"attention_core", ZP_SELECTIVE_ATTENTION_CORE,
     "all but an eager attention core's scores, which are recomputed (Megatron-LM)"},
    {"attention", ZP_SELECTIVE_ATTENTION, "blocks' inputs and outputs of fused attention"},
    {"products", ZP_SELECTIVE_PRODUCTS, "blocks' inputs and outputs of matrix products"},
    {"products_and_attention", ZP_SELECTIVE_PRODUCTS_AND_ATTENTION, "both"},
    {"every_second_product", ZP_SELECTIVE_EVERY_SECOND_PRODUCT,
     "attention and every second product (torchtitan's selective_ac_option op)"},
    {0},
};
static const ZpSchemaChoice losses[] = {
    {"default", 0, "float, as transformers' loss of causal models; raw for t5 and whisper"},
    {"raw", ZP_ARCHITECTURE_LOSS(ZP_LOSS_RAW), "logits in the format of the head's product"},
    {"float", ZP_ARCHITECTURE_LOSS(ZP_LOSS_FLOAT),
     "logits.float() while the 16-bit logits are still named, labels shifted"},
    {"float_rebound", ZP_ARCHITECTURE_LOSS(ZP_LOSS_FLOAT_REBIND),
     "logits.float() under the same name: the 16-bit logits die"},
    {"shifted_float", ZP_ARCHITECTURE_LOSS(ZP_LOSS_SHIFT_FLOAT),
     "fp32 logits, then a shifted copy of them (transformers before labels were shifted)"},
    {"shifted_16", ZP_ARCHITECTURE_LOSS(ZP_LOSS_SHIFT_16), "a shifted copy, then fp32"},
    {"chunked", ZP_ARCHITECTURE_LOSS(ZP_LOSS_CHUNKS), "head and loss by chunks of tokens"},
    {"chunked_checkpointed", ZP_ARCHITECTURE_LOSS(ZP_LOSS_CHUNKS_CHECKPOINTED),
     "the same, each chunk recomputed in backward"},
    {0},
};
static const ZpSchemaChoice allocators[] = {
    {"none", ZP_ALLOCATOR_NONE, "not modelled: what is allocated decides"},
    {"caching", ZP_ALLOCATOR_CACHING, "PyTorch's CUDA allocator with its default segments"},
    {"expandable", ZP_ALLOCATOR_EXPANDABLE, "the same with expandable_segments:True"},
    {0},
};
static const ZpSchemaChoice wraps[] = {
    {"sublayer", ZP_WRAP_SUBLAYER, "attention and MLP of each block apart"},
    {"block", ZP_WRAP_BLOCK, "wrap_blocks blocks a unit"},
    {"size", ZP_WRAP_SIZE, "a unit closes when it holds wrap_elements or more"},
    {"model", ZP_WRAP_MODEL, "one unit"},
    {0},
};
static const ZpSchemaChoice outers[] = {
    {"own", ZP_OUTER_OWN, "embedding and head (with the final norm) are units of their own"},
    {"root", ZP_OUTER_ROOT, "one unit, gathered from first to last use"},
    {0},
};

static const ZpSchemaChoice collectives[] = {
    {"simple", ZP_COLLECTIVES_SIMPLE, "latency and bytes over bandwidth, from the keys above"},
    {"fitted", ZP_COLLECTIVES_FITTED,
     "one formula fitted to all public measurements; the keys above give bandwidths alone"},
    {"measured", ZP_COLLECTIVES_MEASURED,
     "the GPU's measured tables where there are any, else fitted"},
    {0},
};
static const ZpSchemaChoice algorithms[] = {
    {"nccl", ZP_ALGORITHM_AUTO, "what NCCL picks"},
    {"ring", ZP_ALGORITHM_RING, "rings"},
    {"tree", ZP_ALGORITHM_TREE, "trees (all-reduce)"},
    {"nvls", ZP_ALGORITHM_NVLS, "in the switch of a node (all-reduce)"},
    {"hierarchical", ZP_ALGORITHM_HIERARCHICAL, "inside nodes, then between them"},
    {0},
};
static const ZpSchemaChoice ds_devices[] = {
    {"none", ZP_DS_NOWHERE, "on the device"},
    {"cpu", ZP_DS_CPU, "in host memory"},
    {"nvme", ZP_DS_NVME, "on NVMe (stage 3)"},
    {0},
};
static const ZpSchemaChoice ds_adams[] = {
    {"default", ZP_DS_DEFAULT_ADAM, "fused on the device, CPU Adam when offloaded"},
    {"fused", ZP_DS_FUSED_ADAM, "FusedAdam: no temporaries"},
    {"torch", ZP_DS_TORCH_ADAM, "torch.optim.AdamW, one tensor at a time"},
    {"cpu", ZP_DS_CPU_ADAM, "DeepSpeedCPUAdam"},
    {0},
};
static const ZpSchemaChoice fs_optimizers[] = {
    {"foreach", ZP_FSDP_OPTIMIZER_FOREACH, "PyTorch's choice on a GPU: a list of temporaries"},
    {"fused", ZP_FSDP_OPTIMIZER_FUSED, "no temporaries"},
    {"forloop", ZP_FSDP_OPTIMIZER_FORLOOP, "temporaries of one parameter at a time"},
    {0},
};
static const ZpSchemaChoice fs_choices[] = {
    {"default", ZP_FSDP_AUTO, "as PyTorch or the stage has it"},
    {"no", ZP_FSDP_NO, "no"},
    {"yes", ZP_FSDP_YES, "yes"},
    {0},
};
static const ZpSchemaChoice fs_prefetches[] = {
    {"pre", ZP_FSDP_PREFETCH_PRE, "before a unit's backward (BACKWARD_PRE)"},
    {"post", ZP_FSDP_PREFETCH_POST, "after it (BACKWARD_POST)"},
    {"none", ZP_FSDP_PREFETCH_NONE, "never"},
    {0},
};
