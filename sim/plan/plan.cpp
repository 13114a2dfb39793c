#include "sim/plan/plan.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/division.h"
#include "sim/model/sharing_form.h"
#include "sim/plan/work_model.h"

namespace hdpsim {
namespace {

std::int64_t tokens_of(const std::vector<Span>& spans) {
  std::int64_t sum = 0;
  for (const Span& span : spans) sum += span.tokens;
  return sum;
}

// The number of ranks before `rank` in the round of `count` ranks that starts at `start` and continues around a ring of
// `ranks`.
std::int64_t dealt_before(std::int64_t rank, std::int64_t start, std::int64_t count, std::int64_t ranks) {
  const std::int64_t straight = std::clamp<std::int64_t>(rank - start, 0, count);
  const std::int64_t wrapped = std::clamp<std::int64_t>(start + count - ranks, 0, rank);
  return straight + wrapped;
}

// One span cut over a ring: 2N parts, with the remainder dealt to the ranks from `first_dealt` on.
class Dealing {
 public:
  Dealing(std::int64_t tokens, std::int64_t ranks, std::int64_t first_dealt)
      : ranks_(ranks), even_(tokens / (2 * ranks)), first_dealt_(first_dealt) {
    const std::int64_t remainder = tokens % (2 * ranks);
    first_round_ = std::min(remainder, ranks);
    second_round_ = remainder - first_round_;
  }

  // The end of the first parts of the ranks before `rank`, relative to the begin of the span.
  [[nodiscard]] std::int64_t first_begin(std::int64_t rank) const {
    return rank * even_ + dealt_before(rank, first_dealt_, first_round_, ranks_);
  }
  // Second parts are in the reverse order of the ranks, after all first parts.
  [[nodiscard]] std::int64_t second_begin(std::int64_t rank) const {
    const std::int64_t behind = ranks_ - 1 - rank;
    const std::int64_t dealt_behind = second_round_ - dealt_before(rank + 1, first_dealt_, second_round_, ranks_);
    return first_begin(ranks_) + behind * even_ + dealt_behind;
  }
  [[nodiscard]] std::int64_t next_dealt() const { return (first_dealt_ + first_round_ + second_round_) % ranks_; }

