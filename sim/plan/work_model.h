#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/id.h"
#include "sim/model/key_exchange.h"
#include "sim/model/mixing.h"

namespace hdpsim {

/// The cost of a hop in a ring: seconds per token of a rank, and fixed seconds. As a share: of those of another hop.
struct RingHops {
  double per_token = 0;
  double per_step = 0;
};

/// Seconds of attention of one rank in one step of a ring, over all layers: those of a block of the ring's area, which
/// is the area of the whole group over the square of its ranks, and of the rank's tokens.
struct StepCost {
  double per_area = 0;
  double per_token = 0;
  double fixed = 0;
  [[nodiscard]] double at(double block_area, double tokens_per_rank) const {
    return per_area * block_area + per_token * tokens_per_rank + fixed;
  }
};

/// A ring's attention in one direction, over all layers. A rank of N computes with its own keys and values while the
/// first exchange brings those of a neighbour, then with the keys and values of N - 1 others, each time overlapped with
/// the next exchange. Every exchange hides behind one step, so that the slower of the two counts, step by step. All
/// steps but the first and the last are alike. Exchanges are stated as shares of a hop of WorkModel.
struct RingPass {
  StepCost own{};
  StepCost step{};
  StepCost last_step{};
  RingHops first{};        ///< The exchange that overlaps with `own`,
  RingHops between{};      ///< each exchange that overlaps with `step`,
  RingHops beside_last{};  ///< the exchange that overlaps with `last_step` and brings gradients back,
  RingHops behind{};       ///< and what is exchanged after the last step.
  /// Where ranks trade tokens for heads: the seconds for all of a rank's tokens, (N - 1) / N of which leave it.
  StepCost traded{};
  /// Seconds of a rank with `tokens` tokens in a ring of `ranks`, at least 2, whose hops cost `hop`. O(1).
  [[nodiscard]] double seconds(double block_area, double tokens, std::int64_t ranks, const RingHops& hop) const;
};

/// A micro-batch on a ring, as the engine prices it: both directions of attention, and all other work of a rank, per
/// token and fixed. The other work is less than on one rank where a longer attention hides more of what overlaps with
/// it.
struct RingPasses {
  RingPass forward{};
  RingPass backward{};
  double per_token = 0;
  double per_micro_batch = 0;
};

/// Seconds of the passes of a micro-batch on one stage.
struct PassSeconds {
  double forward = 0;
  double backward = 0;
};

/// What the passes of a micro-batch take more on one chunk of a model than on another; negative: less.
struct ChunkExcess {
  PassSeconds per_token{};  ///< Of a rank.
  PassSeconds fixed{};
};

/// Groups of more ranks than trade tokens for heads: rings of parties of ranks that do.
struct RingsOfTraders {
  std::int64_t heads = 0;  ///< What ranks_that_trade() asks for.
  std::int64_t most = 0;
  RingPasses ring{};  ///< Of groups in which nobody trades.
};

/// The planner's cost model: seconds of one micro-batch, forward and backward over all layers of a mean stage, on every
/// rank of its group. It is ByteScale's T(s) = a1 s^2 + b1 s + g per rank (eq. 3), with the steps of a ring in place of
/// its attention: each takes as long as its exchange if that is the slower one, and has smaller blocks than a sequence
/// on one rank. The engine takes the coefficients from micro-batches that it prices (sim/engine/work_probes.h).
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
  /// The shares of the forward pass in the work per token and per pair. Without recompute, backward has two matrix
  /// products for each one of forward in linear work, and five for two in attention.
  double forward_of_tokens = 1.0 / 3;
  double forward_of_area = 2.0 / 7;
  std::int64_t ranks_per_node = 1;        ///< Consecutive ranks that share a node.
  std::optional<RingHops> within_node{};  ///< Empty: as any other ring.
  RingPasses passes{};                    ///< Of groups of several ranks; a pool of one rank has none.
  /// Of groups that share a node, where ranks share without a ring. Empty: as any other.
  std::optional<RingPasses> passes_within_node{};
  /// Of groups that fill nodes, likewise: where a group has one rank in some node, all wait for its NICs.
  std::optional<RingPasses> passes_of_whole_nodes{};
  /// Ranks gather keys or trade tokens for heads, in a time that depends on where they are: the steps' times per token.
  bool ranks_share = false;
  std::optional<RingsOfTraders> traders{};  ///< Where ranks trade tokens for heads.
  /// Ranks that planners count as one: see of_groups().
  std::int64_t unit = 1;
  /// By how much `per_area`, `per_token` and `per_micro_batch` exceed attention of a rank alone in sequences that are
  /// much shorter than `short_below`: these have few kernel blocks that wait for long ones. Where tokens of some layers
  /// see few others (windows, chunks, chosen keys), by how much they may exceed it.
  StepCost less_if_short{};
  double short_below = 0;    ///< Tokens; sequences of half of it have half of that less.
  bool has_windows = false;  ///< Tokens of some layers see few others.
  /// By chunk of the model, what it takes more than a mean chunk; empty: chunks are alike. The last one has the loss,
  /// the first one the embedding.
  std::vector<ChunkExcess> chunk_excess = {};
  KeyExchange exchange = KeyExchange::ring;  ///< How the ranks of a group share a sequence.
  /// The models of the same ranks in other ways, of which every group may choose one. Those have no others.
  std::vector<WorkModel> others = {};

