#include <fmt/format.h>

#include <array>

#include "sim/import/impl/config_format.h"
#include "sim/import/impl/trainer_arguments.h"

namespace hdpsim {
namespace {

constexpr auto deepspeed_stated = std::to_array<PlainKeys>({
    {"", "train_batch_size train_micro_batch_size_per_gpu gradient_accumulation_steps sequence_parallel_size"},
    {"bf16", "enabled"},
    {"fp16", "enabled"},
    {"bfloat16", "enabled"},
    {"zero_optimization", "stage mics_shard_size cpu_offload"},
    {"zero_optimization.offload_optimizer", "device ratio"},
    {"zero_optimization.offload_param", "device"},
    {"data_types", "grad_accum_dtype"},
    {"optimizer", "type"},
    {"tensor_parallel", "autotp_size"},
});
constexpr auto deepspeed_idle = std::to_array<PlainKeys>({
    {"",
     "steps_per_print wall_clock_breakdown gradient_clipping scheduler* optimizer.params* "
     "zero_allow_untested_optimizer "
     "prescale_gradients gradient_predivide_factor dump_state tensorboard* wandb* csv_monitor* flops_profiler* "
     "comms_logger* checkpoint* aio* elasticity* autotuning* seq_parallel_communication_data_type memory_breakdown "
     "zero_force_ds_cpu_optimizer fp16.* bf16.* bfloat16.* amp.enabled data_efficiency* curriculum_learning* "
     "communication_data_type checkpoint graph_harvesting hybrid_engine*"},
    {"zero_optimization",
     "allgather_partitions reduce_scatter contiguous_gradients round_robin_gradients stage3_gather_* "
     "gather_16bit_weights_on_model_save elastic_checkpoint allgather_bucket_size reduce_bucket_size sub_group_size "
     "stage3_max_live_parameters stage3_max_reuse_distance stage3_prefetch_bucket_size "
     "stage3_param_persistence_threshold model_persistence_threshold offload_optimizer.pin_memory "
     "offload_optimizer.buffer_* offload_optimizer.fast_init offload_param.pin_memory offload_param.buffer_* "
     "offload_param.max_in_cpu memory_efficient_linear load_from_fp32_weights legacy_stage1 max_live_parameters "
     "max_reuse_distance prefetch_bucket_size param_persistence_threshold "
     "ignore_unused_parameters log_trace_cache_warnings use_all_reduce_for_fetch_params"},
    {"tensor_parallel", "tp_grain_size"},
});
constexpr auto deepspeed_unmodelled = std::to_array<KeyRule>({
    unmodelled_key("zero_optimization", "zero_quantized_weights", "parameters are gathered in bf16", effects::faster,
                   "false"),
    unmodelled_key("zero_optimization", "zero_quantized_nontrainable_weights", "parameters are gathered in bf16",
                   effects::faster, "false"),
    unmodelled_key("zero_optimization", "zero_quantized_gradients", "gradients are reduced in the type of the model",
                   effects::faster, "false"),
    unmodelled_key("zero_optimization", "zero_hpz_partition_size", "parameters are gathered from all ranks",
                   effects::faster_but_larger, "1"),
    unmodelled_key("zero_optimization", "overlap_comm",
                   "what overlaps is what the framework's preset says: gathers and reductions of stage 3",
                   effects::other_time, "true"),
    unmodelled_key("zero_optimization", "mics_hierarchical_params_gather", "gathers are one collective",
                   effects::other_time, "false"),
    unmodelled_key("zero_optimization", "zenflow.*", "the host updates all of its share in each step", effects::faster),
    unmodelled_key("zero_optimization.offload_optimizer", "nvme_path", "states are in host memory", effects::slower),
    unmodelled_key("zero_optimization.offload_param", "nvme_path", "parameters are in host memory", effects::slower),
    unmodelled_key("zero_optimization.offload_optimizer", "super_offload", "the host updates as ZeRO-Offload does",
                   effects::faster, "false"),
    unmodelled_key("activation_checkpointing", "cpu_checkpointing", "activations stay on the device",
                   effects::slower_but_smaller, "false"),
    unmodelled_key("activation_checkpointing", "partition_activations",
                   "each device keeps what layers begin with whole", effects::slower_but_smaller, "false"),
    {.key = "activation_checkpointing.*"},
    unmodelled_key("", "sparse_gradients", "gradients are dense", effects::other_time, "false"),
    unmodelled_key("", "sparse_attention.*", "tokens see all those before them", effects::faster_and_smaller),
    unmodelled_key("", "compression_training.*", "the model is not compressed", effects::other_both),
    unmodelled_key("", "compile.*", "layers are not compiled by DeepSpeed", effects::faster),
    unmodelled_key("", "torch_autocast.*", "parameters have the type of the model", effects::other_both),
    unmodelled_key("", "pipeline.*", "no pipeline of DeepSpeed is simulated", effects::other_both),
    unmodelled_key("", "fp8.*", "products are in bf16", effects::faster),
});

const RuleTable& table_of_deepspeed() {
  static const RuleTable table(deepspeed_unmodelled, deepspeed_stated, deepspeed_idle);
  return table;
}

const KeyRule* rule_of_deepspeed(std::string_view path) {
  return table_of_deepspeed().find(path);
}

bool is_on_device(ConfigKeys& keys, const Value* device) {
  const std::string word = keys.word(device, "none");
  return word == "none" || word == "auto";
}

Sharding sharding_of(ConfigKeys& keys, const std::string& zero) {
  Sharding sharding{.backend = Sharding::Backend::deepspeed};
  const Value* stage = keys.at(zero + "stage");
  sharding.zero = keys.number(stage, "stage", {0, 3}, 0);
  sharding.offloads_optimizer =
      !is_on_device(keys, keys.at(zero + "offload_optimizer.device")) || keys.truth(keys.at(zero + "cpu_offload"));
  sharding.offloads_parameters = !is_on_device(keys, keys.at(zero + "offload_param.device"));
  if (const Value* ratio = keys.at(zero + "offload_optimizer.ratio")) {
    sharding.offload_ratio =
        read_in<double>(*ratio, "'ratio'", {0, 1}, keys.diagnostics()).value_or(sharding.offload_ratio);
  }
  const Value* mics = keys.at(zero + "mics_shard_size");
  if (mics != nullptr && mics->text != "-1" && mics->text != "auto") {
    sharding.shard_ranks = keys.number(mics, "mics_shard_size", trainer_ranges::degree, 1);
  }
  return sharding;
}

void read_deepspeed(ConfigKeys& keys, TrainerRun& run) {
  take_deepspeed(keys, "", run);
}

}  // namespace

const KeyRule* deepspeed_rule(std::string_view path) {
  return rule_of_deepspeed(path);
}

void take_deepspeed(ConfigKeys& keys, const std::string& table, TrainerRun& run) {
  const std::string at = table.empty() ? "" : table + ".";
  const auto number = [&](const std::string& key, Stated<std::int64_t>& stated) {
    take_number(keys, {at + key}, trainer_ranges::sequences, stated);
  };
  number("train_micro_batch_size_per_gpu", run.micro_batch);
  number("gradient_accumulation_steps", run.accumulation);
  if (!run.accumulation.value || !run.micro_batch.value) number("train_batch_size", run.global_batch);
  take_number(keys, {at + "tensor_parallel.autotp_size"}, trainer_ranges::degree, run.tp);
  const Value* sequence_parallel = keys.at(at + "sequence_parallel_size");
  if (sequence_parallel != nullptr) {
    take_number(keys, {at + "sequence_parallel_size"}, trainer_ranges::degree, run.cp);
    run.cp_comm_type = "a2a";
  }
  for (const char* type : {"bf16.enabled", "bfloat16.enabled", "fp16.enabled"}) {
    const Value* enabled = keys.at(at + type);
    if (enabled != nullptr && enabled->text != "auto" && keys.truth(enabled)) run.narrow.set(true, enabled->position);
  }
  const Value* optimizer = keys.at(at + "optimizer.type");
  if (optimizer != nullptr && run.made.places.count("training.optimizer") == 0) take_optimizer(keys, optimizer, run);
  Sharding sharding = sharding_of(keys, at + "zero_optimization.");
  sharding.fp32_gradients = keys.word(keys.at(at + "data_types.grad_accum_dtype"), "") == "fp32";
  const Value* stage = keys.at(at + "zero_optimization.stage");
  run.sharding.set(sharding, keys.position(stage));
}

const ConfigFormat& deepspeed_format() {
  static constexpr ConfigFormat format{.name = "DeepSpeed",
                                       .rule_of = rule_of_deepspeed,
                                       .table = table_of_deepspeed,
                                       .read = read_deepspeed,
                                       .is_part = true};
  return format;
}

}  // namespace hdpsim
