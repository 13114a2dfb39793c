#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/model/impl/config_reader.h"

namespace hdpsim {
namespace {

constexpr std::array<std::pair<std::string_view, Mixer>, 6> mixer_words = {{{"full_attention", Mixer::full},
                                                                            {"attention", Mixer::full},
                                                                            {"sliding_attention", Mixer::window},
                                                                            {"chunked_attention", Mixer::chunk},
                                                                            {"linear_attention", Mixer::linear},
                                                                            {"mamba", Mixer::linear}}};

// The letters of branches, and the words that stand for them.
constexpr std::array<std::pair<std::string_view, char>, 6> branch_words = {{{"mamba", 'M'},
                                                                            {"linear_attention", 'M'},
                                                                            {"attention", '*'},
                                                                            {"full_attention", '*'},
                                                                            {"mlp", '-'},
                                                                            {"moe", 'E'}}};
constexpr std::string_view module_words = "mtp_layers_block_type";

std::vector<Mixer> from_words(ConfigMap& config, std::string_view own_word, const std::vector<Value>& types) {
  std::vector<std::string> known;
  known.reserve(mixer_words.size());
  for (const auto& [word, mixer] : mixer_words) known.emplace_back(word);
  if (!own_word.empty()) known.emplace_back(own_word);
  std::vector<Mixer> mixers;
  for (const Value& type : types) {
    const auto choice = read_choice(type, "kind of layer", known, config.map().diagnostics());
    if (choice) mixers.push_back(*choice < mixer_words.size() ? mixer_words.at(*choice).second : Mixer::linear);
  }
  return mixers;
}

std::vector<Mixer> from_numbers(ConfigMap& config, const MixerKeys& keys, const std::vector<Value>& numbers) {
  std::vector<Mixer> mixers;
  for (const Value& item : numbers) {
    const auto number = read_in<std::int64_t>(item, "a layer's kind", {0, 1}, config.map().diagnostics());
    if (number) mixers.push_back(*number == keys.full_number ? Mixer::full : keys.others);
  }
  return mixers;
}

// The places of full layers; what lies beyond the layers of a model says nothing of it.
std::vector<Mixer> from_places(ConfigMap& config, const MixerKeys& keys, const std::vector<Value>& places,
                               std::int64_t layers) {
  std::vector<Mixer> mixers(static_cast<std::size_t>(layers), keys.others);
  for (const Value& item : places) {
    const Range range{static_cast<double>(keys.first_place), model_ranges::layers.most};
    const auto number = read_in<std::int64_t>(item, "a layer with attention", range, config.map().diagnostics());
    const std::int64_t place = number.value_or(keys.first_place) - keys.first_place;
    if (number && place < layers) mixers[static_cast<std::size_t>(place)] = Mixer::full;
  }
  return mixers;
}

// "LLLG": layers with a window and without one, again and again; empty if the period is no such word.
std::vector<Mixer> from_local_letters(ConfigMap& config, const MixerKeys& keys, std::int64_t layers) {
  const Value* value = keys.period.empty() ? nullptr : config.map().find(keys.period);
  std::vector<Mixer> mixers;
  if (value == nullptr || !value->is_scalar() || value->text.empty()) return mixers;
  if (value->text.find_first_not_of("LG") != std::string::npos) return mixers;
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool is_full = value->text[static_cast<std::size_t>(i) % value->text.size()] == 'G';
    mixers.push_back(is_full ? Mixer::full : keys.others);
  }
  return mixers;
}

std::vector<Mixer> from_period(ConfigMap& config, const MixerKeys& keys, std::int64_t layers) {
  if (std::vector<Mixer> mixers = from_local_letters(config, keys, layers); !mixers.empty()) return mixers;
  const std::int64_t period = config.number_or(keys.period, model_ranges::layers, keys.usual_period);
  const std::int64_t offset = config.number_or(keys.offset_key, {0, model_ranges::layers.most}, keys.offset);
  if (period > 0 && offset >= period) {
    config.error_at(keys.offset_key,
                    fmt::format("'{}' is {}, but a period has {} layers", keys.offset_key, offset, period),
                    fmt::format("it must be below '{}'", keys.period));
  }
  std::vector<Mixer> mixers;
  for (std::int64_t i = 0; i < layers; ++i) {
    const bool is_full = period > 0 && (i - offset) % period == 0;
    mixers.push_back(is_full ? Mixer::full : keys.others);
  }
  return mixers;
}

std::string letters_of(ConfigMap& config, const std::vector<Value>& words) {
  std::vector<std::string> known;
  known.reserve(branch_words.size());
  for (const auto& [word, letter] : branch_words) known.emplace_back(word);
  std::string letters;
  for (const Value& word : words) {
    const auto choice = read_choice(word, "kind of layer", known, config.map().diagnostics());
    if (choice) letters += branch_words.at(*choice).second;
  }
  return letters;
}

void add_branches(ConfigMap& config, std::string_view key, std::string_view letters, LayerPattern& pattern) {
  for (const char letter : letters) {
    pattern.mixers.push_back(letter == 'M' ? Mixer::linear : letter == '*' ? Mixer::full : Mixer::none);
    pattern.branches->mlp.push_back(letter == '-');
    pattern.branches->experts.push_back(letter == 'E');
    if (std::string_view("M*-E").find(letter) != std::string_view::npos) continue;
    config.error_at(key, fmt::format("'{}' is no letter of a layer", letter),
                    "known are M (Mamba), * (attention), - (MLP) and E (experts)");
  }
}

// The layers that predict a further token, behind those of the model.
void read_module(ConfigMap& config, const MixerKeys& keys, LayerPattern& pattern) {
  constexpr std::size_t most = 100;
  const std::vector<Value>& words = config.list(module_words);
  const std::string_view key = words.empty() ? keys.module_letters : module_words;
  const std::string letters =
      words.empty() ? config.map().optional<std::string>(keys.module_letters, "") : letters_of(config, words);
  if (letters.size() > most) {
    config.error_at(key,
                    fmt::format("'{}' is about {} layers, at most {} can be simulated", key, letters.size(), most));
    return;
  }
  add_branches(config, key, letters, pattern);
  pattern.module = std::ssize(letters);
}

void read_branches(ConfigMap& config, const MixerKeys& keys, std::int64_t layers, LayerPattern& pattern) {
  const std::vector<Value>& words = config.list(layer_words);
  const std::string_view key = words.empty() ? keys.letters : layer_words;
  const auto letters = words.empty() ? config.map().required<std::string>(keys.letters) : letters_of(config, words);
  if (!letters || !has_enough(config, key, words.empty() ? letters->size() : words.size(), layers)) return;
  pattern.branches = Branches{};
  add_branches(config, key, std::string_view(*letters).substr(0, static_cast<std::size_t>(layers)), pattern);
  read_module(config, keys, pattern);
}

// Layers whose windows are switched off, or in a model without a window, see all tokens.
void open_windows(ConfigMap& config, const MixerKeys& keys, LayerPattern& pattern) {
  const bool has_windows = pattern.window > 0 && config.truth({.usual = !keys.window_off, .key = keys.window_switch});
  const std::int64_t first = config.number_or(keys.first_window, {0, model_ranges::layers.most}, 0);
  for (std::int64_t i = 0; i < std::ssize(pattern.mixers); ++i) {
    Mixer& mixer = pattern.mixers[static_cast<std::size_t>(i)];
    if (mixer == Mixer::window && (!has_windows || i < first)) mixer = Mixer::full;
  }
}

void check_window(ConfigMap& config, const LayerPattern& pattern) {
  const auto& mixers = pattern.mixers;
  if (pattern.window > 0 || std::find(mixers.begin(), mixers.end(), Mixer::window) == mixers.end()) return;
  config.error_at("layer_types", "some layers have a window, but 'sliding_window' does not say which");
}

}  // namespace