  /// Seconds of a micro-batch, in the way that takes the group least. `area` and `tokens` are those of the whole group,
  /// which has `degree` ranks; `near`: they share a node.
  [[nodiscard]] double seconds(double area, std::int64_t tokens, std::int64_t degree, bool near = false) const;
  /// The model of one way, for groups that have chosen; empty: of `exchange`. O(ways).
  [[nodiscard]] const WorkModel& in(std::optional<KeyExchange> chosen) const;
  /// The same without others.
  [[nodiscard]] double seconds_in_this_way(double area, std::int64_t tokens, std::int64_t degree, bool near) const;
  /// The way that takes a group of several ranks least; empty: `exchange`.
  [[nodiscard]] std::optional<KeyExchange> fastest(double area, std::int64_t tokens, std::int64_t degree,
                                                   bool near) const;
  /// Seconds of the kernels of attention of each rank of a group, without the tokens' share of `per_token`.
  [[nodiscard]] double attention(double area, std::int64_t tokens, std::int64_t degree) const;
  /// Seconds to transfer the keys and values that a rank receives, during its attention.
  [[nodiscard]] double transfer(std::int64_t tokens, std::int64_t degree, bool near = false) const;
  /// True if the ranks of a group share a node.
  [[nodiscard]] bool near(const std::vector<HdpRank>& group) const;
  /// Compute seconds of a micro-batch on a single rank, without its fixed time.
  [[nodiscard]] double compute_seconds(double area, std::int64_t tokens) const {
    return per_token * static_cast<double>(tokens) + per_area * area;
  }
  /// The model of a pool whose ranks are groups of `ranks` consecutive ranks of this one, which share every sequence.
  /// What such a group takes is a straight line through micro-batches of `tokens` tokens and `area` pairs.
  [[nodiscard]] WorkModel of_groups(std::int64_t ranks, double area, std::int64_t tokens) const;
  /// The same model without what a micro-batch may have less of: what ranks share, attention within windows and of
  /// short sequences.
  [[nodiscard]] WorkModel lower_bound() const;
  /// The forward part of compute_seconds(). Copies of activations to the host are free if they fit into it.
  [[nodiscard]] double forward_seconds(double area, std::int64_t tokens) const;
  /// Seconds that a rank waits for copies of the share `share` of its activations: those of a layer leave during the
  /// forward of the next layer, and return during that layer's backward. `area` and `tokens` are the rank's own.
  [[nodiscard]] double copy_wait(double area, double tokens, double share) const;

 private:
  [[nodiscard]] double saved_by_short_sequences(double area, double tokens) const;
  [[nodiscard]] double seconds_of_traders(double area, std::int64_t tokens, std::int64_t ranks, std::int64_t party,
                                          const RingHops& hop) const;
  [[nodiscard]] RingHops hops(bool near) const;
  [[nodiscard]] const RingPasses& passes_of(std::int64_t ranks, bool near) const;
};

}  // namespace hdpsim
