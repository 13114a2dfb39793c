#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/import/frameworks.h"
#include "sim/import/impl/key_rules.h"
#include "sim/import/impl/megatron_dialects.h"
#include "sim/import/impl/megatron_rules.h"
#include "sim/import/impl/trainer_run.h"

namespace hdpsim {
namespace {

// What ms-swift states where the user does not (swift/megatron/arguments/megatron_args.py).
constexpr auto swift_defaults = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"micro_batch_size", "1"},
    {"global_batch_size", "16"},
    {"bf16", "true"},
    {"use_distributed_optimizer", "true"},
    {"cross_entropy_loss_fusion", "true"},
    {"recompute_granularity", "selective"},
    {"attention_backend", "flash"},
    {"moe_grouped_gemm", "true"},
    {"moe_token_dispatcher_type", "alltoall"},
});

// What it reads itself, or what touches neither the time of a step nor its memory.
constexpr std::string_view swift_own =
    "model tuner_type train_type lora_rank target_modules lora_dropout lora_alpha lora_bias use_rslora dataset "
    "val_dataset "
    "cached_dataset cached_val_dataset load_from_cache_file split_dataset_ratio max_length max_epochs num_train_epochs "
    "output_dir model_author model_name model_type save_steps eval_steps logging_steps save_total_limit "
    "save_safetensors "
    "dataset_num_proc dataloader_num_workers system template add_version check_model load_safetensors streaming "
    "use_hf merge_lora truncation_strategy torch_dtype loss_scale strict report_to external_plugins packing "
    "padding_free "
    "rlhf_type beta rpo_alpha loss_type load lazy_tokenize async_save agent_template enable_thinking adapters "
    "add_non_thinking_prefix custom_register_path max_model_len packing_length packing_num_proc model_kwargs seed "
    "new_special_tokens vit_lr aligner_lr save_strategy eval_strategy mcore_model mcore_adapter to_mcore to_hf "
    "columns interleave_prob load_data_args create_checkpoint_symlink manual_gc manual_gc_steps shuffle_buffer_size "
    "rope_scaling experts_impl test_convert_precision remove_unused_columns label_names metric_for_best_model";

// Of generation and scoring.
constexpr std::string_view swift_rollout =
    "use_vllm vllm_mode vllm_gpu_memory_utilization vllm_tensor_parallel_size vllm_max_model_len vllm_server_host "
    "vllm_server_port reward_funcs reward_weights num_generations steps_per_generation generation_batch_size "
    "max_completion_length temperature top_p top_k sleep_level offload_model offload_optimizer offload_bridge epsilon "
    "epsilon_high dynamic_sample overlong_filter log_completions importance_sampling_level num_iterations "
    "move_model_batches multi_turn_scheduler max_turns lmbda seq_kd kl_in_reward advantage_estimator scale_rewards "
    "router_replay_mode vllm_limit_mm_per_prompt vllm_enforce_eager vllm_server_pass_dataset sft_alpha";

constexpr std::string_view with_pictures = "the encoder of pictures and its tokens are not simulated";

class SwiftArguments {
 public:
  SwiftArguments(ArgumentList list, const std::string& file, const ImportOptions& options, Diagnostics& diagnostics)
      : list_(std::move(list)), file_(file), options_(options), diagnostics_(diagnostics) {}

  TrainingRun read() {
    for (Argument& argument : list_.arguments) make_switch(argument);
    const std::string length = has("packing_length") ? "packing_length" : "max_length";
    rename(length, "seq_length");
    ImportOptions with_model = options_;
    take_model(with_model);
    if (!with_model.model) return {};
    const auto adapters = adapters_of();
    const TrainingStage* stage = training_stage(text_of("rlhf_type"));
    const bool packs = text_of("packing") == "true";
    if (!has("seq_length") && !options_.context) {
      diagnostics_.error({file_, 0, 0}, "nothing states how long a sequence is", "--context TOKENS states it");
      return {};
    }
    drop_own();
    add_defaults();
    TrainingRun run = read_megatron(list_, file_, with_model, diagnostics_);
    run.framework = "ms-swift, whose training is Megatron-Core's";
    if (adapters) put_adapters(*adapters, with_model.model->has_experts, run);
    if (packs) put(run.plan_options, "packing", std::string("ms_swift"));
    if (stage != nullptr) take(*stage, run);
    return run;
  }

