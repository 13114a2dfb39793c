#include "sim/model/impl/near_architecture.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace hdpsim {
namespace {

using Keys = std::set<std::string_view>;

// Keys of all families.
constexpr std::array<std::string_view, 11> common_keys = {"layer_types",
                                                          "tie_word_embeddings",
                                                          "kv_lora_rank",
                                                          "q_lora_rank",
                                                          "qk_rope_head_dim",
                                                          "qk_nope_head_dim",
                                                          "v_head_dim",
                                                          "head_dim",
                                                          "num_nextn_predict_layers",
                                                          "n_group",
                                                          "topk_group"};

// The words of keys that describe a shape.
constexpr std::array<std::string_view, 24> shape_words = {
    "conv", "dim",    "embd",  "expand", "expert", "experts", "ffn", "freq", "head",   "heads", "inner", "interval",
    "kv",   "latent", "layer", "layers", "mamba",  "model",   "moe", "rank", "period", "size",  "ssm",   "window"};

// Keys with such words that do not change what a model costs, or repeat what another key says.
constexpr std::array<std::string_view, 10> saying_nothing = {"ep_size",
                                                             "rotary_dim",
                                                             "model_max_length",
                                                             "layer_switch",
                                                             "_sliding_window_pattern",
                                                             "sliding_window_size",
                                                             "experts_per_token",
                                                             "expand",
                                                             "mamba_expand",
                                                             "num_hidden_layers"};

void add(Keys& keys, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (!name.empty()) keys.insert(name);
  }
}

Keys keys_of(const Architecture& family) {
  Keys keys(common_keys.begin(), common_keys.end());
  const WidthKeys& widths = family.widths;
  add(keys, {widths.hidden.name, widths.layers.name, widths.heads.name, widths.kv_heads.name, widths.head_dim.name,
             widths.ffn.name, widths.vocabulary.name, widths.positions, widths.ffn_ratio_key});
  add(keys, {family.biases.key, family.qkv_biases.key, family.qk_norm.key});
  const MixerKeys& mixers = family.mixers;
  add(keys, {mixers.period, mixers.offset_key, mixers.list, mixers.letters, mixers.window_switch, mixers.first_window});
  if (mixers.others == Mixer::window) add(keys, {mixers.window});
  if (mixers.others == Mixer::chunk) add(keys, {"attention_chunk_size"});
  const LinearKeys& linear = family.linear;
  add(keys, {linear.heads, linear.key_heads, linear.key_dim, linear.value_dim, linear.taps, linear.expand,
             linear.step_rank, linear.chunk});
  if (family.experts == nullptr) return keys;
  const ExpertKeys& experts = *family.experts;
  add(keys, {"mlp_only_layers", experts.experts, experts.per_token, experts.hidden, experts.shared,
             experts.shared_hidden, experts.dense_hidden, experts.leading_dense, experts.period, experts.offset_key});
  return keys;
}

bool is_whole_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool has_shape_word(std::string_view key) {
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('_', begin), key.size());
    const std::string_view word = key.substr(begin, end - begin);
    if (std::find(shape_words.begin(), shape_words.end(), word) != shape_words.end()) return true;
    begin = end + 1;
  }
  return false;
}

bool describes_shape(const Value::Entry& entry) {
  if (std::find(saying_nothing.begin(), saying_nothing.end(), entry.key) != saying_nothing.end()) return false;
  return (entry.value.is_sequence() || is_whole_number(entry.value.text)) && has_shape_word(entry.key);
}

// The map of the language model.
const Value* language_model(const Architecture& family, const Value& config) {
  return family.inside.empty() ? &config : config.find(std::string(family.inside));
}

}  // namespace

Resemblance resemblance(const Architecture& family, const Value& config) {
  Resemblance found{&family, 0, {}};
  const Value* model = language_model(family, config);
  if (model == nullptr || !model->is_map()) return found;
  const Keys known = keys_of(family);
  for (const Value::Entry& entry : model->entries) {
    if (known.contains(entry.key)) {
      ++found.read;
    } else if (describes_shape(entry)) {
      found.unread.push_back(entry.key);
    }
  }
  return found;
}

Resemblance nearest_family(const Value& config) {
  Resemblance nearest;
  const auto score = [](const Resemblance& one) {
    return static_cast<std::ptrdiff_t>(one.read) - std::ssize(one.unread);
  };
  for (const Architecture& family : architectures()) {
    Resemblance found = resemblance(family, config);
    if (nearest.family == nullptr || score(found) > score(nearest)) nearest = std::move(found);
  }
  return nearest;
}

}  // namespace hdpsim
