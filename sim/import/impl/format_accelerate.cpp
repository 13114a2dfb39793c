#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/import/impl/config_format.h"
#include "sim/import/impl/trainer_arguments.h"

namespace hdpsim {
namespace {

constexpr auto accelerate_stated = std::to_array<PlainKeys>({
    {"",
     "distributed_type num_processes num_machines mixed_precision gradient_accumulation_steps "
     "dynamo_config.dynamo_backend"},
    {"deepspeed_config",
     "zero_stage offload_optimizer_device offload_param_device gradient_accumulation_steps deepspeed_config_file"},
    {"parallelism_config",
     "parallelism_config_tp_size parallelism_config_cp_size parallelism_config_sp_size "
     "parallelism_config_dp_replicate_size parallelism_config_dp_shard_size parallelism_config_cp_comm_strategy "
     "parallelism_config_sp_backend"},
});
constexpr auto accelerate_idle = std::to_array<PlainKeys>({
    {"",
     "compute_environment debug downcast_bf16 machine_rank main_process_* main_training_function rdzv_backend "
     "same_network tpu_* use_cpu gpu_ids enable_cpu_affinity deepspeed_hostfile command_file commands ipex_config* "
     "dynamo_config.dynamo_use_*"},
    {"deepspeed_config",
     "zero3_init_flag zero3_save_16bit_model deepspeed_multinode_launcher deepspeed_hostfile gradient_clipping "
     "deepspeed_moe_layer_cls_names deepspeed_inclusion_filter deepspeed_exclusion_filter "
     "seq_parallel_communication_data_type"},
    {"parallelism_config",
     "parallelism_config_sp_seq_length_is_variable parallelism_config_sp_seq_length "
     "parallelism_config_sp_attn_implementation"},
});
constexpr auto accelerate_unmodelled = std::to_array<KeyRule>({
    unmodelled_key("", "dynamo_config.dynamo_mode", "layers are what torch.compile makes of them by default",
                   effects::other_both, "default"),
    unmodelled_key("", "fp8_config.*", "products are in bf16", effects::faster),
    unmodelled_key("", "megatron_lm_config.*", "no plugin of Megatron-LM is simulated", effects::other_both),
});

const RuleTable& table_of_accelerate() {
  static const RuleTable table(accelerate_unmodelled, accelerate_stated, accelerate_idle);
  return table;
}

const KeyRule* rule_of_accelerate(std::string_view path) {
  const RuleTable& table = table_of_accelerate();
  if (path.starts_with("fsdp_config.")) return fsdp_rule(path.substr(path.find('.') + 1));
  return table.find(path);
}

// ---- FSDP

constexpr auto fsdp_stated = std::to_array<PlainKeys>({
    {"",
     "fsdp_version version fsdp_sharding_strategy sharding_strategy fsdp_reshard_after_forward reshard_after_forward "
     "fsdp_offload_params offload_params fsdp_activation_checkpointing activation_checkpointing"},
});
constexpr auto fsdp_idle = std::to_array<PlainKeys>({
    {"",
     "fsdp_cpu_ram_efficient_loading cpu_ram_efficient_loading fsdp_state_dict_type state_dict_type "
     "fsdp_sync_module_states sync_module_states fsdp_use_orig_params use_orig_params final_state_dict_type "
     "fsdp_final_state_dict_type fsdp_transformer_layer_cls_to_wrap transformer_layer_cls_to_wrap "
     "fsdp_limit_all_gathers limit_all_gathers xla* fsdp_backward_prefetch_policy"},
});
constexpr std::string_view one_layer_ahead = "parameters are gathered one layer ahead";
constexpr auto fsdp_unmodelled = std::to_array<KeyRule>({
    unmodelled_key("", "fsdp_auto_wrap_policy", "each layer is a unit", effects::other_both, "TRANSFORMER_BASED_WRAP"),
    unmodelled_key("", "auto_wrap_policy", "each layer is a unit", effects::other_both, "TRANSFORMER_BASED_WRAP"),
    unmodelled_key("", "fsdp_min_num_params", "each layer is a unit", effects::other_both, "0"),
    unmodelled_key("", "min_num_params", "each layer is a unit", effects::other_both, "0"),
    unmodelled_key("", "fsdp_backward_prefetch", one_layer_ahead, effects::slower, "BACKWARD_PRE"),
    unmodelled_key("", "backward_prefetch", one_layer_ahead, effects::slower, "BACKWARD_PRE"),
    unmodelled_key("", "fsdp_forward_prefetch", one_layer_ahead, effects::other_time, "false"),
    unmodelled_key("", "forward_prefetch", one_layer_ahead, effects::other_time, "false"),
    unmodelled_key("", "fsdp_ignored_modules", "all parameters are sharded", effects::other_both),
    unmodelled_key("", "fsdp_mixed_precision_policy", "parameters are gathered in the type of mixed precision",
                   effects::other_both),
});

bool holds(const std::string& text, std::string_view word) {
  return plain_letters(text).find(word) != std::string::npos;
}

// What a strategy says, in words of FSDP1 (FULL_SHARD) or FSDP2 (true, false).
void take_strategy(const std::string& words, Sharding& sharding) {
  sharding.zero = 3;
  if (words == "2" || holds(words, "shardgradop") || holds(words, "hybridshardzero2") || words == "false") {
    sharding.zero = 2;
  }
  if (words == "3" || holds(words, "noshard")) sharding.zero = words == "3" ? 0 : sharding.zero;
  if (holds(words, "noshard")) sharding.zero = 0;
  sharding.in_nodes = holds(words, "hybridshard");
}

// ---- Accelerate

void take_accelerate_deepspeed(ConfigKeys& keys, TrainerRun& run) {
  const Value* table = keys.at("deepspeed_config");
  if (table == nullptr || keys.at("deepspeed_config.deepspeed_config_file") != nullptr) return;
  Sharding sharding{.backend = Sharding::Backend::deepspeed};
  const Value* stage = keys.at("deepspeed_config.zero_stage");
  sharding.zero = keys.number(stage, "zero_stage", {0, 3}, 2);
  const auto offloads = [&](const char* key) { return keys.word(keys.at(key), "none") != "none"; };
  sharding.offloads_optimizer = offloads("deepspeed_config.offload_optimizer_device");
  sharding.offloads_parameters = offloads("deepspeed_config.offload_param_device");
  run.sharding.set(sharding, keys.position(stage == nullptr ? table : stage));
}

void take_parallelism(ConfigKeys& keys, TrainerRun& run) {
  const std::string table = "parallelism_config.parallelism_config_";
  const auto at = [&](const char* key) { return keys.at(table + key); };
  take_number(keys, {table + "tp_size"}, trainer_ranges::degree, run.tp);
  const Value* cp = at("cp_size");
  const Value* sp = at("sp_size");
  const bool exchanges = sp != nullptr && sp->text != "1";
  if (exchanges) run.cp_comm_type = "a2a";
  take_number(keys, {exchanges ? table + "sp_size" : table + "cp_size"}, trainer_ranges::degree, run.cp);
  if (cp != nullptr && keys.word(at("cp_comm_strategy"), "allgather") == "alltoall") run.cp_comm_type = "p2p";
  const Value* copies = at("dp_replicate_size");
  if (copies == nullptr || copies->text == "1" || !run.sharding.value) return;
  const std::int64_t shards = keys.number(at("dp_shard_size"), "dp_shard_size", trainer_ranges::degree, 1);
  run.sharding.value->shard_ranks = shards * run.cp.value_or(1);
}

void read_accelerate(ConfigKeys& keys, TrainerRun& run) {
  take_number(keys, {"num_processes"}, trainer_ranges::gpus, run.gpus);
  take_number(keys, {"num_machines"}, trainer_ranges::degree, run.nodes);
  if (run.gpus.value && run.nodes.value && *run.gpus.value % *run.nodes.value == 0) {
    run.per_node.set(*run.gpus.value / *run.nodes.value, run.gpus.position);
  }
  const Value* precision = keys.at("mixed_precision");
  const std::string type = keys.word(precision, "no");
  if (type == "bf16" || type == "fp16") run.narrow.set(true, precision->position);
  if (type == "fp8") {
    run.narrow.set(true, precision->position);
    keys.unmodelled("mixed_precision = fp8", precision, "products are in bf16", effects::faster);
  }
  const std::string kind = plain_letters(keys.word(keys.at("distributed_type"), "NO"));
  if (kind == "fsdp") take_fsdp(keys, "fsdp_config", nullptr, keys.at("distributed_type"), run);
  if (kind == "deepspeed") take_accelerate_deepspeed(keys, run);
  if (kind == "megatronlm" || kind == "tpu" || kind == "xla") {
    keys.diagnostics().unsupported(keys.position(keys.at("distributed_type")),
                                   fmt::format("accelerate's {} is not imported", keys.at("distributed_type")->text));
  }
  take_number(keys, {"gradient_accumulation_steps", "deepspeed_config.gradient_accumulation_steps"},
              trainer_ranges::sequences, run.accumulation);
  const std::string compiler = plain_letters(keys.word(keys.at("dynamo_config.dynamo_backend"), "NO"));
  if (compiler != "no") run.is_compiled = true;
  take_parallelism(keys, run);
}

}  // namespace

const KeyRule* fsdp_rule(std::string_view path) {
  static const RuleTable table(fsdp_unmodelled, fsdp_stated, fsdp_idle);
  return table.find(path);
}

void take_fsdp(ConfigKeys& keys, const std::string& table, const Value* words, const Value* at, TrainerRun& run) {
  const auto find = [&](const std::string& key) {
    const Value* with_prefix = keys.at(fmt::format("{}.fsdp_{}", table, key));
    return with_prefix != nullptr ? with_prefix : keys.at(fmt::format("{}.{}", table, key));
  };
  const Value* version_at = find("version") != nullptr ? find("version") : keys.at("fsdp_version");
  const std::int64_t version = keys.number(version_at, "fsdp_version", {1, 2}, 1);
  Sharding sharding{.backend = version == 2 ? Sharding::Backend::fsdp2 : Sharding::Backend::fsdp1, .zero = 3};
  const Value* strategy = find("sharding_strategy");
  const Value* reshard = find("reshard_after_forward");
  std::string stated = strategy != nullptr ? keys.word(strategy, "") : keys.word(reshard, "true");
  if (version == 2 && reshard != nullptr) stated = keys.word(reshard, "true");
  const bool has_words = words != nullptr && words->text != "true" && !(words->is_scalar() && words->text.empty());
  if (has_words) {
    stated = words->text;
    for (const Value& item : words->items) stated += " " + item.text;
  }
  take_strategy(stated, sharding);
  sharding.offloads_parameters = keys.truth(find("offload_params")) || (has_words && holds(stated, "offload"));
  sharding.offloads_optimizer = sharding.offloads_parameters;
  if (keys.truth(find("activation_checkpointing"))) {
    run.recomputes = true;
    run.is_reentrant = false;
    run.made.places.emplace("training.recompute", find("activation_checkpointing")->position);
  }
  run.sharding.set(sharding, keys.position(strategy != nullptr ? strategy : at));
}

const ConfigFormat& accelerate_format() {
  static constexpr ConfigFormat format{.name = "accelerate",
                                       .rule_of = rule_of_accelerate,
                                       .table = table_of_accelerate,
                                       .read = read_accelerate,
                                       .is_part = true,
                                       .files_named = "deepspeed_config.deepspeed_config_file"};
  return format;
}

}  // namespace hdpsim
