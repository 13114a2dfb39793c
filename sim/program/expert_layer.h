#pragma once

#include <variant>
#include <vector>

#include "sim/model/experts.h"
#include "sim/program/instruction.h"

namespace hdpsim {

/// A layer with experts on one HDP rank in one micro-batch.
struct ExpertLayer {
  const Transformer& model;
  const ExpertLayout& layout;
  std::int64_t tp = 1;
  std::int64_t tokens = 0;  ///< Of the HDP rank. 0: its devices compute their experts for other ranks alone.
  ExpertTokens group;       ///< Of the expert group.
};

using ExpertStep = std::variant<LinearPart, TensorParallelCollective, ExpertWait>;

/// What takes the place of a dense MLP between its norm and its residual, in order. Forward, with expert groups:
///
///     shared experts (gathered and scattered as a dense MLP) | router | copies in the order of experts |
///     all-to-all | experts, and the wait for the fullest device | all-to-all | sum of copies
///
/// Without groups tokens are gathered before they are copied, and partial sums are scattered behind the experts.
/// Backward is the same the other way round: gradients travel where hidden states did. Bytes are those of bf16
/// elements.
[[nodiscard]] std::vector<ExpertStep> expert_layer(const ExpertLayer& layer, Direction direction);

/// What computes its activations again, and nothing else of it: forward, without anything that travels.
[[nodiscard]] std::vector<ExpertStep> expert_activations(const ExpertLayer& layer);

}  // namespace hdpsim
