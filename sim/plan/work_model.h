#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace hdpsim {

/// (query, key) pairs under the causal mask of a sequence: s (s + 1) / 2.
[[nodiscard]] inline double causal_pairs(std::int64_t tokens) {
  const auto count = static_cast<double>(tokens);
  return count * (count + 1) / 2;
}

/// The planner's view of cost: seconds of one micro-batch, forward and backward over all layers of a mean stage, on
/// every rank of its group. ByteScale's T(s) = a1 s^2 + b1 s + g per rank (eq. 3), with the ring's transfer time as a
/// floor under the attention. The coefficients come from the same cost and network models that the simulator uses.
struct WorkModel {
  double per_area = 0;         ///< Seconds per (query, key) pair of a rank.
  double per_token = 0;        ///< Seconds of linear work per token of a rank.
  double per_micro_batch = 0;  ///< Fixed seconds.
  double per_ring_token = 0;   ///< Seconds to pass the keys and values of one token over one hop, forward and backward.
  double per_ring_step = 0;    ///< Fixed seconds of one hop (latency), forward and backward.
  double offload_per_token = 0;  ///< Seconds to copy one token (all layers) to the host; 0: no host copies.
  double copied_whole = 0;       ///< Share of those copies that are layers' inputs and attention's outputs.
  /// Seconds to compute one token's other activations again (all layers); nothing where that is not done token by
  /// token: of layers with experts.
  std::optional<double> again_per_token = {};

  /// `area` and `tokens` are those of the whole group, which has `degree` ranks.
  [[nodiscard]] double seconds(double area, std::int64_t tokens, std::int64_t degree) const {
    const auto ranks = static_cast<double>(degree);
    const double tokens_per_rank = static_cast<double>(tokens) / ranks;
    const double compute = per_area * area / ranks;
    const double transfer = (ranks - 1) * (per_ring_step + per_ring_token * tokens_per_rank);
    return per_micro_batch + per_token * tokens_per_rank + std::max(compute, transfer);
  }

  /// Compute of a micro-batch on one rank alone, without its fixed time.
  [[nodiscard]] double compute_seconds(double area, std::int64_t tokens) const {
    return per_token * static_cast<double>(tokens) + per_area * area;
  }

  /// The part of the compute that is the forward pass: a third of linear work (backward is two products for every one)
  /// and two sevenths of attention (five for two). Activations must reach the host within it to cost nothing.
  [[nodiscard]] double forward_seconds(double area, std::int64_t tokens) const {
    return per_token * static_cast<double>(tokens) / 3 + per_area * area * 2 / 7;
  }
};

}  // namespace hdpsim
