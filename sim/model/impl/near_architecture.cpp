#include "sim/model/impl/near_architecture.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

namespace hdpsim {
namespace {

using Keys = std::set<std::string_view>;

// Keys of all families.
constexpr std::array<std::string_view, 15> common_keys = {"layer_types",
                                                          "layers_block_type",
                                                          "num_mtp_modules",
                                                          "mtp_transformer_layers",
                                                          "mtp_num_hidden_layers",
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
constexpr std::array<std::string_view, 27> shape_words = {
    "conv",  "dim",   "embd",     "expand", "expert", "experts", "ffn",    "freq",  "head",
    "heads", "inner", "interval", "kv",     "latent", "layer",   "layers", "mamba", "mlp",
    "model", "moe",   "rank",     "period", "size",   "ssm",     "topk",   "width", "window"};

// The words of keys that describe a shape by a map, or by a list of maps.
constexpr std::array<std::string_view, 5> map_words = {"attention", "attn", "block", "blocks", "text"};

// Keys with such words that do not change what a model costs, or repeat what another key says.
constexpr std::array<std::string_view, 14> saying_nothing = {"qk_head_dim",
                                                             "time_step_rank",
                                                             "ep_size",
                                                             "rotary_dim",
                                                             "model_max_length",
                                                             "layer_switch",
                                                             "_sliding_window_pattern",
                                                             "sliding_window_size",
                                                             "experts_per_token",
                                                             "expand",
                                                             "mamba_expand",
                                                             "num_hidden_layers",
                                                             "moe_train_capacity_factor",
                                                             "dim_model_base"};

template <class Names = std::initializer_list<std::string_view>>
void add(Keys& keys, const Names& names) {
  for (const std::string_view name : names) {
    if (!name.empty()) keys.insert(name);
  }
}

Keys keys_of(const Architecture& family) {
  Keys keys(common_keys.begin(), common_keys.end());
  add(keys, family.widths.names());
  add(keys, {family.maps[0], family.maps[1]});
  add(keys, family.window_heads.names());
  add(keys, {family.sinks.key, family.neglected.key});
  add(keys, {family.silent, family.biases.key, family.qkv_biases.key, family.qk_norm.key, family.gated_output.key});
  const MixerKeys& mixers = family.mixers;
  add(keys, {mixers.period, mixers.offset_key, mixers.list, mixers.full_layers, mixers.letters, mixers.module_letters,
             mixers.window_switch, mixers.first_window});
  if (family.widths.ffn_block > 0) add(keys, {"block_dim", "block_multiple_of", "block_ffn_dim_multiplier"});
  if (!mixers.letters.empty()) add(keys, {"mtp_layers_block_type"});
  if (mixers.others == Mixer::window) add(keys, {mixers.window});
  if (mixers.others == Mixer::chunk) add(keys, {"attention_chunk_size"});
  if (family.chooses_keys) {
    add(keys, {"index_topk", "index_n_heads", "index_head_dim", "indexer_types", "index_topk_freq",
               "index_skip_topk_offset", "index_topk_pattern"});
  }
  const LinearKeys& linear = family.linear;
  add(keys, {linear.heads, linear.key_heads, linear.key_dim, linear.value_dim, linear.taps, linear.expand,
             linear.step_rank, linear.chunk, linear.biases});
  if (family.experts == nullptr) return keys;
  add(keys, {"mlp_only_layers", "mlp_layer_types"});
  add(keys, family.experts->names());
  return keys;
}

bool is_whole_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

template <class Words>
bool has_word_of(const Words& words, std::string_view key) {
  for (std::size_t begin = 0; begin <= key.size();) {
    const std::size_t end = std::min(key.find('_', begin), key.size());
    const std::string_view word = key.substr(begin, end - begin);
    if (std::find(words.begin(), words.end(), word) != words.end()) return true;
    begin = end + 1;
  }
  return false;
}

bool has_map(const Value& value) {
  return value.is_map() || (value.is_sequence() && !value.items.empty() && value.items.front().is_map());
}

bool describes_shape(const Value::Entry& entry) {
  if (std::find(saying_nothing.begin(), saying_nothing.end(), entry.key) != saying_nothing.end()) return false;
  if (!says_something(entry.value)) return false;
  const bool is_number = entry.value.is_scalar() && is_whole_number(entry.value.text);
  if ((is_number || !entry.value.is_scalar()) && has_word_of(shape_words, entry.key)) return true;
  return has_map(entry.value) && has_word_of(map_words, entry.key);
}

}  // namespace

const Value* language_model(const Architecture& family, const Value& config) {
  const Value* inside = family.inside.empty() ? nullptr : config.find(family.inside);
  return inside == nullptr && (family.inside.empty() || family.may_be_outside) ? &config : inside;
}

bool says_something(const Value& value) {
  if (value.is_sequence()) return !value.items.empty();
  if (value.is_map()) return !value.entries.empty();
  return value.is_scalar() && value.text != "0" && value.text != "false";
}

bool reads_key(const Architecture& family, std::string_view key) {
  return keys_of(family).contains(key);
}

namespace {

// A gate of attention's output and layers of linear mixing are no default of a file that says nothing of them.
bool assumes_parts(const Architecture& family, const Value& model) {
  const LinearKeys& linear = family.linear;
  const auto says = [&](std::string_view key) { return !key.empty() && model.find(key) != nullptr; };
  const bool has_linear = says(linear.heads) || says(linear.key_dim) || says(linear.taps);
  return (family.gated_output.usual && !says(family.gated_output.key)) ||
         (linear.kind != LinearKind::none && linear.kind != LinearKind::lightning && !has_linear);
}

}  // namespace

bool takes_widths_as_stated(const Architecture& family, const Value& config) {
  const WidthKeys& widths = family.widths;
  const Value* model = language_model(family, config);
  if (model == nullptr || assumes_parts(family, *model)) return false;
  const auto takes_default = [&](const Key& key) { return key.fallback > 0 && model->find(key.name) == nullptr; };
  return widths.ffn_block == 0 && widths.ffn_matrices == 1 && !takes_default(widths.heads) &&
         !takes_default(widths.kv_heads) && !takes_default(widths.head_dim) && !takes_default(widths.vocabulary);
}

Resemblance resemblance(const Architecture& family, const Value& config) {
  Resemblance found{&family, 0, {}};
  const Value* model = language_model(family, config);
  if (model == nullptr || !model->is_map()) return found;
  Keys known = keys_of(family);
  if (model->find("layer_types") != nullptr) add(known, {family.mixers.window});
  for (const Value::Entry& entry : model->entries) {
    if (known.contains(entry.key)) {
      ++found.read;
    } else if (describes_shape(entry)) {
      found.unread.push_back(entry.key);
    }
  }
  return found;
}

std::vector<Resemblance> by_resemblance(const Value& config) {
  std::vector<Resemblance> all;
  for (const Architecture& family : architectures()) all.push_back(resemblance(family, config));
  const auto score = [](const Resemblance& one) {
    return static_cast<std::ptrdiff_t>(one.read) - std::ssize(one.unread);
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Resemblance& a, const Resemblance& b) { return score(a) > score(b); });
  return all;
}

}  // namespace hdpsim