bool has_enough(ConfigMap& config, std::string_view key, std::size_t items, std::int64_t layers) {
  if (static_cast<std::int64_t>(items) >= layers) return true;
  config.error_at(key, fmt::format("'{}' is about {} layers, but the model has {}", key, items, layers),
                  "list every layer, or state fewer layers");
  return false;
}

std::vector<Mixer> listed_mixers(ConfigMap& config, std::int64_t layers, std::int64_t further) {
  const std::vector<Value>& types = config.list("layer_types");
  std::vector<Mixer> mixers = from_words(config, {}, types);
  if (std::ssize(mixers) > layers + further) mixers.resize(static_cast<std::size_t>(layers + further));
  mixers.erase(mixers.begin(), mixers.begin() + std::min<std::int64_t>(layers, std::ssize(mixers)));
  return mixers;
}

LayerPattern read_pattern(ConfigMap& config, const MixerKeys& keys, std::int64_t layers) {
  const std::string_view words = config.list("layer_types").empty() ? layer_words : "layer_types";
  const std::vector<Value>& types = config.list(words);
  const std::vector<Value>& numbers = config.list(keys.list);
  const std::vector<Value>& places = config.list(keys.full_layers);
  LayerPattern pattern;
  pattern.window = config.number_or(keys.window, model_ranges::positions, keys.usual_window);
  if (!keys.letters.empty()) {
    read_branches(config, keys, layers, pattern);
    return pattern;
  }
  if (!types.empty()) {
    if (has_enough(config, words, types.size(), layers)) pattern.mixers = from_words(config, keys.own_word, types);
    check_window(config, pattern);
  } else if (!numbers.empty()) {
    if (has_enough(config, keys.list, numbers.size(), layers)) pattern.mixers = from_numbers(config, keys, numbers);
  } else if (!places.empty()) {
    pattern.mixers = from_places(config, keys, places, layers);
  } else {
    pattern.mixers = from_period(config, keys, layers);
    open_windows(config, keys, pattern);
  }
  if (std::ssize(pattern.mixers) > layers) pattern.mixers.resize(static_cast<std::size_t>(layers));
  return pattern;
}

}  // namespace hdpsim
