#include <fmt/format.h>

#include <array>

#include "sim/import/impl/config_format.h"
#include "sim/import/impl/trainer_arguments.h"

namespace hdpsim {
namespace {

constexpr auto swift_stated = std::to_array<PlainKeys>({
    {"",
     "model max_length tuner_type train_type lora_rank target_modules lora_dropout quant_bits quant_method "
     "sequence_parallel_size packing rlhf_type attn_impl torch_dtype sft_type model_id_or_path packing_length "
     "packing_num_proc"},
});
constexpr auto swift_idle = std::to_array<PlainKeys>({
    {"",
     "dataset val_dataset cached_dataset split_dataset_ratio load_from_cache_file model_author model_name model_type "
     "template* system lora_alpha use_chat_template truncation_strategy loss_scale external_plugins reward_* vllm_* "
     "sleep_level log_completions num_generations temperature top_p top_k repetition_penalty "
     "infer_backend beta rpo_alpha epsilon* dynamic_sample overlong_filter max_resample_times num_iterations "
     "steps_per_generation use_hf merge_lora custom_* strict add_version create_checkpoint_symlink adapters "
     "bnb_4bit_* enable_thinking max_model_len rope_scaling use_logits_to_keep task_type agent_template port host "
     "acc_strategy lazy_tokenize max_new_tokens offload_model offload_optimizer move_model_batches "
     "importance_sampling_level async_generate scale_rewards kl_* sglang_* add_non_thinking_prefix lmbda seq_kd"},
});
constexpr std::string_view with_encoder = "the encoder of pictures and its tokens are not simulated";
constexpr auto swift_unmodelled = std::to_array<KeyRule>({
    unmodelled_key("", "freeze_vit", with_encoder, effects::slower_and_larger),
    unmodelled_key("", "freeze_aligner", with_encoder, effects::slower_and_larger),
    unmodelled_key("", "freeze_llm", "all parameters are trained", effects::faster_and_smaller, "false"),
    unmodelled_key("", "vit_*", with_encoder, effects::slower_and_larger),
    unmodelled_key("", "teacher_model", "the teacher's passes are not simulated", effects::slower_and_larger),
    unmodelled_key("", "use_galore", "Adam with two moments is simulated", effects::slower_but_smaller, "false"),
    unmodelled_key("", "trainable_parameters", "all parameters are trained", effects::faster_and_smaller),
});

const RuleTable& table_of_swift() {
  static const RuleTable table(swift_unmodelled, swift_stated, swift_idle);
  return table;
}

const KeyRule* rule_of_swift(std::string_view path) {
  const RuleTable& table = table_of_swift();
  const KeyRule* own = table.find(path);
  return own != nullptr ? own : trainer_argument_rule(path);
}

// `--deepspeed zero3_offload` names a configuration that ms-swift brings along, `--fsdp fsdp2` one of FSDP2.
void take_shipped_sharding(ConfigKeys& keys, TrainerRun& run) {
  const Value* deepspeed = keys.at("deepspeed");
  const std::string name = deepspeed != nullptr && deepspeed->is_scalar() ? deepspeed->text : "";
  const std::string stem = name.substr(0, name.find('.'));
  if (deepspeed != nullptr && stem.size() >= 5 && stem.starts_with("zero") && stem[4] >= '0' && stem[4] <= '3') {
    const bool offloads = stem.ends_with("_offload");
    Sharding sharding{.backend = Sharding::Backend::deepspeed, .zero = stem[4] - '0'};
    sharding.offloads_optimizer = offloads;
    sharding.offloads_parameters = offloads && sharding.zero == 3;
    run.sharding.set(sharding, deepspeed->position);
  }
  const Value* fsdp = keys.at("fsdp");
  if (fsdp != nullptr && fsdp->text == "fsdp2") {
    run.sharding.set({.backend = Sharding::Backend::fsdp2, .zero = 3}, fsdp->position);
    run.recomputes = true;
    run.is_reentrant = false;
  }
}

void take_adapters_of_swift(ConfigKeys& keys, TrainerRun& run) {
  const Value* type = keys.at({"tuner_type", "train_type", "sft_type"});
  const bool trains_all_by_default = run.program.find(" pt") != std::string::npos;
  const std::string word = keys.word(type, trains_all_by_default ? "full" : "lora");
  if (word == "full") return;
  Adapters adapters;
  adapters.rank = keys.number(keys.at("lora_rank"), "lora_rank", trainer_ranges::degree, 8);
  adapters.targets = targets_of_adapters(keys, keys.at("target_modules"));
  const std::string dropout = keys.word(keys.at("lora_dropout"), "0.05");
  adapters.has_dropout = dropout != "0" && dropout != "0.0";
  const Value* bits = keys.at("quant_bits");
  if (bits != nullptr && bits->text == "4") adapters.base = "nf4_double";
  if (bits != nullptr && bits->text != "4") {
    keys.unmodelled(fmt::format("quant_bits = {}", bits->text), bits, "frozen weights are bf16",
                    effects::slower_but_smaller);
  }
  if (word != "lora") {
    keys.unmodelled(fmt::format("tuner_type = {}", word), type, "adapters are those of LoRA", effects::other_both);
  }
  if (type == nullptr) keys.assume("adapters are trained, as ms-swift does where no tuner_type is stated");
  run.adapters = adapters;
}

void read_ms_swift(ConfigKeys& keys, TrainerRun& run) {
  const Value* name = keys.at({"model", "model_id_or_path"});
  if (name != nullptr) run.model.set(keys.word(name, ""), name->position);
  take_answers(keys, "max_length", run);
  take_number(keys, {"packing_length", "max_length"}, trainer_ranges::tokens, run.sequence);
  take_shipped_sharding(keys, run);
  take_trainer_arguments(keys, run);
  if (keys.word(keys.at("torch_dtype"), "") == "bfloat16") run.narrow.set(true, keys.at("torch_dtype")->position);
  run.states = TrainerRun::States::bf16;
  take_checkpointing(keys, run, true);
  take_attention(keys, keys.at("attn_impl"), run);
  take_number(keys, {"sequence_parallel_size"}, trainer_ranges::degree, run.cp);
  run.cp_comm_type = "a2a";
  take_adapters_of_swift(keys, run);
  if (keys.truth(keys.at("packing"))) take_packing(run, "ms_swift", keys.at("packing"));
  const Value* stage = keys.at("rlhf_type");
  if (stage != nullptr) take_stage(keys, run, keys.word(stage, ""), stage);
}

}  // namespace

const ConfigFormat& ms_swift_format() {
  static constexpr ConfigFormat format{.name = "ms-swift",
                                       .rule_of = rule_of_swift,
                                       .table = table_of_swift,
                                       .read = read_ms_swift,
                                       .spreads_layers = true,
                                       .files_named = "deepspeed config"};
  return format;
}

}  // namespace hdpsim
