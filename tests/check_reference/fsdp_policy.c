#include "fsdp_policy.h"

#include <string.h>

#include "fsdp_json.h"

static int
width_of(JsonObject *policy, const char *key)
{
    ZpDtype dtype;
    const char *name = json_object_get_string_member_with_default(policy, key, "");
    return zp_dtype_parse(name, &dtype) ? zp_dtype_bits(dtype) / 8 : 0;
}

static gboolean
nth(JsonObject *policy, const char *key, guint index)
{
    JsonArray *array = fsdp_json_list(policy, key);
    return index < fsdp_json_length(array) ? json_array_get_boolean_element(array, index) : TRUE;
}

static void
read_optimizer(ZpFsdpPlan *plan, JsonObject *optimizer)
{
    const char *kind = fsdp_json_interned(optimizer, "kind");
    const char *mode = fsdp_json_interned(optimizer, "mode");
    gboolean adam = strcmp(kind, "adam") == 0 || strcmp(kind, "adamw") == 0;
    plan->moments = adam ? 2 : strcmp(kind, "sgd_momentum") == 0;
    plan->square_root = adam;
    plan->moment_bytes = plan->stored_bytes;
    plan->settings.optimizer = strcmp(mode, "fused") == 0     ? ZP_FSDP_OPTIMIZER_FUSED
                               : strcmp(mode, "forloop") == 0 ? ZP_FSDP_OPTIMIZER_FORLOOP
                                                              : ZP_FSDP_OPTIMIZER_FOREACH;
}

static void
read_fsdp1(ZpFsdpPlan *plan, JsonObject *policy)
{
    ZpFsdp *settings = &plan->settings;
    const char *strategy = json_object_get_string_member_with_default(policy, "strategy", "");
    plan->strategy = strstr(strategy, "NO_SHARD") ? ZP_FSDP_STRATEGY_NO_SHARD
                     : strstr(strategy, "GRAD_OP") || strstr(strategy, "ZERO2")
                         ? ZP_FSDP_STRATEGY_SHARD_GRAD_OP
                         : ZP_FSDP_STRATEGY_FULL_SHARD;
    JsonNode *prefetch = json_object_get_member(policy, "backward_prefetch");
    const char *when =
        prefetch && !json_node_is_null(prefetch) ? json_node_get_string(prefetch) : "none";
    settings->prefetch = strstr(when, "PRE")    ? ZP_FSDP_PREFETCH_PRE
                         : strstr(when, "POST") ? ZP_FSDP_PREFETCH_POST
                                                : ZP_FSDP_PREFETCH_NONE;
    settings->next_forward_prefetch = fsdp_json_flag(policy, "forward_prefetch", FALSE);
    settings->limit_all_gathers = fsdp_json_flag(policy, "limit_all_gathers", TRUE);
    settings->use_orig_params = fsdp_json_flag(policy, "use_orig_params", FALSE);
    settings->zero_grad_after_forward = fsdp_json_flag(policy, "zero_grad_after_forward", FALSE);
}

static void
read_policy(ZpFsdpPlan *plan, JsonObject *policy)
{
    plan->stored_bytes = width_of(policy, "original_dtype");
    plan->param_bytes = width_of(policy, "param_dtype");
    plan->reduce_bytes = width_of(policy, "reduce_dtype");
    plan->settings.set_to_none = fsdp_json_flag(policy, "set_to_none", TRUE);
    plan->settings.first_step = TRUE;
    plan->settings.reduce_scatter_max_input_buffers =
        (gint32)fsdp_json_number(policy, "reduce_scatter_max_input_buffers", 1);
    guint n = (guint)fsdp_json_number(policy, "grad_accum", 1);
    for (guint m = 0; m < n; m++) {
        ZpFsdpMicroBatch micro_batch = {
            .sync = nth(policy, "requires_grad_sync", m),
            .all_reduce = nth(policy, "requires_all_reduce", m),
            .reshard_after_backward = nth(policy, "reshard_after_backward", m),
            .last_backward = nth(policy, "is_last_backward", m),
        };
        g_array_append_val(plan->micro_batches, micro_batch);
    }
    read_fsdp1(plan, policy);
    double cap = 0.0;
    if (json_object_has_member(policy, "bucket_cap_mb") &&
        !json_object_get_null_member(policy, "bucket_cap_mb"))
        cap = json_object_get_double_member(policy, "bucket_cap_mb");
    plan->settings.bucket_cap_bytes = (gint64)(cap * 1024.0 * 1024.0);
    plan->settings.gradient_as_bucket_view =
        fsdp_json_flag(policy, "gradient_as_bucket_view", FALSE);
    plan->settings.find_unused_parameters = fsdp_json_flag(policy, "find_unused_parameters", FALSE);
    plan->settings.static_graph = fsdp_json_flag(policy, "static_graph", FALSE);
}

void
fsdp_policy_read(ZpFsdpPlan *plan, JsonObject *policy, JsonObject *optimizer)
{
    read_policy(plan, policy);
    read_optimizer(plan, optimizer);
}
