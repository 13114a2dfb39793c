#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/model/transformer.h"

namespace hdpsim {

/// The number of kinds of layers.
[[nodiscard]] std::size_t layer_kinds(const Transformer& model);
/// The model with all of its layers of one kind.
[[nodiscard]] Transformer of_kind(const Transformer& model, std::size_t kind);
/// The model with all of its layers of the first kind that has attention, or of kind 0 if none has.
[[nodiscard]] Transformer of_attention(const Transformer& model);
/// The model with layers of each kind alone, by kind.
[[nodiscard]] std::vector<Transformer> of_each_kind(const Transformer& model);

/// How many of layers first ... first + count - 1 are of each kind that occurs among them: at most one run a kind. The
/// kind of the last layer comes last, that of the last layer of another kind before it, and so on.
[[nodiscard]] std::vector<LayerRun> layer_runs(const Transformer& model, std::int64_t first, std::int64_t count);
/// The same for all layers.
[[nodiscard]] std::vector<LayerRun> layer_runs(const Transformer& model);
/// Adds layers behind those of `runs`, which are in this order.
void add_last(std::vector<LayerRun>& runs, const LayerRun& run);
/// The number of layers of some runs.
[[nodiscard]] std::int64_t layer_count(const std::vector<LayerRun>& runs);

/// Gives the kernel of every layer with plain attention keys and values for each head of queries.
void repeat_keys(Transformer& model);

/// The layers, first to last, as kinds and pattern of a model whose Layer becomes one of those with experts if any has,
/// and of these, and otherwise of all, one with attention to all tokens if any has it. Requires a layer (checked).
void set_layers(Transformer& model, const std::vector<Layer>& layers);

/// A text of all that decides what a model computes and what its parameters are, whatever its name: equal for models
/// of one shape, and different for others. The bytes of an element are those of a profile, and not in it.
[[nodiscard]] std::string shape_text(const Transformer& model);

/// Lets no query choose more than `tokens` keys, those of the longest sequence.
void bound_choices(Transformer& model, std::int64_t tokens);

/// Something that tensor parallelism cuts into equal parts.
struct CutPart {
  std::string_view what;  ///< For people: "heads".
  std::int64_t count = 0;
};
/// All of these, over all kinds of layers. Experts are cut unless expert groups hold them whole.
[[nodiscard]] std::vector<CutPart> cut_parts(const Transformer& model, bool cuts_experts);

[[nodiscard]] inline bool has_experts(const Layer& layer) {
  return layer.moe.has_value();
}
[[nodiscard]] inline bool has_mlp(const Layer& layer) {
  return layer.ffn_hidden > 0 || layer.moe.has_value();
}
[[nodiscard]] inline bool mixes_tokens(const Layer& layer) {
  return layer.heads > 0 || layer.linear.has_value();
}
/// The number of these layers that have experts.
[[nodiscard]] std::int64_t expert_layers(const Transformer& model, const std::vector<LayerRun>& runs);

}  // namespace hdpsim
