#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/import/impl/config_format.h"
#include "sim/import/impl/trainer_arguments.h"

namespace hdpsim {
namespace {

constexpr auto verl_stated = std::to_array<PlainKeys>({
    {"data",
     "train_batch_size max_prompt_length max_response_length max_length micro_batch_size micro_batch_size_per_gpu "
     "use_dynamic_bsz max_token_len_per_gpu"},
    {"actor_rollout_ref.model",
     "path enable_gradient_checkpointing lora_rank lora.rank target_modules use_liger use_fused_kernels "
     "enable_activation_offload"},
    {"actor_rollout_ref.rollout", "n"},
    {"actor_rollout_ref.actor",
     "strategy ppo_mini_batch_size ppo_micro_batch_size ppo_micro_batch_size_per_gpu use_dynamic_bsz "
     "ppo_max_token_len_per_gpu ulysses_sequence_parallel_size"},
    {"actor_rollout_ref.actor.fsdp_config",
     "fsdp_size reshard_after_forward offload_policy strategy ulysses_sequence_parallel_size"},
    {"actor_rollout_ref.actor.megatron",
     "tensor_model_parallel_size pipeline_model_parallel_size virtual_pipeline_model_parallel_size "
     "context_parallel_size expert_model_parallel_size expert_tensor_parallel_size "
     "override_transformer_config.recompute_granularity"},
    {"trainer", "n_gpus_per_node nnodes"},
    {"model",
     "partial_pretrain path strategy enable_gradient_checkpointing lora_rank target_modules use_liger "
     "fsdp_config.cpu_offload"},
    {"engine", "strategy ulysses_sequence_parallel_size fsdp_size"},
    {"", "ulysses_sequence_parallel_size"},
});
constexpr auto verl_idle = std::to_array<PlainKeys>({
    {"",
     "algorithm* critic* reward* custom_reward_function* trainer.* data.* optim.* ray_* global_profiler* profiler* "
     "hydra* defaults* checkpoint* actor_rollout_ref.rollout.* actor_rollout_ref.ref.* "
     "actor_rollout_ref.hybrid_engine actor_rollout_ref.nccl_timeout transfer_queue* config_path config_name "
     ""},
    {"actor_rollout_ref.model",
     "use_remove_padding trust_remote_code external_lib lora_alpha lora.alpha use_shm tokenizer_path "
     "custom_chat_template "
     "exclude_modules hdfs_path override_config.attn_implementation fused_kernel_options*"},
    {"actor_rollout_ref.actor",
     "optim* clip_* loss_agg_mode entropy_coeff use_kl_loss kl_loss_* policy_loss* ppo_epochs shuffle grad_clip "
     "checkpoint* data_loader_seed use_torch_compile loss_scale_factor tau_* router_replay* "
     "rollout_n profiler* use_rollout_log_probs"},
    {"actor_rollout_ref.actor.fsdp_config",
     "wrap_policy* forward_prefetch use_orig_params seed dtype model_dtype use_torch_compile"},
    {"actor_rollout_ref.actor.megatron",
     "use_mbridge use_dist_checkpointing dist_checkpointing_path seed vanilla_mbridge"},
    {"model", "use_shm trust_remote_code external_lib lora_alpha fsdp_config.wrap_policy*"},
    {"engine", "optim* seed"},
});
constexpr std::string_view between_phases = "copies to the host and back around the update are not simulated";
constexpr auto verl_unmodelled = std::to_array<KeyRule>({
    unmodelled_key("actor_rollout_ref.actor.fsdp_config", "param_offload", between_phases, effects::slower, "False"),
    unmodelled_key("actor_rollout_ref.actor.fsdp_config", "optimizer_offload", between_phases, effects::slower,
                   "False"),
    unmodelled_key("actor_rollout_ref.actor.megatron", "param_offload", between_phases, effects::slower, "False"),
    unmodelled_key("actor_rollout_ref.actor.megatron", "optimizer_offload", between_phases, effects::slower, "False"),
    unmodelled_key("actor_rollout_ref.actor.megatron", "grad_offload", between_phases, effects::slower, "False"),
    unmodelled_key("actor_rollout_ref.actor.megatron", "override_transformer_config.*",
                   "the model trains as Megatron-Core does by default", effects::other_both),
    unmodelled_key("actor_rollout_ref.actor", "entropy_checkpointing", "the entropy is not computed", effects::slower,
                   "False"),
    unmodelled_key("actor_rollout_ref.actor", "entropy_from_logits_with_chunking", "the entropy is not computed",
                   effects::slower, "False"),
    unmodelled_key("actor_rollout_ref.actor", "freeze_vision_tower",
                   "the encoder of pictures and its tokens are not simulated", effects::slower_and_larger, "False"),
    unmodelled_key("actor_rollout_ref.model", "override_config.*", "the model is built as its configuration says",
                   effects::other_both),
    unmodelled_key("", "use_remove_padding", "sequences are not padded", effects::slower, "true"),
});

const RuleTable& table_of_verl() {
  static const RuleTable table(verl_unmodelled, verl_stated, verl_idle);
  return table;
}

const KeyRule* rule_of_verl(std::string_view path) {
  return table_of_verl().find(path);
}

constexpr std::string_view actor = "actor_rollout_ref.actor.";

const Value* of_actor(ConfigKeys& keys, std::string_view key) {
  return keys.at(fmt::format("{}{}", actor, key));
}

void take_devices_of_verl(ConfigKeys& keys, TrainerRun& run) {
  take_number(keys, {"trainer.n_gpus_per_node"}, trainer_ranges::gpus, run.per_node);
  take_number(keys, {"trainer.nnodes"}, trainer_ranges::degree, run.nodes);
  const bool is_rl = keys.at("actor_rollout_ref") != nullptr;
  if (run.per_node.value || !is_rl) return;
  run.per_node.set(8, {});
  keys.assume("8 GPUs in a node are verl's default where none are stated");
}

// Mixed precision of verl's FSDP: fp32 shards, gathered in bf16, reduced in fp32.
void take_fsdp_of_verl(ConfigKeys& keys, const std::string& strategy, const Value* at, TrainerRun& run) {
  Sharding sharding{.backend = strategy == "fsdp2" ? Sharding::Backend::fsdp2 : Sharding::Backend::fsdp1, .zero = 3};
  sharding.fp32_reduce = true;
  const Value* size = keys.at({"actor_rollout_ref.actor.fsdp_config.fsdp_size", "engine.fsdp_size"});
  if (size != nullptr && size->text != "-1") {
    sharding.shard_ranks = keys.number(size, "fsdp_size", trainer_ranges::gpus, 1);
  }
  if (!keys.truth(of_actor(keys, "fsdp_config.reshard_after_forward"), true)) sharding.zero = 2;
  sharding.offloads_parameters =
      keys.truth(of_actor(keys, "fsdp_config.offload_policy")) || keys.truth(keys.at("model.fsdp_config.cpu_offload"));
  sharding.offloads_optimizer = sharding.offloads_parameters;
  run.sharding.set(sharding, keys.position(at));
  take_number(keys,
              {"actor_rollout_ref.actor.ulysses_sequence_parallel_size",
               "actor_rollout_ref.actor.fsdp_config.ulysses_sequence_parallel_size",
               "engine.ulysses_sequence_parallel_size", "ulysses_sequence_parallel_size"},
              trainer_ranges::degree, run.cp);
  run.cp_comm_type = "a2a";
}

void take_megatron_of_verl(ConfigKeys& keys, TrainerRun& run) {
  const auto degree = [&](const char* key, Stated<std::int64_t>& stated) {
    take_number(keys, {fmt::format("{}megatron.{}", actor, key)}, trainer_ranges::degree, stated);
  };
  degree("tensor_model_parallel_size", run.tp);
  degree("pipeline_model_parallel_size", run.pp);
  degree("context_parallel_size", run.cp);
  run.cp_comm_type = "p2p";
  Stated<std::int64_t> ep;
  Stated<std::int64_t> etp;
  Stated<std::int64_t> chunks;
  degree("expert_model_parallel_size", ep);
  degree("expert_tensor_parallel_size", etp);
  degree("virtual_pipeline_model_parallel_size", chunks);
  if (ep.value_or(1) > 1) put(run.made.mesh, "ep", *ep.value);
  if (ep.value_or(1) > 1 && run.tp.value_or(1) % *ep.value != 0) put(run.made.moe, "across", std::string("waves"));
  if (ep.value_or(1) > 1 && etp.value_or(1) > 1) put(run.made.mesh, "etp", *etp.value);
  if (run.pp.value_or(1) > 1 && chunks.value_or(1) > 1) {
    put(run.made.mesh, "schedule", std::string("interleaved"));
    put(run.made.mesh, "virtual_stages", *chunks.value);
  }
  const Value* granularity = of_actor(keys, "megatron.override_transformer_config.recompute_granularity");
  run.recomputes = keys.word(granularity, "") == "full";
  run.sharding.set({.backend = Sharding::Backend::megatron, .zero = 1},
                   keys.position(of_actor(keys, "megatron.tensor_model_parallel_size")));
}

void take_strategy_of_verl(ConfigKeys& keys, TrainerRun& run) {
  const Value* at = keys.at({"actor_rollout_ref.actor.strategy", "actor_rollout_ref.actor.fsdp_config.strategy",
                             "engine.strategy", "model.strategy"});
  const std::string config = keys.word(keys.at("config_name"), "");
  const bool is_megatron =
      of_actor(keys, "megatron.tensor_model_parallel_size") != nullptr || config.find("megatron") != std::string::npos;
  const std::string strategy = keys.word(at, is_megatron ? "megatron" : "fsdp");
  if (strategy == "megatron") return take_megatron_of_verl(keys, run);
  take_fsdp_of_verl(keys, strategy, at, run);
  const Value* checkpoints =
      keys.at({"actor_rollout_ref.model.enable_gradient_checkpointing", "model.enable_gradient_checkpointing"});
  run.recomputes = keys.truth(checkpoints, true);
  run.is_reentrant = false;
  const Value* offloads = keys.at("actor_rollout_ref.model.enable_activation_offload");
  if (keys.truth(offloads)) {
    keys.unmodelled("enable_activation_offload", offloads, "activations stay on the device",
                    effects::slower_but_smaller);
  }
}

// A micro-batch has as many tokens as are stated, or as many sequences.
void take_micro_batches_of_verl(ConfigKeys& keys, const Value* is_dynamic, const Value* tokens_at,
                                const Value* micro_at, TrainerRun& run) {
  if (keys.truth(is_dynamic)) {
    const std::int64_t tokens = keys.number(tokens_at, "max_token_len_per_gpu", trainer_ranges::tokens, 16'384);
    run.micro_batch.set(1, is_dynamic->position);
    run.made.policy = "verl";
    run.made.capacity = tokens;
    put(run.made.plan_options, "max_tokens", tokens);
    run.made.places.emplace("mesh.capacity", keys.position(tokens_at));
    const std::int64_t cp = run.cp.value_or(1);
    if (run.sequence.value && tokens * cp < *run.sequence.value) {
      keys.diagnostics().error(
          keys.position(tokens_at),
          fmt::format("{} tokens on each of {} ranks do not hold a sequence of {}", tokens, cp, *run.sequence.value));
    }
  } else if (micro_at != nullptr) {
    run.micro_batch.set(keys.number(micro_at, "micro_batch_size_per_gpu", trainer_ranges::sequences, 1),
                        micro_at->position);
  }
}

void read_rl_of_verl(ConfigKeys& keys, TrainerRun& run) {
  const std::int64_t prompt =
      keys.number(keys.at("data.max_prompt_length"), "max_prompt_length", trainer_ranges::tokens, 512);
  const Value* response = keys.at("data.max_response_length");
  run.sequence.set(prompt + keys.number(response, "max_response_length", trainer_ranges::tokens, 512),
                   keys.position(response));
  const Value* mini_at = of_actor(keys, "ppo_mini_batch_size");
  const std::int64_t mini = keys.number(mini_at, "ppo_mini_batch_size", trainer_ranges::sequences, 256);
  const std::int64_t answers = keys.number(keys.at("actor_rollout_ref.rollout.n"), "n", trainer_ranges::sequences, 1);
  const std::int64_t batch =
      keys.number(keys.at("data.train_batch_size"), "train_batch_size", trainer_ranges::sequences, 1024);
  run.global_batch.set(mini * answers, keys.position(mini_at));
  take_micro_batches_of_verl(keys, of_actor(keys, "use_dynamic_bsz"), of_actor(keys, "ppo_max_token_len_per_gpu"),
                             of_actor(keys, "ppo_micro_batch_size_per_gpu"), run);
  const Value* of_all = of_actor(keys, "ppo_micro_batch_size");
  if (of_all != nullptr && !run.micro_batch.value) {
    const std::int64_t gpus = bounded_product({run.per_node.value_or(8), run.nodes.value_or(1)});
    const std::int64_t sequences = keys.number(of_all, "ppo_micro_batch_size", trainer_ranges::sequences, 1);
    run.micro_batch.set(std::max<std::int64_t>(sequences / gpus, 1), of_all->position);
  }
  keys.unmodelled("reinforcement learning", mini_at,
                  fmt::format("a step is one update of the actor by {} x {} sequences as long as the longest; an "
                              "iteration has {:g} of them, and generates, scores and computes log-probabilities before",
                              mini, answers, static_cast<double>(batch) / static_cast<double>(mini)),
                  effects::slower_and_larger);
}

void read_sft_of_verl(ConfigKeys& keys, TrainerRun& run) {
  take_number(keys, {"data.max_length"}, trainer_ranges::tokens, run.sequence);
  if (!run.sequence.value) {
    run.sequence.set(1024, {});
    keys.assume("1,024 tokens are verl's data.max_length where none is stated");
  }
  take_number(keys, {"data.train_batch_size"}, trainer_ranges::sequences, run.global_batch);
  if (!run.global_batch.value) {
    run.global_batch.set(256, {});
    keys.assume("256 sequences are verl's data.train_batch_size where none is stated");
  }
  take_micro_batches_of_verl(keys, keys.at("data.use_dynamic_bsz"), keys.at("data.max_token_len_per_gpu"),
                             keys.at({"data.micro_batch_size_per_gpu", "data.micro_batch_size"}), run);
}

void take_model_of_verl(ConfigKeys& keys, TrainerRun& run) {
  const Value* name = keys.at({"actor_rollout_ref.model.path", "model.partial_pretrain", "model.path"});
  if (name != nullptr) run.model.set(keys.word(name, ""), name->position);
  const Value* rank =
      keys.at({"actor_rollout_ref.model.lora_rank", "actor_rollout_ref.model.lora.rank", "model.lora_rank"});
  if (rank != nullptr && rank->text != "0") {
    Adapters adapters;
    adapters.rank = keys.number(rank, "lora_rank", trainer_ranges::degree, 8);
    adapters.targets =
        targets_of_adapters(keys, keys.at({"actor_rollout_ref.model.target_modules", "model.target_modules"}));
    run.adapters = adapters;
  }
  const Value* liger = keys.at({"actor_rollout_ref.model.use_liger", "model.use_liger"});
  if (keys.truth(liger)) take_liger(keys, liger, run);
  if (keys.truth(keys.at("actor_rollout_ref.model.use_fused_kernels"))) run.loss = "cut";
}

void read_verl(ConfigKeys& keys, TrainerRun& run) {
  run.narrow.set(true, {});
  take_devices_of_verl(keys, run);
  take_strategy_of_verl(keys, run);
  take_model_of_verl(keys, run);
  const bool is_rl = keys.at("actor_rollout_ref") != nullptr;
  is_rl ? read_rl_of_verl(keys, run) : read_sft_of_verl(keys, run);
}

}  // namespace

const ConfigFormat& verl_format() {
  static constexpr ConfigFormat format{
      .name = "verl", .rule_of = rule_of_verl, .table = table_of_verl, .read = read_verl};
  return format;
}

}  // namespace hdpsim
