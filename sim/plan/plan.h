#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/id.h"

namespace hdpsim {

/// A stretch of one sequence: tokens [begin, begin + tokens). A whole sequence is the span that begins at 0.
/// Attention is causal within the sequence; spans of one micro-batch do not see each other.
struct Span {
  SequenceId sequence;
  std::int64_t begin = 0;
  std::int64_t tokens = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

/// How the group's ranks share each span.
enum class Sharding {
  zigzag_ring,  ///< 2N parts, rank i holds parts i and 2N-1-i; keys and values travel a ring.
};

/// What the ranks of one group process together in one forward and one backward. With one rank in the group it is an
/// ordinary micro-batch; with N, every span is cut over all N.
struct MicroBatch {
  std::vector<HdpRank> group;  ///< In ring order: group[i] sends to group[(i + 1) % N].
  std::vector<Span> spans;
  Sharding sharding = Sharding::zigzag_ring;
  double offload = 0;  ///< Share of the activations of all but two layers that goes to host memory, 0 to 1.
  /// MEMO (Zhao et al. 2024, arXiv 2407.12117): all activations of all but two layers leave the device. The layers'
  /// inputs and attention's outputs go to host memory whole; of the others the share `offload` of the tokens goes
  /// there, and those of the rest are computed again.
  bool token_wise = false;
  /// Tokens of one more sequence, which is no part of the batch and of the loss: what a rank runs that has nothing else
  /// to run in a wave (Plan::expert_ranks). A micro-batch without spans and padding computes experts for others alone.
  std::int64_t padding = 0;

  [[nodiscard]] std::int64_t tokens() const;           ///< Of all spans and the padding, over the whole group.
  [[nodiscard]] std::int64_t tokens_per_rank() const;  ///< The largest share of a rank: ceil(tokens / N).
  [[nodiscard]] bool offloads() const { return token_wise || offload > 0; }
  [[nodiscard]] double area() const;  ///< (query, key) pairs under the causal masks of the spans, over the whole group.
  friend bool operator==(const MicroBatch&, const MicroBatch&) = default;
};

/// Who computes what in one step. It knows no seconds.
struct Plan {
  std::string policy;  ///< The planner that made it, for people.
  std::int64_t step = 0;
  std::int64_t ranks = 0;     ///< HDP ranks of the pool.
  std::int64_t capacity = 0;  ///< Tokens that one rank can hold per micro-batch without offload.
  std::int64_t layers = 0;    ///< Of one pass of a rank: the offload ratio counts in layers.
  /// HDP ranks of an expert group: ranks kn ... kn + n - 1 go through every layer with experts together, each with the
  /// k-th micro-batch of its list. These micro-batches are a wave; see sim/plan/expert_waves.h.
  std::int64_t expert_ranks = 1;
  std::vector<std::int64_t> sequence_tokens;  ///< The batch: length of every sequence.
  std::vector<MicroBatch> micro_batches;
  /// For every rank its micro-batches in the order of execution. Each micro-batch stands once in the list of each rank
  /// of its group.
  std::vector<std::vector<MicroBatchId>> schedule;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// One of the two parts of a span that a rank holds: tokens [begin, begin + tokens) of the sequence.
struct Part {
  SequenceId sequence;
  std::int64_t begin = 0;
  std::int64_t tokens = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

/// How the spans of a micro-batch are cut over its group of N. Each span is cut in 2N parts of floor(tokens / 2N) and
/// the remainder is dealt one token each, going round the ranks across the spans, so that the ranks' totals differ by
/// at most one token.
class SpanCuts {
 public:
  /// O(spans).
  explicit SpanCuts(const MicroBatch& micro_batch);
  /// Where part 0 to 2N - 1 of a span begins, from the begin of the span; part 2N: where it ends. O(1).
  [[nodiscard]] std::int64_t part_begin(std::size_t span, std::int64_t part) const;

 private:
  struct Cut {
    std::int64_t tokens;
    std::int64_t first_dealt;  ///< The rank that the remainder is dealt to first.
  };
  std::int64_t ranks_;
  std::vector<Cut> cuts_;
};

/// What the `index`-th rank of the group holds, two parts a span in the order of the spans, as SpanCuts cuts them.
/// O(spans).
[[nodiscard]] std::vector<Part> parts_of(const MicroBatch& micro_batch, std::size_t index);

/// Share of the layers' activations that stays on the device under an offload ratio: (2 + (1 - r)(l - 2)) / l; two
/// layers always stay (ByteScale, eq. 3).
[[nodiscard]] double resident_share(double offload, std::int64_t layers);
[[nodiscard]] double resident_share(const MicroBatch& micro_batch, std::int64_t layers);

/// Share of the layers' activations, without their inputs and attention's outputs, that backward computes again under
/// token-wise offload: (1 - r)(l - 2) / l; nothing otherwise.
[[nodiscard]] double recomputed_share(const MicroBatch& micro_batch, std::int64_t layers);

}  // namespace hdpsim
