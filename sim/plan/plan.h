#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/id.h"
#include "sim/model/key_exchange.h"

namespace hdpsim {

/// Consecutive tokens of one sequence: [begin, begin + tokens), some of them perhaps behind its end
/// (MicroBatch::padded). The span of a whole sequence has all its tokens, from 0
/// on. Attention is causal within the sequence; spans do not see each other, unless a micro-batch continues another
/// (MicroBatch::continues).
struct Span {
  SequenceId sequence;
  std::int64_t begin = 0;
  std::int64_t tokens = 0;
  friend bool operator==(const Span&, const Span&) = default;
};

/// The words of TokenCut in plan files and studies, in its order.
[[nodiscard]] const std::vector<std::string>& token_cut_words();

/// Spans that one rank of a group holds alone.
struct LocalSpans {
  std::size_t holder = 0;  ///< Index of the rank in the group.
  std::vector<Span> spans;
  friend bool operator==(const LocalSpans&, const LocalSpans&) = default;
};

/// Queries whose attention another rank computes than the one that holds them: tokens [begin, begin + tokens) of a
/// span, counted from the begin of the span.
struct ServedQueries {
  std::size_t span = 0;  ///< Index into MicroBatch::spans.
  std::int64_t begin = 0;
  std::int64_t tokens = 0;
  std::size_t server = 0;  ///< Index of the rank in the group.

  [[nodiscard]] std::int64_t end() const { return begin + tokens; }
  friend bool operator==(const ServedQueries&, const ServedQueries&) = default;
};

/// The work of the ranks of one group in one forward and one backward pass. With one rank in the group it is an
/// ordinary micro-batch; with N ranks, its tokens are cut over all N, except those that a rank holds alone.
struct MicroBatch {
  std::vector<HdpRank> group;  ///< In ring order: group[i] sends to group[(i + 1) % N].
  std::vector<Span> spans;     ///< Those that the group shares.
  /// By rising holder, each once. Only in groups of several ranks that cut what they share per document: keys and
  /// values of these spans do not travel, and their attention overlaps with the exchange of the others' (Skrull, Xu et
  /// al. 2025, arXiv 2505.19609, section 4.2).
  std::vector<LocalSpans> local = {};
  TokenCut cut = TokenCut::per_document;  ///< No matter in a group of one rank.
  /// How a group of several whose spans are all cut per document shares them. Empty: as the recipe says, or the cut.
  std::optional<KeyExchange> exchange = {};
  /// Only under TokenCut::served; by span and begin, none twice. The holders compute the attention of other queries.
  std::vector<ServedQueries> moved = {};
  double offload = 0;  ///< Share of the activations of all but two layers that goes to host memory; 0 to 1.
  /// MEMO (Zhao et al. 2024, arXiv 2407.12117): all activations of all but two layers leave the device. The layers'
  /// inputs and attention's outputs go to host memory entirely; the other activations go there for the share `offload`
  /// of the tokens, and are recomputed for the rest.
  bool token_wise = false;
  /// Chunks of a sequence in order (ChunkFlow, Yuan et al. 2025, arXiv 2503.02356): the only span of this micro-batch
  /// continues that of the micro-batch before it in the list of its only rank, and sees the keys of what it continues.
  /// Such chunks run forward in order and backward in the reverse order, so that their passes are apart.
  bool continues = false;
  /// Forward leaves no activations but keys and values that later chunks see, and in a pipeline what the stage
  /// received. All of it runs once more before backward.
  bool repeats_forward = false;
  /// Tokens of an additional sequence that belongs neither to the batch nor to the loss, on a rank with no other work
  /// in a wave (Plan::expert_ranks). A micro-batch without spans and padding only computes experts for others.
  std::int64_t padding = 0;
  /// Spans may go on behind the ends of their sequences: the tokens there are padding, which is computed and attended
  /// to as others are, and neither of the batch nor in the loss. So are the rows of a batch that is padded to one
  /// length.
  bool padded = false;
  /// The optimizer step of the batch to which it belongs, from 0 on (sim/plan/updates.h).
  std::int64_t update = 0;

