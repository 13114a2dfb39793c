#include "sim/import/impl/torchtitan_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

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
    {"llama4", "17bx16e", "llama4-scout", 48, true, no_chunks},
    {"llama4", "17bx16e_irope", "llama4-scout", 48, true},
    {"llama4", "17bx128e", "llama4-maverick", 48, true, no_chunks},
    {"llama4", "17bx128e_irope", "llama4-maverick", 48, true},
    {"deepseek_v3", "671B", "deepseek-v3", 61, true},
    {"qwen3", "32B", "qwen3-32b", 64},
    {"qwen3", "30B-A3B", "qwen3-30b-a3b", 48, true},
    {"qwen3", "235B-A22B", "qwen3-235b-a22b", 94, true},
});

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> schedules = {
    {{"1f1b", "1f1b"}, {"gpipe", "gpipe"}, {"interleaved1f1b", "interleaved"}, {"zbvzerobubble", "zb-v"}}};

constexpr std::string_view layers_even = "layers are dealt to the stages evenly";
constexpr std::string_view of_library = "kernels and messages are those of PyTorch's own parallelism";

constexpr std::array rules = std::to_array<TomlRule>({
    {"job", ""},
    {"profiling", ""},
    {"metrics", ""},
    {"lr_scheduler", ""},
    {"checkpoint", ""},
    {"comm", ""},
    {"validation", ""},
    {"memory_estimation", ""},
    {"debug", ""},
    {"fault_tolerance", ""},
    {"optimizer", "name", "Adam with fp32 states on the device is simulated", "AdamW"},
    {"optimizer", "early_step_in_backward", "the optimizer's step follows the backward", "false"},
    {"optimizer", ""},
    {"model", "hf_assets_path"},
    {"model", "tokenizer_path"},
    {"model", "tokenizer_type"},
    {"model", "norm_type"},
    {"model", "print_after_conversion"},
    {"training", "dataset"},
    {"training", "dataset_path"},
    {"training", "max_norm"},
    {"training", "steps"},
    {"training", "gc_freq"},
    {"training", "gc_debug"},
    {"training", "seed"},
    {"training", "deterministic"},
    {"training", "dataloader"},
    {"training", "enable_cpu_offload", "parameters, gradients and states stay on the device", "false"},
    {"training", "mixed_precision_reduce", "gradients are reduced in bf16, half the bytes", "bfloat16"},
    {"parallelism", "disable_loss_parallel", "logits are cut over tp", "false"},
    {"parallelism", "module_fqns_per_model_part", layers_even},
    {"parallelism", "pipeline_parallel_split_points", layers_even},
    {"parallelism", "pipeline_parallel_schedule_csv", "the schedule is that of its name", ""},
    {"parallelism", "pipeline_parallel_expert_parallel_overlap", "what hides all-to-alls of experts is not simulated",
     "false"},
    {"parallelism", "context_parallel_load_balancer"},
    {"parallelism", "enable_compiled_autograd"},
    {"parallelism", "expert_tensor_parallel_degree", "experts are divided, not cut as well", "1"},
    {"parallelism", "expert_parallel_comm_backend", "copies of tokens travel in all-to-alls of NCCL", "standard"},
    {"activation_checkpoint", ""},
    {"compile", ""},
    {"experimental", "custom_import", of_library, ""},
    {"experimental", "custom_args_module", of_library, ""},
});

}  // namespace

std::span<const Flavor> flavors() {
  return all_flavors;
}

std::string_view schedule_named(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto known =
      std::find_if(schedules.begin(), schedules.end(), [&](const auto& schedule) { return schedule.first == name; });
  return known == schedules.end() ? std::string_view() : known->second;
}

const TomlRule* toml_rule(std::string_view table, std::string_view key) {
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const TomlRule& each) {
    return each.table == table && (each.key == key || each.key.empty());
  });
  return found == rules.end() ? nullptr : &*found;
}

}  // namespace hdpsim
