#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/plan/impl/shared_options.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// The spread of a sequence: D ranks and the offload ratio r of its micro-batch.
struct RingSize {
  std::int64_t degree = 1;
  double offload = 0;
  bool token_wise = false;  ///< See MicroBatch.
  friend bool operator==(const RingSize&, const RingSize&) = default;
};

/// ByteScale (arXiv 2502.21231), eq. 3: the least D(s) = ceil(s / C x resident_share(r)) over r. Bounds on r: the
/// forward pass hides the copies (T(s) >= r Act(s) / B; backward is longer), and host memory holds them. The paper
/// gives no bound from balance, and without one offload leaves a 2M-token sequence on 16 ranks for eight times the
/// balanced step: here D never falls so low that the micro-batch takes longer than the policy allows. r is then lowered
/// to what D needs. A ratio that is stated is that of every micro-batch, whether copies are hidden or not; D is the
/// least with which device and host hold the sequence.
///
/// Token-wise, as MEMO (Zhao et al. 2024, section 4.2): D is bounded by the room left if only two layers of activations
/// stay, and r is the largest share of the tokens whose copies, with those that always go entirely, a forward pass
/// hides and host memory holds. If it does not hide even the latter, D is that without offload, if the pool is large
/// enough.
class RingSizing {
 public:
  RingSizing(const PlanningContext& context, OffloadRule rule) : context_(context), rule_(rule) {}

  [[nodiscard]] const PlanningContext& context() const { return context_; }

  /// The size for a sequence of at least one token. `longest_seconds` bounds D from below unless even r = 0 takes
  /// longer. Memory has priority over the other bounds: D <= ranks of the pool whenever the pool can hold the sequence.
  [[nodiscard]] RingSize size(std::int64_t tokens, double longest_seconds) const;
  /// The size with at most `tokens_per_rank` tokens per rank, as far as the pool and its memory allow, whatever the
  /// time of copies and of other ranks.
  [[nodiscard]] RingSize size_of(std::int64_t tokens, std::int64_t tokens_per_rank) const;
  /// The size of a micro-batch of `tokens` tokens on `degree` ranks: what is offloaded follows from the rule and from
  /// what a rank must hold.
  [[nodiscard]] RingSize on(std::int64_t degree, std::int64_t tokens) const;
  /// That of a micro-batch of at most C tokens on one rank.
  [[nodiscard]] RingSize pack_size() const { return on(1, context_.capacity); }
  /// D without offload: ceil(s / C).
  [[nodiscard]] std::int64_t plain_degree(std::int64_t tokens) const;
  /// The least D from `size.degree` to `most` whose ring takes at most `seconds`; the fastest if there is none. Groups
  /// of at most the ranks of a node count as sharing one. O(log D).
  [[nodiscard]] std::int64_t narrowest_within(std::int64_t tokens, const RingSize& size, double seconds,
                                              std::int64_t most) const;
  /// Seconds of one rank of a ring of that size, including recompute and waits for copies. `near`: the ranks share a
  /// node.
  [[nodiscard]] double seconds(std::int64_t tokens, const RingSize& size, bool near = false) const {
    return seconds(causal_pairs(tokens), tokens, size, near);
  }
  /// The same of several sequences, with so many (query, key) pairs together.
  [[nodiscard]] double seconds(double area, std::int64_t tokens, const RingSize& size, bool near) const;
  /// What offload adds to these seconds.
  [[nodiscard]] double offload_seconds(double area, std::int64_t tokens, const RingSize& size) const;
  /// The total seconds of all ranks of such a ring, with transfers hidden: no plan takes less.
  [[nodiscard]] double work(std::int64_t tokens, const RingSize& size) const;
  /// The maximum tokens of one rank if its host memory may be used entirely.
  [[nodiscard]] std::int64_t most_tokens_per_rank() const;

 private:
  /// The maximum tokens of a rank for which the device has room for this share of the activations.
  [[nodiscard]] double tokens_held(double least_share) const;
  /// The maximum tokens of a rank for which the host has room for the activations that leave.
  [[nodiscard]] double tokens_the_host_holds() const;
  [[nodiscard]] double rounding() const;
  [[nodiscard]] std::int64_t least_degree_hidden(std::int64_t tokens) const;
  [[nodiscard]] double offload_for(std::int64_t tokens_per_rank) const;
  [[nodiscard]] bool pays(std::int64_t tokens) const;
  [[nodiscard]] double compute(std::int64_t tokens, const RingSize& size) const;
  [[nodiscard]] double hidden_share(std::int64_t tokens) const;
  [[nodiscard]] double split_of(std::int64_t tokens, std::int64_t degree) const;

  PlanningContext context_;
  OffloadRule rule_;
};

/// The share of a micro-batch's activations whose copies to the host its forward pass hides, at most 1. `area` and
/// `tokens` are those of a rank.
[[nodiscard]] double hidden_offload(const WorkModel& work, double area, std::int64_t tokens);

/// Tokens per rank that offload makes possible: 2 C, 4 C, and so on, up to what memory holds. Empty if the rule does
/// not choose.
[[nodiscard]] std::vector<std::int64_t> offloaded_tokens(const PlanningContext& context, const OffloadRule& rule);

/// Seconds of a sequence in a full micro-batch of one rank, with its share of the fixed time.
[[nodiscard]] double seconds_in_full_micro_batch(std::int64_t tokens, const PlanningContext& context);

/// Lower bounds, in seconds, of every plan whose rings have at most `tokens_per_rank` tokens per rank: its work spread
/// evenly, and its longest ring.
struct Bounds {
  double share = 0;
  double longest = 0;
  [[nodiscard]] double step() const { return std::max(share, longest); }
};
[[nodiscard]] Bounds bounds_with(const Batch& batch, const PlanningContext& context, const OffloadRule& rule,
                                 std::int64_t tokens_per_rank);

/// Seconds of every rank if all work were spread evenly.
struct Shares {
  double step = 0;         ///< All of its work.
  double micro_batch = 0;  ///< One of its micro-batches: `step` over the number of micro-batches of C tokens per rank.
};

/// Sequences of at least C tokens count as rings, shorter ones as parts of full micro-batches. Fewer ranks per ring
/// mean fewer micro-batches and less work: the shares are computed with the plain degrees first and then with those
/// that result from these shares.
[[nodiscard]] Shares balanced_shares(const Batch& batch, const PlanningContext& context, const RingSizing& sizing);

}  // namespace hdpsim
