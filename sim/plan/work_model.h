#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/id.h"

namespace hdpsim {

/// (query, key) pairs under the causal mask of a sequence: s (s + 1) / 2.
[[nodiscard]] inline double causal_pairs(std::int64_t tokens) {
  const auto count = static_cast<double>(tokens);
  return count * (count + 1) / 2;
}

/// Of a ring whose ranks share a node, the hops: seconds per token and hop, and fixed ones.
struct RingHops {
  double per_token = 0;
  double per_step = 0;
};

/// The planner's view of cost: seconds of one micro-batch, forward and backward over all layers of a mean stage, on
/// every rank of its group. ByteScale's T(s) = a1 s^2 + b1 s + g per rank (eq. 3), with the ring's transfer time as a
/// floor under the attention, and what fragments cost beyond that: the steps of a ring have smaller blocks than a
/// sequence on one rank. The engine reads the coefficients off micro-batches that it prices
/// (sim/engine/work_probes.h).
struct WorkModel {
  double per_area = 0;         ///< Seconds per (query, key) pair of a rank.
  double per_token = 0;        ///< Seconds of all other work per token of a rank.
  double per_micro_batch = 0;  ///< Fixed seconds.
  double per_ring_token = 0;   ///< Seconds to pass the keys and values of one token over one hop, forward and backward.
  double per_ring_step = 0;    ///< Fixed seconds of one hop (latency), forward and backward.
  double offload_per_token = 0;  ///< Seconds to copy one token (all layers) to the host; 0: no host copies.
  double copied_whole = 0;       ///< Share of those copies that are layers' inputs and attention's outputs.
  /// Seconds to compute one token's other activations again (all layers); nothing where that is not done token by
  /// token: of layers with experts.
  std::optional<double> again_per_token = {};
  double fetch_per_token = 0;  ///< Seconds to copy one token (all layers) back from the host.
  double least = 0;  ///< A micro-batch takes no less, however few its tokens: as when it waits for parameters.
  // What attention to another rank's keys takes ...
  double step_area = 0;   ///< ... beyond `per_area`, per pair; less than nothing where it is faster,
  double step_token = 0;  ///< ... per token of a rank and step,
  double step_fixed = 0;  ///< ... and per step.
  double ring_end = 0;    ///< Hops' times that a ring has behind its last step: gradients on their way home.
  /// The parts of the work per token and per pair that are the forward pass. Where nothing is computed again, backward
  /// is two products for every one of linear work, and five for two of attention.
  double forward_of_tokens = 1.0 / 3;
  double forward_of_area = 2.0 / 7;
  std::int64_t ranks_per_node = 1;        ///< Consecutive ranks that share a node.
  std::optional<RingHops> within_node{};  ///< Nothing: as any other ring.

  /// `area` and `tokens` are those of the whole group, which has `degree` ranks; `near`: that share a node.
  [[nodiscard]] double seconds(double area, std::int64_t tokens, std::int64_t degree, bool near = false) const;
  /// Attention of each rank of a group, without the tokens' share of `per_token`.
  [[nodiscard]] double attention(double area, std::int64_t tokens, std::int64_t degree) const;
  /// Of the keys and values that come to a rank, beside its attention.
  [[nodiscard]] double transfer(std::int64_t tokens, std::int64_t degree, bool near = false) const;
  /// Whether the ranks of a group share a node.
  [[nodiscard]] bool near(const std::vector<HdpRank>& group) const;
  /// Compute of a micro-batch on one rank alone, without its fixed time.
  [[nodiscard]] double compute_seconds(double area, std::int64_t tokens) const {
    return per_token * static_cast<double>(tokens) + per_area * area;
  }
  /// The part of it that is the forward pass. Activations must reach the host within it to cost nothing.
  [[nodiscard]] double forward_seconds(double area, std::int64_t tokens) const;
  /// What a rank with so much to do waits for copies of this share of its activations: those of a layer leave beside
  /// the forward of the next, and come back beside its backward. `area` and `tokens` are the rank's.
  [[nodiscard]] double copy_wait(double area, double tokens, double share) const;
};

}  // namespace hdpsim
