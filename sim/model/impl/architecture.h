#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace hdpsim {

// What the configuration of a family of models means: under which keys it says what, and what none of its keys says. A
// family is a row of the table in architectures.cpp.

/// A key of a configuration, and its value where a file leaves it out; 0: it must be stated.
struct Key {
  std::string_view name;
  std::int64_t fallback = 0;
  std::string_view other_name = {};  ///< What some files call it.
};

/// The keys of a model's widths. Those without a name are not of the family.
struct WidthKeys {
  Key hidden{"hidden_size"};
  Key layers{"num_hidden_layers"};
  Key heads{"num_attention_heads"};
  Key kv_heads{"num_key_value_heads"};  ///< Left out: as many as query heads.
  Key head_dim{"head_dim"};             ///< Left out: the heads share the hidden size.
  std::string_view value_dim = {};      ///< Of heads without latents; empty or left out: as wide as keys.
  std::string_view query_latent = {};   ///< See Layer.
  Key ffn{"intermediate_size"};
  Key vocabulary{"vocab_size"};
  std::string_view positions = {};  ///< Rows of a learned position embedding.
  std::int64_t ffn_ratio = 0;       ///< The inner width, where it is left out, in hidden sizes; 0: it must be stated.
  std::string_view ffn_ratio_key = {};  ///< The key of that ratio, in place of `ffn`.
  /// `ffn` is the width of an MLP without a gate, of which a gated one has two thirds, times a factor, in whole blocks
  /// of so many columns, unless the file says otherwise (transformers, Lfm2MLP); 0: it is the width itself.
  std::int64_t ffn_block = 0;
  std::int64_t ffn_matrices = 1;  ///< `ffn` counts the columns of so many matrices: of gate and up projection.

  /// All of them; empty ones are none.
  [[nodiscard]] auto names() const {
    return std::to_array({hidden.name, layers.name, heads.name, kv_heads.name, head_dim.name, value_dim, query_latent,
                          ffn.name, ffn.other_name, vocabulary.name, positions, ffn_ratio_key, hidden.other_name,
                          layers.other_name, heads.other_name});
  }
};

/// How a family describes its experts, and which of its layers have them.
struct ExpertKeys {
  std::string_view experts = "num_experts";
  std::string_view per_token = "num_experts_per_tok";
  std::string_view hidden = {};         ///< Inner width of an expert; empty: that of the MLP.
  std::int64_t least = 1;               ///< Fewer experts than these are an MLP.
  std::string_view shared = {};         ///< The number of experts that every token takes, as wide as the others ...
  std::int64_t shared_always = 0;       ///< ... or that number itself ...
  std::string_view shared_hidden = {};  ///< ... or the inner width of all of them ...
  std::string_view shared_switch = {};  ///< ... which count where this is true ...
  std::string_view shared_again = {};   ///< ... beside which their number says nothing.
  std::string_view latent = {};         ///< See MixtureOfExperts.
  std::string_view groups = "n_group";  ///< See MixtureOfExperts.
  std::string_view idle = {};           ///< The number of experts that return what they read, beside `experts`.
  bool shared_gate = false;             ///< A gate scales their output.
  bool biases = false;                  ///< See MixtureOfExperts.
  bool shared_is_mlp = false;           ///< In a model without experts their inner width is that of its MLP.
  std::string_view dense_hidden = {};   ///< Inner width of the MLP of layers without experts, if not WidthKeys::ffn.
  std::string_view leading_dense = {};  ///< Number of layers without experts at the front.
  std::string_view listed = {};         ///< The layers that have experts, in one text: "4,5,6".
  std::string_view period = {};         ///< Layer i has experts if i - offset is a multiple; or a 0 or 1 a layer.
  std::int64_t usual_period = 1;        ///< The period where a file leaves it out.
  std::string_view offset_key = {};
  std::int64_t offset = 0;

  /// All of them; empty ones are none.
  [[nodiscard]] auto names() const {
    return std::to_array({experts, per_token, hidden, shared, shared_hidden, shared_switch, shared_again, latent,
                          groups, idle, dense_hidden, leading_dense, listed, period, offset_key});
  }
};

/// How the tokens of a layer see each other.
enum class Mixer : std::uint8_t { full, window, chunk, linear, none };

