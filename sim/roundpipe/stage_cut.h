#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hdpsim {

/// A layer of a model whose weights are streamed from the host; embedding and head count as layers, too. Times are of
/// one micro-batch.
struct StreamedLayer {
  double forward = 0;         ///< Seconds.
  double backward = 0;        ///< Seconds, with the forward pass that is computed again.
  double bytes = 0;           ///< Of its weights.
  double gradient_bytes = 0;  ///< Of its trained part.
};

/// Layers first ... first + count - 1.
struct StageLayers {
  std::int64_t first = 0;
  std::int64_t count = 0;
  [[nodiscard]] std::int64_t end() const { return first + count; }
  friend bool operator==(const StageLayers&, const StageLayers&) = default;
};

/// How a model is cut for a pipeline whose stages belong to no device. Forward and backward are cut apart, since a
/// layer takes about three times as long backward. The forward pass of the deepest layers is the recomputation of their
/// backward pass: they are one stage.
struct StageCut {
  std::vector<StageLayers> forward;   ///< In the order in which they run, ...
  StageLayers fused;                  ///< ... then these, forward and backward, ...
  std::vector<StageLayers> backward;  ///< ... then these, deepest first.
  double longest = 0;                 ///< Seconds that no stage exceeds, for which it was cut.

  [[nodiscard]] std::int64_t stages() const { return std::ssize(forward) + 1 + std::ssize(backward); }
};

/// The cut of RoundPipe (its section 4.4, as its scheduler has it): for the longest stage T, all sums of consecutive
/// layers' forward or backward times from the largest layer's time w to 1.1 w are tried in rising order. The last
/// layers are fused as long as their backward times are at most T; the others are packed forward from the deepest to
/// the first and backward from the first to the deepest. Taken is the first T of the least max(stages, gpus) x T.
///
/// Weights of a stage, backward with its gradients, are at most 0.3 of `device_memory` (bytes), because those of the
/// next stage are there, too, and more is left for activations; or one layer, if that is larger. Requires a layer and a
/// GPU (checked). O(sums within these bounds x layers + layers^2).
[[nodiscard]] StageCut stage_cut(std::span<const StreamedLayer> layers, std::int64_t gpus, double device_memory);

}  // namespace hdpsim
