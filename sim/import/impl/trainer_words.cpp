#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "sim/base/text.h"
#include "sim/import/impl/trainer_run.h"
#include "sim/model/lora.h"

namespace hdpsim {
namespace {

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// What an optimizer of the Trainer is to a study.
struct OptimizerName {
  std::string_view part;     // of the name
  std::string_view moments;  // empty: as they are
  std::string_view optimizer = "adam";
  std::string_view follows = {};
  LikelyEffect effect = {};
};
constexpr std::string_view adam_instead = "Adam with two moments is simulated";
constexpr auto optimizer_names = std::to_array<OptimizerName>({
    {"adamw_torch_4bit", "int4"},
    {"8bit_paged", "int8", "adam", "states are not paged to the host", effects::slower_but_smaller},
    {"paged", "int8", "adam", "states are not paged to the host", effects::slower_but_smaller},
    {"adamw_8bit", "int8"},
    {"8bit", "int8"},
    {"muon", "", "muon"},
    {"lamb", "", "lamb"},
    {"adafactor", "", "adam", adam_instead, effects::smaller},
    {"adalomo", "", "adam", adam_instead, effects::smaller},
    {"lomo", "", "adam", adam_instead, effects::smaller},
    {"galore", "", "adam", adam_instead, effects::slower_but_smaller},
    {"apollo", "", "adam", adam_instead, effects::smaller},
    {"lion", "", "adam", adam_instead, effects::smaller},
    {"sgd", "", "adam", adam_instead, effects::smaller},
    {"rmsprop", "", "adam", adam_instead, effects::smaller},
    {"adagrad", "", "adam", adam_instead, effects::smaller},
    {"badam", "", "adam", adam_instead, effects::smaller},
    {"adam", ""},
    {"auto", ""},
    {"stableadamw", ""},
});

constexpr std::string_view no_reference = "the passes of the reference model are not simulated";
constexpr std::string_view no_rollout = "the training of the actor alone is simulated, not what generates and scores";
constexpr auto training_stages = std::to_array<TrainingStage>({
    {"dpo", 2, no_reference, effects::slower_and_larger},
    {"orpo", 2},
    {"simpo", 2},
    {"cpo", 2},
    {"grpo", 1, no_rollout, effects::slower_and_larger},
    {"rloo", 1, no_rollout, effects::slower_and_larger},
    {"gkd", 1, "the teacher's passes are not simulated", effects::slower_and_larger},
    {"ppo", 1, no_rollout, effects::slower_and_larger},
    {"kto", 1, no_reference, effects::slower_and_larger},
    {"reward", 2},
});

constexpr std::array<std::string_view, 3> words_for_all = {"all-linear", "all", "all_linear"};
// HuggingFace's names of products that can have adapters.
constexpr std::span<const std::string_view> adapted_products(adapter_target_names.data(), 7);

}  // namespace

void take_number(const ConfigKeys& keys, std::initializer_list<std::string_view> paths, Range range,
                 Stated<std::int64_t>& stated) {
  for (const std::string_view path : paths) {
    const Value* value = keys.at(path);
    if (value == nullptr || value->text == "auto") continue;
    const auto number = keys.count(*value, path, range);
    return stated.set(number.value_or(static_cast<std::int64_t>(range.least)), value->position);
  }
}

void take_answers(const ConfigKeys& keys, std::string_view prompt, TrainerRun& run) {
  constexpr std::int64_t usual_prompt = 512;
  const Value* answer = keys.at("max_completion_length");
  if (answer == nullptr) return;
  const std::int64_t tokens = keys.number(answer, "max_completion_length", trainer_ranges::tokens, 1);
  run.sequence.set(tokens + keys.number(keys.at(prompt), prompt, trainer_ranges::tokens, usual_prompt),
                   answer->position);
}

void take_packing(TrainerRun& run, std::string_view packer, const Value* at) {
  put(run.made.plan_options, "packing", std::string(packer));
  if (at != nullptr) run.made.places.emplace("plans", at->position);
}

void take_optimizer(ConfigKeys& keys, const Value* name, TrainerRun& run) {
  if (name == nullptr) return;
  const std::string word = lowered(keys.word(name, "adamw_torch"));
  const auto known = std::find_if(optimizer_names.begin(), optimizer_names.end(),
                                  [&](const OptimizerName& each) { return word.find(each.part) != std::string::npos; });
  run.made.places.emplace("training.optimizer", name->position);
  run.made.places.emplace("training.moments", name->position);
  if (known == optimizer_names.end()) {
    keys.unmodelled(fmt::format("the optimizer {}", word), name, adam_instead, effects::other_both);
    return;
  }
  if (known->optimizer != "adam") put(run.made.training, "optimizer", std::string(known->optimizer));
  if (!known->moments.empty() && (known->part != "paged" || word.find("8bit") != std::string::npos)) {
    put(run.made.training, "moments", std::string(known->moments));
  }
  if (!known->follows.empty()) {
    keys.unmodelled(fmt::format("the optimizer {}", word), name, known->follows, known->effect);
  }
}

std::vector<std::string> targets_of_adapters(ConfigKeys& keys, const Value* value) {
  std::vector<std::string> names;
  if (value == nullptr) return names;
  if (value->is_scalar()) {
    for (std::size_t at = 0; at <= value->text.size();) {
      const std::size_t end = std::min(value->text.find_first_of(", ", at), value->text.size());
      if (end > at) names.push_back(value->text.substr(at, end - at));
      at = end + 1;
    }
  }
  for (const Value& item : value->items) names.push_back(item.text);
  const auto is_in = [](const auto& words, const std::string& name) {
    return std::find(words.begin(), words.end(), name) != words.end();
  };
  if (std::any_of(names.begin(), names.end(), [&](const auto& name) { return is_in(words_for_all, name); })) return {};
  std::vector<std::string> others;
  for (const std::string& name : names) {
    if (!is_in(adapted_products, name)) others.push_back(name);
  }
  std::erase_if(names, [&](const std::string& name) { return !is_in(adapted_products, name); });
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  if (names.empty()) {
    keys.unmodelled(fmt::format("adapters of {}", joined(others, ", ")), value, "all products have adapters",
                    effects::other_both);
  } else if (!others.empty()) {
    keys.unmodelled(fmt::format("adapters of {}", joined(others, ", ")), value, "they have none",
                    effects::slower_and_larger);
  }
  return names;
}

void take_attention(ConfigKeys& keys, const Value* name, TrainerRun& run) {
  if (name == nullptr) return;
  const std::string word = lowered(keys.word(name, ""));
  run.made.places.emplace("kernels.attention", name->position);
  if (word == "eager" || word == "disabled") {
    put(run.made.kernels, "attention", std::string("unfused"));
  } else if (word.find("flex") != std::string::npos) {
    keys.unmodelled(fmt::format("attention {}", word), name, "attention is the flash kernel", effects::slower);
  }
}

void take_precision(ConfigKeys& keys, const Value* is_narrow, TrainerRun& run) {
  if (is_narrow == nullptr || is_narrow->text == "auto" || is_narrow->text == "full") {
    if (is_narrow != nullptr) run.narrow.set(true, is_narrow->position);
    return;
  }
  (keys.truth(is_narrow) ? run.narrow : run.wide).set(true, is_narrow->position);
}

void take_liger(ConfigKeys& keys, const Value* at, TrainerRun& run) {
  run.loss = "liger";
  run.has_liger_layers = true;
  run.made.places.emplace("training.loss", keys.position(at));
  keys.unmodelled("Liger's kernels for positions and activations", at, "they are PyTorch's, norms and the loss Liger's",
                  effects::faster_and_smaller);
}

const TrainingStage* training_stage(std::string_view word) {
  const std::string letters = plain_letters(word);
  const auto known = std::find_if(training_stages.begin(), training_stages.end(), [&](const TrainingStage& each) {
    return letters.find(each.part) != std::string::npos;
  });
  return known == training_stages.end() ? nullptr : &*known;
}

void take_stage(ConfigKeys& keys, TrainerRun& run, std::string_view word, const Value* at) {
  const TrainingStage* known = training_stage(word);
  if (known == nullptr) return;
  run.sequences_of_example = known->sequences;
  if (known->sequences > 1) keys.assume("an example is a pair of sequences, each as long as stated", at);
  if (!known->follows.empty()) keys.unmodelled(std::string(word), at, known->follows, known->effect);
}

}  // namespace hdpsim
