#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "sim/model/impl/config_reader.h"

namespace hdpsim {
namespace {

using namespace model_ranges;

// A list that newer files of all families may have, in place of the number of layers without experts and a period.
constexpr std::string_view mlp_words = "mlp_layer_types";

std::vector<std::int64_t> layers_without(ConfigMap& config) {
  std::vector<std::int64_t> named;
  for (const Value& item : config.list("mlp_only_layers")) {
    const auto layer = read_in<std::int64_t>(item, "a layer", {0, layers.most}, config.map().diagnostics());
    if (layer) named.push_back(*layer);
  }
  return named;
}

// A list of words or of numbers, one a layer; a longer list counts as far as there are layers.
std::vector<bool> from_list(ConfigMap& config, std::string_view key, std::int64_t count) {
  static const std::vector<std::string> words = {"dense", "sparse"};
  std::vector<bool> have;
  for (const Value& item : config.list_if_there(key)) {
    Diagnostics& problems = config.map().diagnostics();
    if (key == mlp_words) {
      have.push_back(read_choice(item, "kind of MLP", words, problems).value_or(0) == 1);
    } else {
      const bool is_word = item.is_scalar() && (item.text == "true" || item.text == "false");
      have.push_back(is_word ? item.text == "true"
                             : read_in<std::int64_t>(item, "whether a layer has experts", {0, 1}, problems) == 1);
    }
  }
  has_enough(config, key, have.size(), count);
  have.resize(static_cast<std::size_t>(count));
  return have;
}

// Numbers of layers behind commas.
std::vector<bool> from_text(ConfigMap& config, const Value& text, std::int64_t count) {
  std::vector<bool> have(static_cast<std::size_t>(count));
  std::istringstream words(text.text);
  for (std::string word; std::getline(words, word, ',');) {
    const Value item = Value::scalar(word, text.position);
    const Range known{0, static_cast<double>(count - 1)};
    const auto layer = read_in<std::int64_t>(item, "a layer", known, config.map().diagnostics());
    if (layer) have[static_cast<std::size_t>(*layer)] = true;
  }
  return have;
}

std::vector<bool> layers_with(ConfigMap& config, const ExpertKeys& keys, std::int64_t count) {
  const Value* listed = keys.listed.empty() ? nullptr : config.map().find(keys.listed);
  if (listed != nullptr && listed->is_scalar()) return from_text(config, *listed, count);
  if (!config.list(mlp_words).empty()) return from_list(config, mlp_words, count);
  if (!config.list_if_there(keys.period).empty()) return from_list(config, keys.period, count);
  const std::int64_t leading = config.number_or(keys.leading_dense, {0, layers.most}, 0);
  const std::int64_t period = config.number_or(keys.period, layers, keys.usual_period);
  const std::int64_t offset = config.number_or(keys.offset_key, {0, layers.most}, keys.offset);
  const std::vector<std::int64_t> named = layers_without(config);
  std::vector<bool> have;
  for (std::int64_t layer = 0; layer < count; ++layer) {
    const bool is_named = std::find(named.begin(), named.end(), layer) != named.end();
    have.push_back(layer >= leading && !is_named && (layer - offset) % period == 0);
  }
  return have;
}

std::int64_t shared_width(ConfigMap& config, const ExpertKeys& keys, std::int64_t expert_hidden) {
  if (!keys.shared_switch.empty() && !config.map().optional<bool>(std::string(keys.shared_switch), false)) return 0;
  if (keys.shared_always > 0) return keys.shared_always * expert_hidden;
  if (!keys.shared.empty()) return config.whole(keys.shared, experts) * expert_hidden;
  return keys.shared_hidden.empty() ? 0 : config.whole(keys.shared_hidden, width);
}

// Groups of experts of which a token chooses some. A greedy router knows none (DeepSeek-V2, topk_method).
void read_groups(ConfigMap& config, const ExpertKeys& keys, MixtureOfExperts& moe) {
  const std::int64_t groups = config.whole(keys.groups, experts);
  const std::int64_t chosen_groups = config.whole("topk_group", experts);
  const Value* method = config.map().find("topk_method");
  if (groups <= 1 || (method != nullptr && method->text == "greedy")) return;
  const std::int64_t per_token = chosen_groups == 0 ? groups : chosen_groups;
  if (moe.experts % groups != 0) {
    config.error_at(keys.groups, fmt::format("{} groups of {} experts cannot be equal", groups, moe.experts));
  } else if (per_token > groups) {
    config.error_at("topk_group", fmt::format("a token chooses {} of {} groups", per_token, groups));
  } else if (per_token * (moe.experts / groups) < moe.experts_per_token) {
    config.error_at("topk_group",
                    fmt::format("a token chooses {} of the groups, of {} experts each: fewer than its {} experts",
                                per_token, moe.experts / groups, moe.experts_per_token));
  } else {
    moe.groups = groups;
    moe.groups_per_token = per_token;
  }
}

// A token chooses among experts and idle ones alike, so that in the mean its experts are the share of those that
// compute (Meituan 2025, arXiv 2509.01322, section 2.1).
void spread_over_idle(ConfigMap& config, const ExpertKeys& keys, Experts& found, MixtureOfExperts& moe) {
  const std::int64_t idle = keys.idle.empty() ? 0 : config.whole(keys.idle, experts);
  if (idle == 0) return;
  const std::int64_t chosen = moe.experts_per_token;
  moe.experts_per_token = std::max<std::int64_t>(1, chosen * moe.experts / (moe.experts + idle));
  found.left_out = fmt::format(
      "{} experts that compute nothing ('{}'): of the {} experts that a token chooses, the mean of {} compute", idle,
      keys.idle, chosen, moe.experts_per_token);
}

}  // namespace

Experts read_experts(ConfigMap& config, const ExpertKeys& keys, std::int64_t count, std::int64_t ffn) {
  Experts found;
  MixtureOfExperts moe;
  found.dense_hidden = keys.dense_hidden.empty() ? ffn : config.number_or(keys.dense_hidden, width, ffn);
  moe.experts = config.map().required_in<std::int64_t>(keys.experts, {0, experts.most}).value_or(0);
  moe.expert_hidden = keys.hidden.empty() ? ffn : config.number({keys.hidden}, width);
  moe.shared_hidden = shared_width(config, keys, moe.expert_hidden);
  if (moe.experts < keys.least) {
    if (keys.shared_is_mlp && moe.shared_hidden > 0) found.dense_hidden = moe.shared_hidden;
    found.layers.assign(static_cast<std::size_t>(count), false);
    return found;
  }
  moe.experts_per_token = config.number({keys.per_token}, chosen);
  moe.shared_gate = keys.shared_gate && moe.shared_hidden > 0;
  moe.biases = keys.biases;
  moe.latent = keys.latent.empty() ? 0 : config.whole(keys.latent, hidden);
  if (moe.experts_per_token > moe.experts) {
    config.error_at(keys.per_token,
                    fmt::format("{} experts a token, but the model has {}", moe.experts_per_token, moe.experts),
                    fmt::format("'{}' must be at most '{}'", keys.per_token, keys.experts));
  }
  spread_over_idle(config, keys, found, moe);
  read_groups(config, keys, moe);
  found.moe = moe;
  found.layers = layers_with(config, keys, count);
  return found;
}

}  // namespace hdpsim