  [[nodiscard]] std::int64_t tokens() const;         ///< Tokens of all spans and the padding, over the whole group.
  [[nodiscard]] std::int64_t shared_tokens() const;  ///< The same without local spans.
  /// The largest share of a rank: ceil(shared tokens / N) and the most local tokens.
  [[nodiscard]] std::int64_t tokens_per_rank() const;
  [[nodiscard]] bool offloads() const { return token_wise || offload > 0; }
  /// The tokens of earlier chunks, whose keys the span sees; 0 unless it continues them.
  [[nodiscard]] std::int64_t earlier_keys() const;
  /// (query, key) pairs under the causal masks of the spans, with the keys of earlier chunks, over the whole group.
  [[nodiscard]] double area() const;
  [[nodiscard]] double shared_area() const;  ///< The same without local spans.
  /// The most (query, key) pairs of a rank if masks save none, as in unfused attention: an even share of those of
  /// shared spans, and those that it holds alone.
  [[nodiscard]] double pairs_per_rank() const;
  friend bool operator==(const MicroBatch&, const MicroBatch&) = default;
};

/// The assignment of work to ranks in one step. It contains no times.
struct Plan {
  std::string policy;  ///< The planner that made it, for people.
  std::int64_t step = 0;
  std::int64_t ranks = 0;     ///< HDP ranks of the pool.
  std::int64_t capacity = 0;  ///< Tokens that one rank can hold per micro-batch without offload: see raise_capacity().
  std::int64_t layers = 0;    ///< Layers of one pass of a rank; offload ratios count in layers.
  /// HDP ranks of an expert group: ranks kn ... kn + n - 1 run every layer with experts together, each with the k-th
  /// micro-batch of its list. These micro-batches are a wave; see sim/plan/expert_waves.h.
  std::int64_t expert_ranks = 1;
  std::vector<std::int64_t> sequence_tokens;  ///< The batch: length of every sequence.
  std::vector<MicroBatch> micro_batches;      ///< In the order of their updates.
  /// For every rank, its micro-batches in the order of execution. Each micro-batch occurs exactly once in the list of
  /// each rank of its group.
  std::vector<std::vector<MicroBatchId>> schedule;
  friend bool operator==(const Plan&, const Plan&) = default;
};

/// Whether micro-batches of the plan continue others. O(micro-batches).
[[nodiscard]] bool has_chunks_in_order(const Plan& plan);

/// The way to share a sequence that the cut of a group of several asks for (exchange_of), or the plan, whatever the
/// recipe. Empty: the recipe's.
[[nodiscard]] std::optional<KeyExchange> own_exchange(const MicroBatch& micro_batch);

/// One of the two parts of a span that a rank holds: tokens [begin, begin + tokens) of the sequence.
struct Part {
  SequenceId sequence;
  std::int64_t begin = 0;
  std::int64_t tokens = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

/// Calls visit(span) for the spans that a group shares, then for those that ranks hold alone, by rising holder.
template <class Visit>
void for_each_span(const MicroBatch& micro_batch, Visit visit) {
  for (const Span& span : micro_batch.spans) visit(span);
  for (const LocalSpans& local : micro_batch.local) {
    for (const Span& span : local.spans) visit(span);
  }
}

/// The (query, key) pairs of a span of the micro-batch, with the keys of the chunks that it continues.
[[nodiscard]] double pairs_of(const MicroBatch& micro_batch, const Span& span);

[[nodiscard]] std::int64_t span_count(const MicroBatch& micro_batch);

/// Whether one rank alone runs each of two micro-batches, and they differ in no more than the rank and which sequences
/// have these lengths: their work is the same. O(spans).
[[nodiscard]] bool have_same_work(const MicroBatch& a, const MicroBatch& b);

/// What the holder of local spans computes alone, as a micro-batch of that rank.
[[nodiscard]] MicroBatch alone(const MicroBatch& micro_batch, const LocalSpans& local);

/// How the executor cuts the shared spans of a micro-batch over its group of N, per document. Each span is cut into 2N
/// parts of floor(tokens / 2N); the remainder is dealt one token each to the ranks in turn, continuing from span to
/// span, so that the ranks' totals differ by at most one token.
class SpanCuts {
 public:
  /// O(spans).
  explicit SpanCuts(const MicroBatch& micro_batch);
  /// The begin of part 0 to 2N - 1 of a span, relative to the begin of the span; for part 2N, the end of the span.
  /// O(1).
  [[nodiscard]] std::int64_t part_begin(std::size_t span, std::int64_t part) const;

 private:
  struct Cut {
    std::int64_t tokens;
    std::int64_t first_dealt;  ///< The first rank that gets a token of the remainder.
  };
  std::int64_t ranks_;
  std::vector<Cut> cuts_;
};

/// The parts of the `index`-th rank of the group, two per shared span in the order of the spans, as cut by SpanCuts.
/// O(spans).
[[nodiscard]] std::vector<Part> parts_of(const MicroBatch& micro_batch, std::size_t index);

/// Layers whose activations stay on the device whatever is offloaded (ByteScale, eq. 3).
inline constexpr std::uint32_t resident_layers = 2;
/// Share of the layers' activations that stays on the device under an offload ratio r: (2 + (1 - r)(l - 2)) / l.
[[nodiscard]] double resident_share(double offload, std::int64_t layers);
[[nodiscard]] double resident_share(const MicroBatch& micro_batch, std::int64_t layers);

/// The tokens that a micro-batch leaves on a device of its ranks, rounded up. Its group and ratio must be sound.
/// O(spans).
[[nodiscard]] std::int64_t tokens_held(const MicroBatch& micro_batch, std::int64_t layers);

/// The most of these of all micro-batches.
[[nodiscard]] std::int64_t tokens_held(const Plan& plan);

/// Raises the capacity of the plan to tokens_held(), for plans of those who do not look at it; a run of the plan says
/// that it does not fit.
void raise_capacity(Plan& plan);

/// Share of the layers' activations, without their inputs and attention's outputs, that backward recomputes under
/// token-wise offload: (1 - r)(l - 2) / l; otherwise 0.
[[nodiscard]] double recomputed_share(const MicroBatch& micro_batch, std::int64_t layers);

}  // namespace hdpsim
