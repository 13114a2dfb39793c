#include "sim/import/impl/torchtitan_keys.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>
#include <vector>

#include "sim/import/import_note.h"

namespace hdpsim {
namespace {

constexpr std::string_view no_chunks =
    "attention sees chunks of 8,192 tokens in three of four layers, as the published "
    "model; this flavor sees all tokens";
constexpr std::array all_flavors = std::to_array<Flavor>({
    {"llama3", "8B", "llama3-8b", 32},
    {"llama3", "8B_flex", "llama3-8b", 32},
    {"llama3", "8B_varlen", "llama3-8b", 32},
    {"llama3", "70B", "llama3-70b", 80},
    {"llama3", "405B", "llama3.1-405b", 126},
    {"llama4", "17bx16e", "llama4-scout", 48, true, no_chunks, effects::slower},
    {"llama4", "17bx16e_irope", "llama4-scout", 48, true},
    {"llama4", "17bx128e", "llama4-maverick", 48, true, no_chunks, effects::slower},
    {"llama4", "17bx128e_irope", "llama4-maverick", 48, true},
    {"deepseek_v3", "671B", "deepseek-v3", 61, true},
    {"gpt_oss", "20B", "gpt-oss-20b", 24, true},
    {"gpt_oss", "120B", "gpt-oss-120b", 36, true},
    {"kimi_k2", "1T", "kimi-k2", 61, true},
    {"kimi_k2", "1T-A32B", "kimi-k2", 61, true},
    {"qwen3", "32B", "qwen3-32b", 64},
    {"qwen3", "30B-A3B", "qwen3-30b-a3b", 48, true},
    {"qwen3", "235B-A22B", "qwen3-235b-a22b", 94, true},
    {"qwen3_next", "80B-A3B", "qwen3-next-80b-a3b", 48, true},
});

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> schedules = {
    {{"1f1b", "1f1b"}, {"gpipe", "gpipe"}, {"interleaved1f1b", "interleaved"}, {"zbvzerobubble", "zb-v"}}};

constexpr std::array<std::string_view, 3> degree_homes = {"parallelism", "training", "experimental"};

constexpr std::string_view layers_even = "layers are dealt to the stages evenly";
constexpr std::string_view of_library = "kernels and messages are those of PyTorch's own parallelism";
constexpr std::string_view usual_kernels = "kernels are the fast ones";
constexpr std::string_view all_products = "all products of layers are converted";
constexpr std::string_view by_tensor = "one scale a tensor";

constexpr auto stated_keys = std::to_array<PlainKeys>({
    {"model", "name flavor converters"},
    {"training",
     "local_batch_size batch_size global_batch_size seq_len compile dtype mixed_precision_param "
     "mixed_precision_reduce enable_cpu_offload"},
    {"parallelism",
     "data_parallel_shard_degree data_parallel_replicate_degree tensor_parallel_degree "
     "pipeline_parallel_degree context_parallel_degree context_parallel_rotate_method "
     "expert_parallel_degree fsdp_reshard_after_forward enable_async_tensor_parallel "
     "pipeline_parallel_schedule pipeline_parallel_layers_per_stage pipeline_parallel_microbatch_size "
     "pipeline_parallel_first_stage_less_layers pipeline_parallel_last_stage_less_layers"},
    {"activation_checkpoint", "mode selective_ac_option early_stop"},
    {"compile", "enable components"},
    {"float8", "enable_float8_linear enable_fsdp_float8_all_gather"},
});

constexpr auto idle_keys = std::to_array<PlainKeys>({
    {"job", "*"},
    {"profiling", "*"},
    {"metrics", "*"},
    {"lr_scheduler", "*"},
    {"checkpoint", "*"},
    {"comm", "*"},
    {"validation", "*"},
    {"memory_estimation", "*"},
    {"model", "hf_assets_path tokenizer_path tokenizer_type norm_type print_after_conversion"},
    {"optimizer", "*"},
    {"training", "dataset dataset_path max_norm steps gc_freq gc_debug seed dataloader"},
    {"parallelism", "enable_compiled_autograd"},
    {"activation_checkpoint", "preserve_rng_state determinism_check debug visualize_memory_budget_pareto"},
    {"mx", "mxfp8_dim1_cast_kernel_choice"},
    {"debug", "seed moe_force_load_balance save_config_file print_config"},
    {"fault_tolerance", "*"},
});

constexpr std::array unmodelled_rules = std::to_array<KeyRule>({
    unmodelled_key("model", "attn_mask_type", "tokens see all those before them in their sequence", effects::faster,
                   "causal"),
    unmodelled_key("optimizer", "name", "Adam with fp32 states on the device is simulated", effects::other_both,
                   "AdamW"),
    unmodelled_key("optimizer", "early_step_in_backward", "the optimizer's step follows the backward", effects::smaller,
                   "false"),
    unmodelled_key("optimizer", "implementation", "one kernel updates all parameters", effects::slower, "fused"),
    unmodelled_key("optimizer", "state_dtype", "moments have the type that training.dtype says", effects::other_memory,
                   "float32"),
    unmodelled_key("training", "deterministic", usual_kernels, effects::slower, "false"),
    unmodelled_key("parallelism", "disable_loss_parallel", "logits are cut over tp", effects::slower_and_larger,
                   "false"),
    unmodelled_key("parallelism", "module_fqns_per_model_part", layers_even, effects::other_both),
    unmodelled_key("parallelism", "pipeline_parallel_split_points", layers_even, effects::other_both),
    unmodelled_key("parallelism", "pipeline_parallel_schedule_csv", "the schedule is that of its name",
                   effects::other_both),
    unmodelled_key("parallelism", "pipeline_parallel_expert_parallel_overlap",
                   "what hides all-to-alls of experts is not simulated", effects::faster, "false"),
    unmodelled_key("parallelism", "context_parallel_load_balancer", "each rank has two of 2N parts of a sequence",
                   effects::slower, "headtail"),
    unmodelled_key("parallelism", "expert_tensor_parallel_degree", "experts are divided, not cut as well",
                   effects::other_both, "1"),
    unmodelled_key("parallelism", "expert_parallel_comm_backend", "copies of tokens travel in all-to-alls of NCCL",
                   effects::faster, "standard"),
    unmodelled_key("activation_checkpoint", "memory_budget", "the budget decides nothing here", effects::other_both,
                   "0.5"),
    unmodelled_key("activation_checkpoint", "per_op_sac_force_recompute_mm_shapes_by_fqns",
                   "products of these shapes are not computed again", effects::slower_but_smaller, "moe.router.gate"),
    unmodelled_key("compile", "backend", "what is compiled are the kernels of the default", effects::slower,
                   "inductor"),
    unmodelled_key("float8", "precompute_float8_dynamic_scale_for_fsdp", "scales are found product by product",
                   effects::faster, "false"),
    unmodelled_key("float8", "force_recompute_fp8_weight_in_bwd", "casts of weights stay from forward to backward",
                   effects::slower_but_smaller, "false"),
    unmodelled_key("float8", "recipe_name", by_tensor, effects::slower, "tensorwise"),
    unmodelled_key("float8", "filter_fqns", all_products, effects::slower, "output"),
    unmodelled_key("float8", "moe_fqns_prototype", "products of experts are bf16", effects::faster),
    unmodelled_key("float8", "fqns", "products of experts are converted as model.converters says", effects::other_time),
    unmodelled_key("float8", "emulate", usual_kernels, effects::slower, "false"),
    unmodelled_key("mx", "filter_fqns", all_products, effects::slower, "output"),
    unmodelled_key("mx", "recipe_name", "products are mxfp8", effects::other_time, "mxfp8_cublas"),
    unmodelled_key("mx", "fqns", "products of experts are converted as model.converters says", effects::other_time),
    unmodelled_key("debug", "deterministic", usual_kernels, effects::slower, "false"),
    unmodelled_key("debug", "deterministic_warn_only", usual_kernels, effects::slower, "false"),
    unmodelled_key("fault_tolerance", "enable", "all ranks are there, in one group that NCCL knows", effects::slower,
                   "false"),
    unmodelled_key("fault_tolerance", "semi_sync_method", "gradients are reduced in every step", effects::faster),
    unmodelled_key("experimental", "custom_import", of_library, effects::other_both),
    unmodelled_key("experimental", "custom_args_module", of_library, effects::other_both),
});

// Every rule, those of whole tables (`*`) last.
const std::vector<KeyRule>& all_toml_rules() {
  static const std::vector<KeyRule> rules = [] {
    std::vector<KeyRule> made = rules_of(unmodelled_rules, stated_keys, idle_keys);
    for (KeyRule& rule : made) {
      if (rule.key == "*") rule.key = {};
    }
    return made;
  }();
  return rules;
}

const KeyRule* rule_in(std::string_view table, std::string_view key) {
  const auto& rules = all_toml_rules();
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [&](const KeyRule& each) { return each.table == table && each.key == key; });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Flavor> flavors() {
  return all_flavors;
}

const Flavor* flavor_named(std::string_view model, std::string_view flavor) {
  const auto found = std::find_if(all_flavors.begin(), all_flavors.end(), [&](const Flavor& each) {
    return plain_letters(each.model) == plain_letters(model) && plain_letters(each.flavor) == plain_letters(flavor);
  });
  return found == all_flavors.end() ? nullptr : &*found;
}

std::string_view schedule_named(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto known =
      std::find_if(schedules.begin(), schedules.end(), [&](const auto& schedule) { return schedule.first == name; });
  return known == schedules.end() ? std::string_view() : known->second;
}

std::span<const std::string_view> homes_of_degrees() {
  return degree_homes;
}

std::span<const KeyRule> toml_rules() {
  return all_toml_rules();
}

const KeyRule* toml_rule(std::string_view table, std::string_view key) {
  if (const KeyRule* own = rule_in(table, key)) return own;
  const bool is_home = std::find(degree_homes.begin(), degree_homes.end(), table) != degree_homes.end();
  const KeyRule* of_degrees = is_home ? rule_in(degree_homes.front(), key) : nullptr;
  return of_degrees != nullptr ? of_degrees : rule_in(table, {});
}

}  // namespace hdpsim