 private:
  [[nodiscard]] const Argument* find(std::string_view key) const {
    const auto found = std::find_if(list_.arguments.rbegin(), list_.arguments.rend(), [&](const Argument& argument) {
      return with_underscores(argument.written) == key;
    });
    return found == list_.arguments.rend() ? nullptr : &*found;
  }
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }

  [[nodiscard]] std::string text_of(std::string_view key) const {
    const Argument* argument = find(key);
    if (argument == nullptr) return {};
    if (argument->is_switch) return argument->is_on ? "true" : "false";
    return argument->values.empty() ? "true" : argument->values.front().text;
  }

  // `--name true` states what a switch of Megatron-LM says by being there.
  static void make_switch(Argument& argument) {
    if (argument.values.size() != 1) return;
    const std::string& text = argument.values.front().text;
    if (text != "true" && text != "false" && text != "True" && text != "False") return;
    argument.is_switch = true;
    argument.is_on = text == "true" || text == "True";
    const ArgumentRule* rule = rule_of(argument.written);
    if (rule != nullptr && !rule->key.empty()) argument.written = rule->key;
    argument.values.clear();
  }

  void rename(std::string_view from, std::string_view to) {
    for (Argument& argument : list_.arguments) {
      if (with_underscores(argument.written) == from) argument.written = to;
    }
  }

  void take_model(ImportOptions& options) {
    if (options.model) return;
    const Argument* named = find("model") != nullptr ? find("model") : find("load");
    const std::string name = named == nullptr || named->values.empty() ? "" : named->values.front().text;
    if (!name.empty() && options.model_of_hub) options.model = options.model_of_hub(name);
    if (options.model && !options.model->unlike.empty()) unmodelled(name, *named, options.model->unlike);
    if (options.model) return;
    const std::string help = "--model NAME names a shipped one of its shape, or its config.json";
    if (named == nullptr) {
      diagnostics_.error({file_, 0, 0}, "nothing names the model", help);
    } else {
      diagnostics_.unsupported(named->position, fmt::format("the shape of '{}' is not known here", name), help);
    }
  }

  void unmodelled(std::string_view name, const Argument& argument, std::string_view follows) {
    list_.notes.push_back(
        {ImportNote::Kind::unmodelled, argument.position, difference_text(name, follows, effects::slower_and_larger)});
  }

  std::optional<Adapters> adapters_of() {
    const std::string type = has("tuner_type") ? text_of("tuner_type") : text_of("train_type");
    if (type.empty() || type == "full") return std::nullopt;
    Adapters adapters;
    adapters.rank = std::max<std::int64_t>(std::atoll(text_of("lora_rank").c_str()), 0);
    if (adapters.rank < 1 || adapters.rank > 65'536) adapters.rank = 8;
    adapters.has_dropout = text_of("lora_dropout") != "0" && text_of("lora_dropout") != "0.0";
    const Argument* targets = find("target_modules");
    if (targets != nullptr && !targets->values.empty() && targets->values.front().text != "all-linear") {
      unmodelled("target_modules", *targets, "all products have adapters");
    }
    return adapters;
  }

  void drop_own() {
    const auto own = words_in(swift_own);
    const auto rollout = words_in(swift_rollout);
    const auto is_in = [](const auto& words, const std::string& key) {
      return std::find(words.begin(), words.end(), key) != words.end();
    };
    std::erase_if(list_.arguments, [&](const Argument& argument) {
      const std::string key = with_underscores(argument.written);
      if (key == "freeze_vit" || key == "freeze_aligner") {
        unmodelled(key, argument, with_pictures);
        return true;
      }
      if (!is_in(own, key) && !is_in(rollout, key)) return false;
      list_.notes.push_back({ImportNote::Kind::ignored, argument.position, key});
      return true;
    });
  }

  void add_defaults() {
    for (const auto& [key, value] : swift_defaults) {
      if (has(key) || (key == "bf16" && has("fp16"))) continue;
      Argument argument{
          .written = std::string(key), .position = {file_, 0, 0}, .values = {{std::string(value), {}, {}}}};
      make_switch(argument);
      list_.arguments.push_back(std::move(argument));
    }
    list_.notes.push_back({ImportNote::Kind::assumed, {}, "ms-swift's defaults where Megatron-LM has others"});
  }

  static void take(const TrainingStage& stage, TrainingRun& run) {
    run.micro_batch *= stage.sequences;
    run.global_batch *= stage.sequences;
    if (stage.follows.empty()) return;
    run.notes.push_back({ImportNote::Kind::unmodelled, {}, difference_text(stage.part, stage.follows, stage.effect)});
  }

  ArgumentList list_;
  const std::string& file_;
  const ImportOptions& options_;
  Diagnostics& diagnostics_;
};

}  // namespace

TrainingRun read_swift_megatron(ArgumentList list, const std::string& file, const ImportOptions& options,
                                Diagnostics& diagnostics) {
  return SwiftArguments(std::move(list), file, options, diagnostics).read();
}

}  // namespace hdpsim
