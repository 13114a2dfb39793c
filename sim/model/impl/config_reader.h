#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/reader.h"
#include "sim/model/impl/architecture.h"
#include "sim/model/model_ranges.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// A map of a configuration, with whole numbers read within their ranges.
class ConfigMap {
 public:
  explicit ConfigMap(MapReader& map) : map_(map) {}

  /// The number of a key, which may be a list of that number for every layer; 0 if it is missing and has no fallback,
  /// which is reported once.
  std::int64_t number(const Key& key, Range range);
  /// The fallback also stands for the word `auto`.
  std::int64_t number_or(std::string_view key, Range range, std::int64_t fallback);
  /// A whole number that may be 0, and is where it is missing.
  std::int64_t whole(std::string_view key, Range range) { return number_or(key, {0, range.most}, 0); }
  bool truth(const Trait& trait);
  /// The items of a list; none if it is missing. What is no list is reported once, ...
  const std::vector<Value>& list(std::string_view key);
  /// ... or may be something else.
  const std::vector<Value>& list_if_there(std::string_view key);
  void error_at(std::string_view key, std::string message, std::string help = {});
  MapReader& map() { return map_; }

 private:
  std::optional<std::int64_t> of_all_layers(std::string_view key, Range range);
  bool is_auto(std::string_view key);
  bool is_told_missing(std::string_view key);

  MapReader& map_;
  std::set<std::string, std::less<>> told_;  ///< Keys of which a problem has been reported.
};

/// Which layers have an MLP, and which experts, where each layer has one branch (MixerKeys::letters).
struct Branches {
  std::vector<bool> mlp;
  std::vector<bool> experts;
};
/// How each of a model's layers mixes tokens.
struct LayerPattern {
  std::vector<Mixer> mixers;  ///< One a layer, or fewer if there are problems, which are reported ...
  std::int64_t window = 0;    ///< The window of layers that have one.
  std::optional<Branches> branches = {};
  std::int64_t module = 0;  ///< So many more mixers and branches are of the layers that predict a further token.
};
/// A list of a word a layer, in place of letters.
inline constexpr std::string_view layer_words = "layers_block_type";
[[nodiscard]] LayerPattern read_pattern(ConfigMap& config, const MixerKeys& keys, std::int64_t layers);

/// How layers behind the last one mix tokens, as far as `layer_types` goes on: at most `further` of them.
[[nodiscard]] std::vector<Mixer> listed_mixers(ConfigMap& config, std::int64_t layers, std::int64_t further);

/// The attention of layers with a window, which have heads of their own, beside that of all others.
[[nodiscard]] Layer read_window_heads(ConfigMap& config, const WindowHeads& keys, const Layer& others);

/// The experts of a model, and which of its layers have them.
struct Experts {
  std::optional<MixtureOfExperts> moe = {};  ///< Empty: the file says that there are none.
  std::vector<bool> layers;
  std::int64_t dense_hidden = 0;  ///< Inner width of the other layers' MLP.
  std::string left_out = {};      ///< See Transformer::left_out; empty: nothing.
};
[[nodiscard]] Experts read_experts(ConfigMap& config, const ExpertKeys& keys, std::int64_t count, std::int64_t ffn);

/// Whether a list says something of every layer; reported if it does not. A longer one counts as far as there are
/// layers, as where a study takes fewer layers of a model.
bool has_enough(ConfigMap& config, std::string_view key, std::size_t items, std::int64_t layers);

/// The indexers of layers that choose keys, one a layer; none where the model's queries see all keys.
[[nodiscard]] std::vector<KeyIndexer> read_indexers(ConfigMap& config, std::int64_t count);

[[nodiscard]] LinearMixing read_linear_mixing(ConfigMap& config, const LinearKeys& keys, const Transformer& model);

/// The transformer that a configuration of a known family describes. Problems are reported, and its members are then of
/// no use.
[[nodiscard]] Transformer read_configuration(MapReader& map, const Architecture& architecture);

}  // namespace hdpsim