/// Which layers of a model mix tokens how. `layer_types` or `layers_block_type`, a list of words that newer files of
/// all families may have, goes before everything else; where a family has letters, its words stand for them. Otherwise
/// layers i for which i - offset is a multiple of the period are `full`, and the others are of the family's other kind.
/// In a model without a window, layers that might have one are full.
struct MixerKeys {
  Mixer others = Mixer::full;
  std::string_view period = {};   ///< A number; or letters of the layers of a period, L and G for local and full.
  std::int64_t usual_period = 0;  ///< The period if a file leaves it out; 0: only other rules make layers full.
  std::string_view offset_key = {};
  std::int64_t offset = -1;           ///< The last layer of each period is full.
  std::string_view list = {};         ///< A list of a number a layer, in place of the period ...
  std::int64_t full_number = 1;       ///< ... with the number of full layers ...
  std::string_view full_layers = {};  ///< ... or a list of the full layers.
  std::string_view letters = {};      ///< A letter a layer, each with one branch: M linear, * full, - MLP, E experts.
  std::string_view module_letters = {};  ///< The same of the layers that predict a further token.
  std::string_view window = "sliding_window";
  std::int64_t usual_window = 0;        ///< The window where a file leaves it out; 0: none.
  std::string_view window_switch = {};  ///< A key that turns windows off.
  bool window_off = false;              ///< Windows are off where a file leaves that out.
  std::string_view first_window = {};   ///< Key of the first layer that has a window.
  std::string_view own_word = {};       ///< A word in `layer_types` that only this family has, for its other kind.
  std::int64_t first_place = 0;         ///< The number that `full_layers` gives to the first layer.
};

enum class LinearKind : std::uint8_t { none, gated_delta, kimi_delta, lightning, mamba, mamba2, convolution };

/// The keys of linear mixing.
struct LinearKeys {
  LinearKind kind = LinearKind::none;
  std::string_view heads = {};
  std::string_view key_heads = {};
  std::string_view key_dim = {};
  std::string_view value_dim = {};
  std::string_view taps = {};
  std::string_view expand = {};     ///< Mamba: channels of all heads, in hidden sizes.
  std::string_view step_rank = {};  ///< Mamba-1.
  std::string_view chunk = {};
  std::int64_t usual_chunk = 0;  ///< What its kernels use, where the file says nothing.
  std::string_view biases = {};  ///< Of a convolution and the products around it: none where a file says nothing.
};

/// A property of all layers: what it is where a file says nothing, and the key that says it.
struct Trait {
  bool usual = false;
  std::string_view key = {};
  bool inverted = false;  ///< The key says the opposite.
};

/// Where layers with a window have heads of their own, the keys of these; what a file leaves out is as in other layers.
struct WindowHeads {
  std::string_view map = {};  ///< The key of the map that holds the keys; empty: they stand beside the others.
  std::string_view heads = {};
  std::string_view kv_heads = {};
  std::string_view head_dim = {};
  std::string_view value_dim = {};
  Trait sinks = {};

  /// All of them; empty ones are none.
  [[nodiscard]] auto names() const { return std::to_array({map, heads, kv_heads, head_dim, value_dim, sinks.key}); }
};

/// What a file says that a model has and that is too little to be simulated.
struct Neglected {
  std::string_view key = {};
  std::string_view what = {};
};

struct Architecture {     // NOLINT(clang-analyzer-optin.performance.Padding): a row states what belongs together
  std::string_view name;  ///< As `architectures` has it.
  WidthKeys widths = {};
  bool gated_mlp = true;
  Trait biases = {};  ///< See Layer for these.
  Trait qkv_biases = {};
  bool output_bias = false;  ///< There is one if there are QKV biases.
  Trait qk_norm = {};
  Trait gated_output = {};
  Trait sinks = {};
  WindowHeads window_heads = {};
  std::int64_t norms = 2;
  bool chooses_keys = false;    ///< An indexer may choose the keys of queries (`index_topk`).
  bool tied = false;            ///< Default for tied embeddings when the file does not say.
  bool may_be_outside = false;  ///< Older files have no map `inside`.
  /// A further token is predicted by layers behind the others, each of which the file's lists may describe: by default
  /// with the MLP of layers without experts, and of the family's other kind.
  bool lists_predicting = false;
  const ExpertKeys* experts = nullptr;
  MixerKeys mixers = {};
  LinearKeys linear = {};
  /// A layer of the file is so many of the model, one behind the other.
  std::int64_t parts = 1;
  Neglected neglected = {};
  std::string_view silent = {};  ///< A key that says nothing of a model's shape, or nothing else than others.
  std::string_view inside = {};  ///< The key of the map that describes the language model, beside a vision tower's.
  std::array<std::string_view, 2> maps = {};  ///< Keys of maps within it, whose keys count as its own.
  std::string_view note = {};                 ///< For the table of families: models that have it.
};

/// All known families.
[[nodiscard]] std::span<const Architecture> architectures();

}  // namespace hdpsim
