#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/recompute.h"
#include "sim/model/transformer.h"

namespace hdpsim {

/// Consecutive layers of one kind.
struct LayerRun {
  std::int64_t count = 0;
  bool has_experts = false;
};
/// Layers first ... first + count - 1 of a model, in their order; one run of a model without experts.
[[nodiscard]] std::vector<LayerRun> layer_runs(const Transformer& model, std::int64_t first, std::int64_t count);
/// The number of these layers that have experts.
[[nodiscard]] std::int64_t expert_layers(const Transformer& model, std::int64_t first, std::int64_t count);
/// The model with all of its layers replaced by layers with a dense MLP.
[[nodiscard]] Transformer with_dense_layers(const Transformer& model);

/// Parameters of the whole model / of one layer (one with experts, if any has them) / of layers first ... first + count
/// - 1 / of the embedding and output matrices together.
[[nodiscard]] std::int64_t parameter_count(const Transformer& model);
[[nodiscard]] std::int64_t layer_parameter_count(const Transformer& model);
[[nodiscard]] std::int64_t parameters_of_layers(const Transformer& model, std::int64_t first, std::int64_t count);
[[nodiscard]] std::int64_t embedding_parameter_count(const Transformer& model);

/// Parameters of one expert / of all experts of one layer, without the shared experts that every token takes.
[[nodiscard]] std::int64_t expert_parameter_count(const Transformer& model);
[[nodiscard]] std::int64_t expert_layer_parameter_count(const Transformer& model);

/// Products of the MLP's weights: gate, up and down, or up and down.
[[nodiscard]] std::int64_t mlp_matrices(const Transformer& model);

/// FLOPs of all linear work of the whole model for a number of tokens, forward and backward: 6 per parameter and token,
/// with the output head and without the embedding lookup. Of a mixture's experts only those count that a token takes.
[[nodiscard]] Flops training_linear_flops(const Transformer& model, std::int64_t tokens);
/// The share of a layer's forward products, in FLOPs, that backward recomputes. Only the experts that a token takes
/// count.
[[nodiscard]] double linear_share_again(const Transformer& model, Recompute recompute);

}  // namespace hdpsim
