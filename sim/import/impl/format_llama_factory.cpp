#include <fmt/format.h>

#include <array>

#include "sim/import/impl/config_format.h"
#include "sim/import/impl/trainer_arguments.h"

namespace hdpsim {
namespace {

constexpr auto factory_stated = std::to_array<PlainKeys>({
    {"",
     "stage finetuning_type cutoff_len packing neat_packing flash_attn enable_liger_kernel "
     "disable_gradient_checkpointing use_reentrant_gc pure_bf16 quantization_bit double_quantization lora_rank "
     "lora_target lora_dropout use_muon pref_loss tensor_model_parallel_size pipeline_model_parallel_size "
     "gradient_checkpointing_kwargs.use_reentrant sequence_parallel_size"},
});
constexpr auto factory_idle = std::to_array<PlainKeys>({
    {"",
     "template dataset* eval_dataset media_dir mix_strategy interleave_probs overwrite_cache max_samples "
     "tokenized_path buffer_size train_on_prompt mask_history ignore_pad_token_for_loss val_size plot_loss "
     "lora_alpha loraplus_* use_rslora create_new_adapter adapter_name_or_path additional_target print_param_status "
     "pref_beta pref_ftx pref_bco_weight kto_* dpo_label_smoothing simpo_gamma use_swanlab swanlab_* ray_* export_* "
     "infer_* predict_with_generate max_new_tokens top_p top_k rope_scaling split_special_tokens new_special_tokens "
     "use_fast_tokenizer hf_hub_token ms_hub_token upcast_layernorm compute_accuracy enable_thinking default_system "
     "tool_format data_shared_file_system pissa_* use_dft_loss use_eaft_loss eaft_alpha quantization_method "
     "image_* video_* crop_to_patches preprocessing_batch_size use_pissa resize_vocab shift_attn include_* "
     "efficient_eos average_tokens_across_devices load_best_model_at_end"},
});
constexpr std::string_view all_of_it = "all parameters are trained";
constexpr auto factory_unmodelled = std::to_array<KeyRule>({
    unmodelled_key("", "freeze_vision_tower", "the encoder of pictures and its tokens are not simulated",
                   effects::slower_and_larger),
    unmodelled_key("", "freeze_multi_modal_projector", "the encoder of pictures and its tokens are not simulated",
                   effects::slower_and_larger),
    unmodelled_key("", "freeze_language_model", all_of_it, effects::faster_and_smaller, "false"),
    unmodelled_key("", "freeze_trainable_layers", all_of_it, effects::faster_and_smaller),
    unmodelled_key("", "freeze_trainable_modules", all_of_it, effects::faster_and_smaller, "all"),
    unmodelled_key("", "freeze_extra_modules", all_of_it, effects::other_both),
    unmodelled_key("", "use_galore", "Adam with two moments is simulated", effects::slower_but_smaller, "false"),
    unmodelled_key("", "use_apollo", "Adam with two moments is simulated", effects::smaller, "false"),
    unmodelled_key("", "use_badam", all_of_it, effects::faster_and_smaller, "false"),
    unmodelled_key("", "use_adam_mini", "Adam with two moments is simulated", effects::smaller, "false"),
    unmodelled_key("", "use_llama_pro", all_of_it, effects::faster_and_smaller, "false"),
    unmodelled_key("", "use_dora", "adapters are those of LoRA", effects::slower_and_larger, "false"),
    unmodelled_key("", "use_unsloth_gc", "what layers begin with stays on the device", effects::slower_but_smaller,
                   "false"),
    unmodelled_key("", "mixture_of_depths", "all layers see all tokens", effects::faster, "false"),
    unmodelled_key("", "use_asft_loss", "the passes of a reference model are not simulated", effects::slower_and_larger,
                   "false"),
    unmodelled_key("", "fp8", "products are in bf16", effects::faster, "false"),
    unmodelled_key("", "fp8_enable_fsdp_float8_all_gather", "parameters are gathered in bf16", effects::faster,
                   "false"),
    unmodelled_key("", "use_v1_kernels", "kernels are those of transformers", effects::faster, "false"),
    unmodelled_key("", "use_kt", "no expert is computed by the host", effects::other_both, "false"),
    unmodelled_key("", "ref_model", "the passes of the reference model are not simulated", effects::slower_and_larger),
    {.key = "galore_*"},
    {.key = "apollo_*"},
    {.key = "badam_*"},
    {.key = "fp8_backend"},
    {.key = "asft_alpha"},
});

const RuleTable& table_of_factory() {
  static const RuleTable table(factory_unmodelled, factory_stated, factory_idle);
  return table;
}

const KeyRule* rule_of_factory(std::string_view path) {
  const RuleTable& table = table_of_factory();
  const KeyRule* own = table.find(path);
  return own != nullptr ? own : trainer_argument_rule(path);
}

void take_adapters_of_factory(ConfigKeys& keys, TrainerRun& run) {
  const Value* type = keys.at("finetuning_type");
  const std::string word = keys.word(type, "lora");
  const Value* bits = keys.at("quantization_bit");
  if (word == "freeze") {
    keys.unmodelled("finetuning_type = freeze", type, all_of_it, effects::faster_and_smaller);
  } else if (word != "full") {
    Adapters adapters;
    adapters.rank = keys.number(keys.at("lora_rank"), "lora_rank", trainer_ranges::degree, 8);
    adapters.targets = targets_of_adapters(keys, keys.at("lora_target"));
    const std::string dropout = keys.word(keys.at("lora_dropout"), "0");
    adapters.has_dropout = dropout != "0" && dropout != "0.0";
    const bool in_4_bits = bits != nullptr && bits->text == "4";
    if (in_4_bits) adapters.base = keys.truth(keys.at("double_quantization"), true) ? "nf4_double" : "nf4";
    run.adapters = adapters;
    run.made.places.emplace("training.lora", keys.position(type));
    if (word != "lora") {
      keys.unmodelled(fmt::format("finetuning_type = {}", word), type, "adapters are those of LoRA",
                      effects::other_both);
    }
  }
  if (bits != nullptr && bits->text != "4") {
    keys.unmodelled(fmt::format("quantization_bit = {}", bits->text), bits, "frozen weights are bf16",
                    effects::slower_but_smaller);
  }
}

void take_packing_of_factory(ConfigKeys& keys, TrainerRun& run, bool is_pretraining) {
  const Value* packing = keys.at("packing");
  const Value* neat = keys.at("neat_packing");
  if (!keys.truth(packing, is_pretraining) && !keys.truth(neat)) return;
  take_packing(run, "llamafactory", packing != nullptr ? packing : neat);
  if (!keys.truth(neat)) {
    keys.unmodelled("packing without neat_packing", packing, "tokens see those of their own sequence alone",
                    effects::slower);
  }
}

void refuse_megatron_of_factory(ConfigKeys& keys) {
  const Value* tp = keys.at({"tensor_model_parallel_size", "pipeline_model_parallel_size"});
  if (tp == nullptr) return;
  keys.diagnostics().unsupported(tp->position, "LLaMA-Factory's training by Megatron-Core is not imported",
                                 "the run's own log of Megatron-LM's arguments is: hdpsim import run.log");
}

// Losses of preferences that need no reference model go by their own names.
std::string stage_of_factory(ConfigKeys& keys, const std::string& stage) {
  std::string loss = keys.word(keys.at("pref_loss"), "sigmoid");
  if (stage == "dpo" && (loss == "orpo" || loss == "simpo")) return loss;
  return stage == "rm" ? "reward" : stage;
}

void read_llama_factory(ConfigKeys& keys, TrainerRun& run) {
  const Value* name = keys.at("model_name_or_path");
  if (name != nullptr) run.model.set(keys.word(name, ""), name->position);
  refuse_megatron_of_factory(keys);
  const Value* stage = keys.at("stage");
  const std::string trained_for = keys.word(stage, "sft");
  take_stage(keys, run, stage_of_factory(keys, trained_for), stage);
  take_number(keys, {"cutoff_len"}, trainer_ranges::tokens, run.sequence);
  if (keys.at("cutoff_len") == nullptr) {
    run.sequence.set(2048, {});
    keys.assume("2,048 tokens are LLaMA-Factory's cutoff_len where none is stated");
  }
  take_number(keys, {"sequence_parallel_size"}, trainer_ranges::degree, run.cp);
  run.usual_micro_batch = 8;
  if (keys.truth(keys.at("pure_bf16"))) {
    run.states = TrainerRun::States::bf16;
    run.narrow.set(true, keys.at("pure_bf16")->position);
  }
  take_trainer_arguments(keys, run);
  const Value* keeps = keys.at("disable_gradient_checkpointing");
  run.recomputes = !keys.truth(keeps);
  if (keeps != nullptr) run.made.places.emplace("training.recompute", keeps->position);
  run.is_reentrant = keys.truth(keys.at({"use_reentrant_gc", "gradient_checkpointing_kwargs.use_reentrant"}), true);
  if (keeps == nullptr) keys.assume("layers are computed again, as LLaMA-Factory does by default");
  take_attention(keys, keys.at("flash_attn"), run);
  if (keys.truth(keys.at("enable_liger_kernel"))) take_liger(keys, keys.at("enable_liger_kernel"), run);
  if (keys.truth(keys.at("use_muon"))) put(run.made.training, "optimizer", std::string("muon"));
  take_adapters_of_factory(keys, run);
  take_packing_of_factory(keys, run, trained_for == "pt");
}

}  // namespace

const ConfigFormat& llama_factory_format() {
  static constexpr ConfigFormat format{.name = "LLaMA-Factory",
                                       .rule_of = rule_of_factory,
                                       .table = table_of_factory,
                                       .read = read_llama_factory,
                                       .files_named = "deepspeed fsdp_config"};
  return format;
}

}  // namespace hdpsim
