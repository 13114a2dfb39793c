#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/quantity_limits.h"
#include "sim/import/impl/megatron_arguments.h"
#include "sim/import/training_run.h"
#include "sim/model/model_ranges.h"

namespace hdpsim {

/// The ranges of arguments.
namespace megatron_ranges {

using namespace model_ranges;

/// None, too, where there need be no experts.
inline constexpr Range experts_range{0, model_ranges::experts.most};
inline constexpr Range tokens = positions;
inline constexpr Range modules{0, 100};  ///< That predict further tokens.
// ---- The mesh and the batch of a run
inline constexpr Range degree{1, 65536};
inline constexpr Range buckets{1, 1e12};
inline constexpr Range gpus{1, limits::most_devices};
inline constexpr Range sequences{1, 1e6};

}  // namespace megatron_ranges

/// The numbers of a Python list such as `[0]*3+[1]*58` or `([1]*3+[0])*12`, by which Megatron-LM says which layers have
/// experts or windows. Empty if the text is something else, or has more than `most` numbers.
[[nodiscard]] std::optional<std::vector<std::int64_t>> layer_list(std::string_view text, std::size_t most);

/// The letters that a layer can have, for people.
inline constexpr std::string_view hybrid_letters_known = "M (Mamba), * (attention), - (MLP), E (experts)";

/// Whether the arguments describe a hybrid model.
[[nodiscard]] bool is_hybrid(const MegatronArguments& arguments);

/// The layers of a hybrid model, a letter each: M Mamba-2, * attention, - MLP, E experts. They are those of a pattern
/// (--hybrid-layer-pattern, or its older name), or `count` that ratios of attention and MLPs make of, dealt as
/// Megatron-LM deals them (hybrid_layer_allocation.py, pattern_from_ratios). Other letters are for the reader of the
/// model to report.
[[nodiscard]] std::string hybrid_letters(const MegatronArguments& arguments, std::int64_t count);
/// The argument that states them: of a pattern, or of the ratio of attention.
[[nodiscard]] std::string_view hybrid_argument(const MegatronArguments& arguments);
/// Whether they state their number, too, so that --num-layers may be missing.
[[nodiscard]] bool states_layers(const MegatronArguments& arguments);
/// The parts into which bars cut the layers: all chunks of all stages. 1 without bars.
[[nodiscard]] std::int64_t hybrid_segments(const MegatronArguments& arguments);

/// Adds to a configuration of NemotronHForCausalLM the letters of its layers, and what arguments say of state spaces,
/// of experts and of the layers that predict further tokens. `ffn` is the inner width of an expert that none states.
/// Ratios that are wrong are reported.
void set_hybrid_layers(const MegatronArguments& arguments, const std::string& letters, std::int64_t hidden_size,
                       std::int64_t ffn, Value& config);

/// What --experimental-attention-variant puts in place of attention to all tokens.
enum class AttentionVariant : std::uint8_t {
  none,
  indexer,     ///< dsa: an indexer chooses the keys of queries.
  delta_nets,  ///< gdn, gated_delta_net: some layers are gated delta nets.
  other,
};
[[nodiscard]] AttentionVariant attention_variant(const MegatronArguments& arguments);

/// Adds the indexer to a configuration of DeepseekV32ForCausalLM. Arguments that are missing are reported.
void set_indexer(const MegatronArguments& arguments, Value& config);

/// Adds gated delta nets, and which layers they are (`linear`), to a configuration of Qwen3NextForCausalLM or
/// Qwen3_5ForCausalLM.
void set_delta_nets(const MegatronArguments& arguments, const std::vector<bool>& linear, Value& config);

/// The widths of a model with the defaults and derived values of Megatron-LM. A required one that is missing is 0.
struct MegatronWidths {
  std::int64_t layers = 0;
  std::optional<std::string> letters = {};  ///< Of a hybrid model's layers: hybrid_letters().
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;
  bool is_gated = false;        ///< The MLP has a gate.
  std::int64_t vocabulary = 0;  ///< Padded.
};

/// Reported are arguments that are missing or wrong. `tp` decides how the vocabulary is padded; `entries` are those of
/// the tokenizer, where the user states them.
[[nodiscard]] MegatronWidths megatron_widths(const MegatronArguments& arguments, std::int64_t tp,
                                             std::optional<std::int64_t> entries);

/// The HuggingFace configuration of the model that the arguments describe, with the defaults and derived values of
/// Megatron-LM (megatron/training/arguments.py, validate_args), in a family that says what they say. Values have
/// the positions of their arguments. Reported are arguments that are missing or wrong, and what no family says.
/// `tp` decides how the vocabulary is padded; `entries` are those of the tokenizer, where the user states them.
[[nodiscard]] Value megatron_model(const MegatronArguments& arguments, std::int64_t tp,
                                   std::optional<std::int64_t> entries);

/// Whether they describe a model with experts.
[[nodiscard]] bool has_experts(const MegatronArguments& arguments);

/// What of a model decides how it is trained.
struct TrainedLayers {
  bool has_experts = false;
  std::int64_t layers_of_stage = 0;  ///< Of a chunk of a stage.
};

/// How a run of Megatron-LM trains: states, gradients and their exchange, tensor parallelism, kernels, recomputation,
/// as `mesh`, `kernels` and `memory` of a study. `run` has its degrees and devices. Problems and what a study cannot
/// say go to the diagnostics and notes of the arguments.
void read_megatron_recipe(const MegatronArguments& arguments, const TrainedLayers& model, TrainingRun& run);

}  // namespace hdpsim
