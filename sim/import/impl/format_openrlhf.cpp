#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/division.h"
#include "sim/import/impl/config_format.h"
#include "sim/import/impl/trainer_arguments.h"

namespace hdpsim {
namespace {

// Releases of 2026 have sections (`--ds.zero_stage`), earlier ones have not (`--zero_stage`).
constexpr auto rlhf_stated = std::to_array<PlainKeys>({
    {"",
     "pretrain max_len prompt_max_len generate_max_len train_batch_size micro_train_batch_size zero_stage bf16 "
     "param_dtype flash_attn attn_implementation gradient_checkpointing gradient_checkpointing_use_reentrant "
     "packing_samples ring_attn_size ring_head_stride adam_offload lora_rank target_modules lora_dropout load_in_4bit "
     "use_liger_kernel grad_accum_dtype ds_tensor_parallel_size use_dynamic_batch train_max_tokens_per_gpu "
     "actor_num_nodes actor_num_gpus_per_node n_samples_per_prompt"},
    {"model", "model_name_or_path gradient_checkpointing_enable gradient_checkpointing_reentrant"},
    {"actor",
     "model_name_or_path num_nodes num_gpus_per_node gradient_checkpointing_enable gradient_checkpointing_reentrant"},
    {"data", "max_len"},
    {"rollout", "max_new_tokens n_samples_per_prompt"},
    {"train", "batch_size micro_batch_size dynamic_batch_enable max_tokens_per_gpu"},
    {"ds",
     "zero_stage param_dtype attn_implementation packing_samples ring_attn_size ring_attn_head_stride adam_offload "
     "lora.rank lora.target_modules lora.dropout load_in_4bit use_liger_kernel grad_accum_dtype tensor_parallel_size"},
});
constexpr auto rlhf_idle = std::to_array<PlainKeys>({
    {"",
     "save_* ckpt* logging_steps logger* eval* dataset* input_* output_* apply_chat_template max_epochs max_samples "
     "learning_rate actor_learning_rate critic_* lr_* l2 adam.* adam_betas optim muon.* max_norm min_lr_ratio "
     "use_wandb "
     "wandb_* use_tensorboard load_checkpoint seed train.seed disable_* tokenizer_* chosen_key rejected_key beta ipo "
     "label_smoothing ref_* ref.* reward* remote_rm_url vllm_* vllm.* rollout_* rollout.* algo* init_kl_coef kl_* "
     "use_kl_* prompt_* data.* normalize_reward advantage_estimator gamma lambd eps_clip* num_episodes temperature "
     "top_p colocate_* train.colocate_* freezing_actor_steps enable_prefix_caching enforce_eager runtime_env_json "
     "address async_train agent_func_path dynamic_filtering* use_ms value_head_prefix lora_alpha ds.lora.alpha "
     "multiturn loss compute_fp32_loss ds.enable_sleep deepspeed_enable_sleep actor.* "
     "model.* train.max_epochs train.num_episodes train.async_* enable_ema ds.use_universal_ckpt label_key "
     "working_dir no_advantage_std_norm entropy_loss_coef policy_loss_type "
     "enable_vllm_is_correction vllm_is_truncated_threshold vllm_is_correction_threshold"},
});
constexpr auto rlhf_unmodelled = std::to_array<KeyRule>({
    unmodelled_key("", "zpg", "parameters are gathered from all ranks", effects::faster_but_larger, "1"),
    unmodelled_key("ds", "zpg", "parameters are gathered from all ranks", effects::faster_but_larger, "1"),
    unmodelled_key("", "overlap_comm", "what overlaps is what the framework's preset says", effects::faster, "false"),
    unmodelled_key("ds", "overlap_comm", "what overlaps is what the framework's preset says", effects::faster, "false"),
    unmodelled_key("", "deepcompile", "layers are not compiled", effects::faster, "false"),
    unmodelled_key("ds", "deepcompile", "layers are not compiled", effects::faster, "false"),
    unmodelled_key("", "aux_loss_coef", "the balancing loss is not computed", effects::slower, "0"),
    unmodelled_key("", "full_determinism", "kernels are the fast ones", effects::slower, "false"),
    unmodelled_key("train", "full_determinism_enable", "kernels are the fast ones", effects::slower, "false"),
    unmodelled_key("", "nll_loss_coef", "one loss is computed", effects::slower, "0"),
    unmodelled_key("actor", "freeze_visual_encoder", "the encoder of pictures and its tokens are not simulated",
                   effects::slower_and_larger),
    unmodelled_key("ds", "experts_implementation", "experts are grouped products", effects::other_time),
    unmodelled_key("train", "enable_ema", "no average of the parameters is kept", effects::slower_and_larger, "false"),
});

const RuleTable& table_of_rlhf() {
  static const RuleTable table(rlhf_unmodelled, rlhf_stated, rlhf_idle);
  return table;
}

const KeyRule* rule_of_rlhf(std::string_view path) {
  return table_of_rlhf().find(path);
}

void take_sharding_of_rlhf(ConfigKeys& keys, TrainerRun& run) {
  const Value* stage = keys.at({"ds.zero_stage", "zero_stage"});
  Sharding sharding{.backend = Sharding::Backend::deepspeed, .zero = keys.number(stage, "zero_stage", {0, 3}, 2)};
  sharding.offloads_optimizer = keys.truth(keys.at({"ds.adam_offload", "adam_offload"}));
  sharding.fp32_gradients = keys.word(keys.at({"ds.grad_accum_dtype", "grad_accum_dtype"}), "") == "fp32";
  run.sharding.set(sharding, keys.position(stage));
  take_number(keys, {"ds.ring_attn_size", "ring_attn_size"}, trainer_ranges::degree, run.cp);
  take_number(keys, {"ds.tensor_parallel_size", "ds_tensor_parallel_size"}, trainer_ranges::degree, run.tp);
}

void take_adapters_of_rlhf(ConfigKeys& keys, TrainerRun& run) {
  const Value* rank = keys.at({"ds.lora.rank", "lora_rank"});
  if (rank == nullptr || rank->text == "0") return;
  Adapters adapters;
  adapters.rank = keys.number(rank, "lora_rank", trainer_ranges::degree, 8);
  adapters.targets = targets_of_adapters(keys, keys.at({"ds.lora.target_modules", "target_modules"}));
  if (keys.truth(keys.at({"ds.load_in_4bit", "load_in_4bit"}))) adapters.base = "nf4";
  const std::string dropout = keys.word(keys.at({"ds.lora.dropout", "lora_dropout"}), "0");
  adapters.has_dropout = dropout != "0" && dropout != "0.0";
  run.adapters = adapters;
}

// The longest sequence is a prompt with its answer, where there are answers.
void take_length_of_rlhf(ConfigKeys& keys, TrainerRun& run) {
  const Value* prompt = keys.at("prompt_max_len");
  if (prompt != nullptr) {
    const std::int64_t tokens = keys.number(prompt, "prompt_max_len", trainer_ranges::tokens, 1024);
    run.sequence.set(
        tokens + keys.number(keys.at("generate_max_len"), "generate_max_len", trainer_ranges::tokens, 1024),
        prompt->position);
  }
  take_number(keys, {"data.max_len", "max_len"}, trainer_ranges::tokens, run.sequence);
}

void take_dynamic_batches(ConfigKeys& keys, TrainerRun& run) {
  const Value* dynamic = keys.at({"train.dynamic_batch_enable", "use_dynamic_batch"});
  if (!keys.truth(dynamic)) return;
  const Value* tokens_at = keys.at({"train.max_tokens_per_gpu", "train_max_tokens_per_gpu"});
  const std::int64_t tokens = keys.number(tokens_at, "max_tokens_per_gpu", trainer_ranges::tokens, 16'384);
  run.micro_batch = {};
  run.micro_batch.set(1, dynamic->position);
  run.made.policy = "openrlhf";
  const std::int64_t longest = divided(run.sequence.value_or(0), run.cp.value_or(1)) + 1;
  run.made.capacity = std::max(tokens, longest);  // a sequence that has more is a micro-batch by itself
  put(run.made.plan_options, "max_tokens", tokens);
  run.made.places.emplace("mesh.capacity", keys.position(tokens_at));
}

void read_openrlhf(ConfigKeys& keys, TrainerRun& run) {
  const Value* name = keys.at({"actor.model_name_or_path", "model.model_name_or_path", "pretrain"});
  if (name != nullptr) run.model.set(keys.word(name, ""), name->position);
  take_number(keys, {"actor.num_nodes", "actor_num_nodes"}, trainer_ranges::degree, run.nodes);
  take_number(keys, {"actor.num_gpus_per_node", "actor_num_gpus_per_node"}, trainer_ranges::gpus, run.per_node);
  take_length_of_rlhf(keys, run);
  take_number(keys, {"train.micro_batch_size", "micro_train_batch_size"}, trainer_ranges::sequences, run.micro_batch);
  take_number(keys, {"train.batch_size", "train_batch_size"}, trainer_ranges::sequences, run.global_batch);
  take_precision(keys, keys.at("bf16"), run);
  run.narrow.set(true, {});
  take_sharding_of_rlhf(keys, run);
  const Value* checkpoints =
      keys.at({"actor.gradient_checkpointing_enable", "model.gradient_checkpointing_enable", "gradient_checkpointing"});
  run.recomputes = keys.truth(checkpoints);
  run.is_reentrant =
      keys.truth(keys.at({"actor.gradient_checkpointing_reentrant", "model.gradient_checkpointing_reentrant",
                          "gradient_checkpointing_use_reentrant"}));
  const Value* liger = keys.at({"ds.use_liger_kernel", "use_liger_kernel"});
  if (keys.truth(liger)) take_liger(keys, liger, run);
  take_attention(keys, keys.at({"ds.attn_implementation", "attn_implementation"}), run);
  take_adapters_of_rlhf(keys, run);
  take_dynamic_batches(keys, run);
  const bool is_reward = run.program.find("train_rm") != std::string::npos;
  take_stage(keys, run, is_reward ? "reward" : run.program, nullptr);
}

}  // namespace

const ConfigFormat& openrlhf_format() {
  static constexpr ConfigFormat format{
      .name = "OpenRLHF", .rule_of = rule_of_rlhf, .table = table_of_rlhf, .read = read_openrlhf};
  return format;
}

}  // namespace hdpsim
