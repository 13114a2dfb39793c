#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "sim/model/experts.h"
#include "sim/model/layer_operations.h"
#include "sim/program/instruction.h"

namespace hdpsim {

/// A layer with experts on one HDP rank in one micro-batch.
struct ExpertLayer {
  const Transformer& model;
  const LayerOperations& operations;
  const ExpertLayout& layout;
  std::int64_t tp = 1;
  std::int64_t tokens = 0;  ///< Tokens of the HDP rank. 0: its devices only compute their experts for other ranks.
  ExpertTokens group;       ///< Tokens of the expert group.
  Gradients gradients = Gradients::all;  ///< Those that backward computes.
};

/// Experts that a group computes for all its ranks, between the all-to-all that brings copies of tokens and the one
/// that returns the results.
struct ExchangedExperts {
  TensorParallelCollective to_experts;
  TensorParallelCollective back;
  LinearPart even;  ///< With the copies spread evenly over the devices.
  std::optional<ExpertWait> wait{};
  bool once_per_node = false;  ///< Tokens travel once to each node.
  /// Where devices cut experts: behind the first all-to-all and before the second.
  std::optional<TensorParallelCollective> gathered{};
  std::optional<TensorParallelCollective> reduced{};
};

using ExpertStep = std::variant<LinearPart, TensorParallelCollective, ExpertWait, ExchangedExperts>;

/// The steps, in order, that replace a dense MLP between its norm and its residual. Forward, with expert groups:
///
///     shared experts (all-gather and reduce-scatter like a dense MLP) | router | permutation of copies |
///     all-to-all | experts, and the wait for the fullest device | all-to-all | sum of copies
///
/// and where devices cut experts between them, an all-gather of copies before the experts and a reduce-scatter of
/// results behind them.
///
/// With compression, clustering follows the permutation, and restoring the second all-to-all (expert_compression.h).
///
/// Where tokens travel once to each node (ExpertDispatch::per_node), those who send copy none and sum none. Without
/// expert groups, tokens are all-gathered before they are copied, and partial sums are reduce-scattered after the
/// experts. Backward runs the same steps in reverse order, with gradients in place of hidden states. Bytes are
/// those of the model's elements.
[[nodiscard]] std::vector<ExpertStep> expert_layer(const ExpertLayer& layer, Direction direction);

/// The steps that recompute only the activations of a layer's experts: forward, without communication.
[[nodiscard]] std::vector<ExpertStep> expert_activations(const ExpertLayer& layer);

}  // namespace hdpsim