 private:
  std::int64_t ranks_;
  std::int64_t even_;              // tokens of every part before the remainder is dealt
  std::int64_t first_round_ = 0;   // ranks whose first part gets one more token
  std::int64_t second_round_ = 0;  // ranks whose second part gets one more token
  std::int64_t first_dealt_;
};

}  // namespace

const std::vector<std::string>& token_cut_words() {
  static const std::vector<std::string> words{"per_document", "per_pack", "dispatch", "served"};
  return words;
}

std::int64_t MicroBatch::tokens() const {
  std::int64_t sum = 0;
  for_each_span(*this, [&](const Span& span) { sum += span.tokens; });
  return sum + padding;
}

std::int64_t MicroBatch::shared_tokens() const {
  return tokens_of(spans) + padding;
}

std::int64_t MicroBatch::tokens_per_rank() const {
  const auto ranks = static_cast<std::int64_t>(group.size());
  HDPSIM_CHECK(ranks > 0, "a micro-batch without a group");
  std::int64_t most = 0;
  for (const LocalSpans& held : local) most = std::max(most, tokens_of(held.spans));
  return divided(shared_tokens(), ranks) + most;
}

std::int64_t MicroBatch::earlier_keys() const {
  return continues && !spans.empty() ? spans.front().begin : 0;
}

double MicroBatch::area() const {
  double sum = 0;
  for_each_span(*this, [&](const Span& span) { sum += pairs_of(*this, span); });
  return sum + causal_pairs(padding);
}

double MicroBatch::shared_area() const {
  double sum = 0;
  for (const Span& span : spans) sum += pairs_of(*this, span);
  return sum + causal_pairs(padding);
}

double MicroBatch::pairs_per_rank() const {
  const auto square = [](std::int64_t queries, std::int64_t earlier) {
    return static_cast<double>(queries) * (static_cast<double>(queries) + static_cast<double>(earlier));
  };
  double shared = square(padding, 0);
  for (const Span& span : spans) shared += square(span.tokens, earlier_keys());
  double most = 0;
  for (const LocalSpans& held : local) {
    double alone = 0;
    for (const Span& span : held.spans) alone += square(span.tokens, 0);
    most = std::max(most, alone);
  }
  return shared / static_cast<double>(group.size()) + most;
}

double pairs_of(const MicroBatch& micro_batch, const Span& span) {
  const auto earlier = static_cast<double>(micro_batch.earlier_keys());
  return causal_pairs(span.tokens) + earlier * static_cast<double>(span.tokens);
}

bool has_chunks_in_order(const Plan& plan) {
  return std::any_of(plan.micro_batches.begin(), plan.micro_batches.end(),
                     [](const MicroBatch& micro_batch) { return micro_batch.continues; });
}

std::optional<KeyExchange> own_exchange(const MicroBatch& micro_batch) {
  if (micro_batch.group.size() == 1) return std::nullopt;
  const std::optional<KeyExchange> of_cut = exchange_of(micro_batch.cut);
  return of_cut ? of_cut : micro_batch.exchange;
}

std::int64_t span_count(const MicroBatch& micro_batch) {
  std::int64_t count = 0;
  for_each_span(micro_batch, [&](const Span&) { ++count; });
  return count;
}

bool have_same_work(const MicroBatch& a, const MicroBatch& b) {
  const auto same_span = [](const Span& one, const Span& other) {
    return one.begin == other.begin && one.tokens == other.tokens;
  };
  if (a.group.size() != 1 || b.group.size() != 1 || a.continues || !a.local.empty()) return false;
  if (!std::equal(a.spans.begin(), a.spans.end(), b.spans.begin(), b.spans.end(), same_span)) return false;
  MicroBatch renamed = b;
  renamed.group = a.group;
  renamed.spans = a.spans;
  return renamed == a;
}

MicroBatch alone(const MicroBatch& micro_batch, const LocalSpans& local) {
  MicroBatch own;
  own.group = {micro_batch.group.at(local.holder)};
  own.spans = local.spans;
  return own;
}

SpanCuts::SpanCuts(const MicroBatch& micro_batch) : ranks_(std::ssize(micro_batch.group)) {
  HDPSIM_CHECK(ranks_ > 0, "a micro-batch without a group");
  cuts_.reserve(micro_batch.spans.size());
  std::int64_t first_dealt = 0;
  for (const Span& span : micro_batch.spans) {
    cuts_.push_back({span.tokens, first_dealt});
    first_dealt = Dealing(span.tokens, ranks_, first_dealt).next_dealt();
  }
}

std::int64_t SpanCuts::part_begin(std::size_t span, std::int64_t part) const {
  const Cut& cut = cuts_[span];
  if (part == 2 * ranks_) return cut.tokens;
  const Dealing dealing(cut.tokens, ranks_, cut.first_dealt);
  return part < ranks_ ? dealing.first_begin(part) : dealing.second_begin(2 * ranks_ - 1 - part);
}

std::vector<Part> parts_of(const MicroBatch& micro_batch, std::size_t index) {
  HDPSIM_CHECK(index < micro_batch.group.size(), "rank {} of a group of {}", index, micro_batch.group.size());
  const SpanCuts cuts(micro_batch);
  const auto first = static_cast<std::int64_t>(index);
  const std::int64_t second = 2 * std::ssize(micro_batch.group) - 1 - first;
  std::vector<Part> parts;
  parts.reserve(2 * micro_batch.spans.size());
  for (std::size_t i = 0; i < micro_batch.spans.size(); ++i) {
    const Span& span = micro_batch.spans[i];
    for (const std::int64_t part : {first, second}) {
      const std::int64_t begin = cuts.part_begin(i, part);
      parts.push_back({span.sequence, span.begin + begin, cuts.part_begin(i, part + 1) - begin});
    }
  }
  return parts;
}

double resident_share(double offload, std::int64_t layers) {
  if (layers <= resident_layers) return 1;
  const auto count = static_cast<double>(layers);
  return (resident_layers + (1 - offload) * (count - resident_layers)) / count;
}

double resident_share(const MicroBatch& micro_batch, std::int64_t layers) {
  return resident_share(micro_batch.token_wise ? 1 : micro_batch.offload, layers);
}

std::int64_t tokens_held(const MicroBatch& micro_batch, std::int64_t layers) {
  constexpr double rounding = 1 - 1e-9;  // of resident_share(), far below one token
  const double held = static_cast<double>(micro_batch.tokens_per_rank()) * resident_share(micro_batch, layers);
  return static_cast<std::int64_t>(std::ceil(held * rounding));
}

std::int64_t tokens_held(const Plan& plan) {
  std::int64_t most = 0;
  for (const MicroBatch& micro_batch : plan.micro_batches) most = std::max(most, tokens_held(micro_batch, plan.layers));
  return most;
}

void raise_capacity(Plan& plan) {
  plan.capacity = std::max(plan.capacity, tokens_held(plan));
}

double recomputed_share(const MicroBatch& micro_batch, std::int64_t layers) {
  if (!micro_batch.token_wise) return 0;
  return (1 - micro_batch.offload) * (1 - resident_share(micro_batch, layers));
}

}  // namespace hdpsim
