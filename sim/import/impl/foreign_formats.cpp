#include "sim/import/impl/foreign_formats.h"

#include <algorithm>
#include <array>
#include <span>

#include "sim/import/impl/megatron_rules.h"

namespace hdpsim {
namespace {

constexpr std::string_view from_answers =
    "hdpsim new mine.yaml --model NAME --gpus N --context TOKENS writes a study from answers; its mesh states tp, pp "
    "and "
    "zero, framework: {preset: pytorch-fsdp} how FSDP trains, {preset: deepspeed-zero3} how DeepSpeed does, and "
    "training.lora adapters of a frozen model";
constexpr std::string_view from_nemo =
    "hdpsim new mine.yaml --model NAME --gpus N --context TOKENS writes a study from answers, framework: {preset: "
    "nemo-24} states how NeMo trains; the args of a Megatron checkpoint of the run can be imported";

/// How a program's files are recognised: one of `keys`, names at any depth or arguments, is enough.
struct Signature {
  std::string_view name;
  std::array<std::string_view, 4> keys;
  std::array<std::string_view, 2> commands = {};  ///< Words of a command that starts it, behind any path.
  std::string_view way = from_answers;
  bool has_names_of_megatron = false;  ///< Its files may hold names of Megatron-LM's arguments, too.
};

// Those whose files hold keys of others come first.
constexpr auto signatures = std::to_array<Signature>({
    {"a study of hdpsim", {"plans", "compare_to"}, {}, "hdpsim study FILE runs it"},
    {"a HuggingFace configuration of a model",
     {"architectures", "num_hidden_layers"},
     {},
     "hdpsim new mine.yaml --model FILE --gpus N --context TOKENS writes a study of it"},
    {"verl", {"actor_rollout_ref", "partial_pretrain"}, {"verl.trainer.main_ppo", "verl.trainer.fsdp_sft_trainer"}},
    {"LLaMA-Factory", {"finetuning_type", "cutoff_len", "lora_target"}, {"llamafactory-cli"}},
    {"axolotl", {"base_model", "sample_packing"}, {"axolotl", "axolotl.cli.train"}},
    {"NeMo", {"exp_manager", "_target_", "trainer"}, {"nemo", "megatron_gpt_pretraining.py"}, from_nemo, true},
    {"torchtune", {"_component_"}, {"tune"}},
    {"nanotron", {"data_stages", "pp_engine"}, {"run_train.py"}},
    {"ms-swift", {"train_type", "tuner_type"}, {"swift"}},
    {"accelerate", {"distributed_type", "compute_environment"}},
    {"HuggingFace's TrainingArguments",
     {"per_device_train_batch_size", "model_name_or_path", "gradient_checkpointing", "learning_rate"},
     {"run_clm.py", "trl"}},
    {"DeepSpeed",
     {"zero_optimization", "train_micro_batch_size_per_gpu", "train_batch_size", "gradient_accumulation_steps"}},
});

// Without them a file is no list of arguments of Megatron-LM.
constexpr std::array<std::string_view, 4> signs_of_megatron = {"num_layers", "num_attention_heads", "seq_length",
                                                               "encoder_seq_length"};

// The entry of one of these names, the map itself before the maps in it.
const Value::Entry* entry_named(const Value& map, std::span<const std::string_view> names) {
  for (const Value::Entry& entry : map.entries) {
    const std::string key = with_underscores(entry.key);
    const bool is_one =
        std::any_of(names.begin(), names.end(), [&](std::string_view name) { return !name.empty() && key == name; });
    if (is_one) return &entry;
  }
  for (const Value::Entry& entry : map.entries) {
    if (const Value::Entry* inner = entry_named(entry.value, names)) return inner;
  }
  return nullptr;
}

ForeignFile file_of(const Signature& signature, Position position, std::string sign) {
  return {std::string(signature.name), std::move(position), std::move(sign), std::string(signature.way)};
}

}  // namespace

std::optional<ForeignFile> foreign_document(const Value& root) {
  const bool is_megatron = entry_named(root, signs_of_megatron) != nullptr;
  for (const Signature& signature : signatures) {
    if (is_megatron && !signature.has_names_of_megatron) continue;
    if (const Value::Entry* entry = entry_named(root, signature.keys)) {
      return file_of(signature, entry->position, entry->key);
    }
  }
  return std::nullopt;
}

std::optional<ForeignFile> foreign_command(std::string_view word) {
  const std::string_view plain = word.substr(0, word.find('='));
  const std::string name = plain.starts_with("--") ? with_underscores(plain) : std::string();
  const std::string_view program = plain.substr(plain.find_last_of('/') + 1);
  const auto is_one = [&](std::string_view each) { return !each.empty() && (each == name || each == program); };
  for (const Signature& signature : signatures) {
    const bool starts = std::any_of(signature.commands.begin(), signature.commands.end(), is_one);
    if (starts || (!name.empty() && std::any_of(signature.keys.begin(), signature.keys.end(), is_one))) {
      return file_of(signature, {}, std::string(plain));
    }
  }
  return std::nullopt;
}

}  // namespace hdpsim
