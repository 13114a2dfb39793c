#include "sim/plan/plan.h"

#include <algorithm>

#include "sim/base/check.h"
#include "sim/plan/work_model.h"

namespace hdpsim {
namespace {

// How many of the ranks before `rank` lie in the round of `count` ranks that starts at `start` and goes round a ring of
// `ranks`.
std::int64_t dealt_before(std::int64_t rank, std::int64_t start, std::int64_t count, std::int64_t ranks) {
  const std::int64_t straight = std::clamp<std::int64_t>(rank - start, 0, count);
  const std::int64_t wrapped = std::clamp<std::int64_t>(start + count - ranks, 0, rank);
  return straight + wrapped;
}

// One span cut over a ring: 2N parts, the remainder dealt to the ranks from `first_dealt` on.
struct Cut {
  std::int64_t ranks;
  std::int64_t even;          // tokens of every part before the remainder is dealt
  std::int64_t first_round;   // ranks whose first part gets one token more
  std::int64_t second_round;  // ranks whose second part gets one token more
  std::int64_t first_dealt;

  Cut(std::int64_t tokens, std::int64_t n, std::int64_t start) : ranks(n), even(tokens / (2 * n)), first_dealt(start) {
    const std::int64_t remainder = tokens % (2 * n);
    first_round = std::min(remainder, n);
    second_round = remainder - first_round;
  }

  // Where the first parts of the ranks before `rank` end, from the begin of the span.
  std::int64_t first_begin(std::int64_t rank) const {
    return rank * even + dealt_before(rank, first_dealt, first_round, ranks);
  }
  // Second parts stand in the reverse order of the ranks, after all first parts.
  std::int64_t second_begin(std::int64_t rank) const {
    const std::int64_t behind = ranks - 1 - rank;
    const std::int64_t dealt_behind = second_round - dealt_before(rank + 1, first_dealt, second_round, ranks);
    return first_begin(ranks) + behind * even + dealt_behind;
  }
  std::int64_t next_dealt() const { return (first_dealt + first_round + second_round) % ranks; }
};

}  // namespace

std::int64_t MicroBatch::tokens() const {
  std::int64_t sum = 0;
  for (const Span& span : spans) sum += span.tokens;
  return sum;
}

std::int64_t MicroBatch::tokens_per_rank() const {
  const auto ranks = static_cast<std::int64_t>(group.size());
  HDPSIM_CHECK(ranks > 0, "a micro-batch without a group");
  return (tokens() + ranks - 1) / ranks;
}

double MicroBatch::area() const {
  double sum = 0;
  for (const Span& span : spans) sum += causal_pairs(span.tokens);
  return sum;
}

std::vector<Part> parts_of(const MicroBatch& micro_batch, std::size_t index) {
  HDPSIM_CHECK(index < micro_batch.group.size(), "rank {} of a group of {}", index, micro_batch.group.size());
  const auto ranks = static_cast<std::int64_t>(micro_batch.group.size());
  const auto rank = static_cast<std::int64_t>(index);
  std::vector<Part> parts;
  parts.reserve(2 * micro_batch.spans.size());
  std::int64_t first_dealt = 0;
  for (const Span& span : micro_batch.spans) {
    const Cut cut(span.tokens, ranks, first_dealt);
    const std::int64_t first = cut.first_begin(rank);
    parts.push_back({span.sequence, span.begin + first, cut.first_begin(rank + 1) - first});
    const std::int64_t second = cut.second_begin(rank);
    const std::int64_t second_end = rank == 0 ? span.tokens : cut.second_begin(rank - 1);
    parts.push_back({span.sequence, span.begin + second, second_end - second});
    first_dealt = cut.next_dealt();
  }
  return parts;
}

double resident_share(double offload, std::int64_t layers) {
  if (layers <= 2) return 1;
  const auto count = static_cast<double>(layers);
  return (2 + (1 - offload) * (count - 2)) / count;
}

}  // namespace hdpsim
