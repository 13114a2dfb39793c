#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/id.h"
#include "sim/model/mixing.h"

namespace hdpsim {

/// The cost of hops in a ring whose ranks share a node: seconds per token and hop, and fixed seconds per hop.
struct RingHops {
  double per_token = 0;
  double per_step = 0;
};

/// The planner's cost model: seconds of one micro-batch, forward and backward over all layers of a mean stage, on every
/// rank of its group. It is ByteScale's T(s) = a1 s^2 + b1 s + g per rank (eq. 3), with the ring's transfer time as a
/// lower bound of the attention, and with the cost of fragments: the steps of a ring have smaller blocks than a
/// sequence on one rank. The engine takes the coefficients from micro-batches that it prices
/// (sim/engine/work_probes.h).
struct WorkModel {
  double per_area = 0;         ///< Seconds per (query, key) pair of a rank.
  double per_token = 0;        ///< Seconds of all other work per token of a rank.
  double per_micro_batch = 0;  ///< Fixed seconds.
  double per_ring_token = 0;   ///< Seconds to pass the keys and values of one token over one hop, forward and backward.
  double per_ring_step = 0;    ///< Fixed seconds of one hop (latency), forward and backward.
  double offload_per_token = 0;  ///< Seconds to copy one token (all layers) to the host; 0: no host copies.
  double copied_whole = 0;       ///< Share of those copies that are inputs of layers and outputs of attention.
  /// Seconds to recompute one token's other activations (all layers). Empty where recomputation is not possible token
  /// by token: in layers with experts.
  std::optional<double> again_per_token = {};
  double fetch_per_token = 0;  ///< Seconds to copy one token (all layers) back from the host.
  /// Minimum seconds of a micro-batch, however few its tokens, as when it waits for parameters.
  double least = 0;
  // Attention to the keys of another rank takes ...
  double step_area = 0;   ///< ... beyond `per_area`, per pair; negative where it is faster,
  double step_token = 0;  ///< ... per token of a rank and step,
  double step_fixed = 0;  ///< ... and per step.
  double ring_end = 0;    ///< Hops of a ring after its last step, in which gradients return to their rank.
  /// The shares of the forward pass in the work per token and per pair. Without recompute, backward has two matrix
  /// products for each one of forward in linear work, and five for two in attention.
  double forward_of_tokens = 1.0 / 3;
  double forward_of_area = 2.0 / 7;
  std::int64_t ranks_per_node = 1;        ///< Consecutive ranks that share a node.
  std::optional<RingHops> within_node{};  ///< Empty: as any other ring.

  /// Seconds of a micro-batch. `area` and `tokens` are those of the whole group, which has `degree` ranks; `near`: they
  /// share a node.
  [[nodiscard]] double seconds(double area, std::int64_t tokens, std::int64_t degree, bool near = false) const;
  /// Seconds of attention of each rank of a group, without the tokens' share of `per_token`.
  [[nodiscard]] double attention(double area, std::int64_t tokens, std::int64_t degree) const;
  /// Seconds to transfer the keys and values that a rank receives, during its attention.
  [[nodiscard]] double transfer(std::int64_t tokens, std::int64_t degree, bool near = false) const;
  /// True if the ranks of a group share a node.
  [[nodiscard]] bool near(const std::vector<HdpRank>& group) const;
  /// Compute seconds of a micro-batch on a single rank, without its fixed time.
  [[nodiscard]] double compute_seconds(double area, std::int64_t tokens) const {
    return per_token * static_cast<double>(tokens) + per_area * area;
  }
  /// The forward part of compute_seconds(). Copies of activations to the host are free if they fit into it.
  [[nodiscard]] double forward_seconds(double area, std::int64_t tokens) const;
  /// Seconds that a rank waits for copies of the share `share` of its activations: those of a layer leave during the
  /// forward of the next layer, and return during that layer's backward. `area` and `tokens` are the rank's own.
  [[nodiscard]] double copy_wait(double area, double tokens, double share) const;
};

}  // namespace hdpsim
