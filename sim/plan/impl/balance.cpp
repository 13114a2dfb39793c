#include "sim/plan/impl/balance.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sim/plan/impl/loads.h"

namespace hdpsim {
namespace {

// The parts of a span that joins a ring must be whole tiles of the attention kernels: two parts per rank of at least
// 128 rows.
constexpr std::int64_t least_joined_tokens_per_rank = 256;

class RankBalancing : Balancing {
 public:
  RankBalancing(const BalancedStep& step, const BalanceCandidate& candidate)
      : Balancing(step, candidate), long_(in_rings(step)), short_(not_in_rings(step)) {}

  BalanceOutcome run() {
    std::vector<Ring> rings;
    rings.reserve(long_.size());
    for (const SizedSequence& each : long_) {
      const RingSize size = sized(each.tokens);
      rings.push_back({each.sequence, size, sizing_.seconds(each.tokens, size), each.tokens});
    }
    Buckets buckets(rings, options_.buckets);
    while (!buckets.empty()) place(buckets.draw(loads_.target_count()));
    return place_short();
  }

 private:
  // Those that one rank does not hold, and those that would end late on one.
  std::span<const SizedSequence> in_rings(const BalancedStep& step) const {
    const double late = candidate_.share * (1 + options_.delta);
    const auto needs_ring = [&](const SizedSequence& each) {
      return each.tokens >= context_.capacity ||
             (candidate_.widen && sizing_.seconds(each.tokens, sizing_.pack_size()) > late);
    };
    const auto end = std::partition_point(step.order.begin(), step.order.end(), needs_ring);
    return std::span(step.order).first(static_cast<std::size_t>(end - step.order.begin()));
  }

  ShortSequences not_in_rings(const BalancedStep& step) const {
    const std::size_t rings = in_rings(step).size();
    if (rings + step.short_sequences.count() == step.order.size()) return step.short_sequences;
    return ShortSequences(std::span(step.order).subspan(rings));
  }

  void place(const Ring& ring) {
    RingSize size = ring.size;
    if (candidate_.widen) size.degree = widened(ring);
    SizedList members{{static_cast<std::uint32_t>(ring.sequence), ring.tokens}};
    const Seconds seconds = let_join(members, size);
    loads_.make_available(size.degree);
    const Taken taken = take(size.degree, candidate_.choice, seconds);
    loads_.put(taken.ranks, taken.end);
    micro_batches_.add(taken.ranks, members, size);
  }

  // The least degree with which the ring ends within the balanced share; if there is none, the one with which it ends
  // first. Wider rings wait for more ranks, and beyond a certain width their transfers are no longer hidden.
  std::int64_t widened(const Ring& ring) const {
    std::int64_t best = ring.size.degree;
    double best_finish = never;
    const double soon_enough = candidate_.share * (1 + options_.delta);
    for (const RankLoads::Offer& offer : loads_.offers()) {
      if (offer.ranks < ring.size.degree || best_finish <= soon_enough) continue;
      RingSize size = ring.size;
      size.degree = sizing_.narrowest_within(ring.tokens, size, soon_enough - offer.start, offer.ranks);
      const double finish = offer.start + sizing_.seconds(ring.tokens, size, size.degree <= context_.ranks_per_node);
      if (finish < best_finish) {
        best_finish = finish;
        best = size.degree;
      }
    }
    return best;
  }

  // Lets short sequences fill the room that ceil(s / C) leaves in a ring, the longest that fits first, as long as they
  // cost the ring's ranks no more than they would cost alone. Returns the seconds of the micro-batch.
  Seconds let_join(SizedList& members, RingSize size) {
    std::int64_t sum = members.front().tokens;
    double pairs = causal_pairs(sum);
    if (!candidate_.join || size.degree == 1 || size.offload > 0 || size.token_wise) {
      return {sizing_.seconds(sum, size), sizing_.seconds(sum, size, true)};
    }
    double seconds = context_.work.seconds(pairs, sum, size.degree);
    const auto seconds_with = [&](std::int64_t count) {
      return context_.work.seconds(pairs + causal_pairs(count), sum + count, size.degree);
    };
    const auto worth_it = [&](std::int64_t count) {
      const double cost = (seconds_with(count) - seconds) * static_cast<double>(size.degree);
      return count >= least_joined_tokens_per_rank * size.degree &&
             cost <= seconds_in_full_micro_batch(count, context_);
    };
    while (const auto joins = short_.take_longest_within(size.degree * context_.capacity - sum, worth_it)) {
      const std::int64_t count = joins->tokens;
      seconds = seconds_with(count);
      members.push_back(*joins);
      sum += count;
      pairs += causal_pairs(count);
    }
    return {seconds, context_.work.seconds(pairs, sum, size.degree, true)};
  }

  BalanceOutcome place_short() {
    std::vector<double> loads = loads_.loads();
    DealtSequences dealt = deal_short_sequences(std::move(short_), sizing_, loads, speeds_.by_rank());
    return outcome(loads, std::move(dealt));
  }

  std::span<const SizedSequence> long_;
  ShortSequences short_;
};

// The ranks of the pool before any work. Loads differ if they are more than delta of the balanced share apart.
RankLoads no_loads(const BalancedStep& step, const BalanceCandidate& candidate) {
  return {step.context.ranks, step.options.node_first ? step.context.ranks_per_node : 1,
          candidate.share > 0 ? step.options.delta * candidate.share : 1,
          candidate.rings_on_fast ? step.speeds.slow_ranks() : std::vector<std::int64_t>{}};
}

double ring_seconds(const Ring& ring) {
  return static_cast<double>(ring.size.degree) * ring.seconds;
}

}  // namespace

BalanceOutcome balance_ranks(const BalancedStep& step, const BalanceCandidate& candidate) {
  return RankBalancing(step, candidate).run();
}

KnownSpeeds::KnownSpeeds(const PlanningContext& context, std::int64_t step)
    : speeds_(context.rank_speeds ? context.rank_speeds(step) : std::vector<double>{}) {}

std::vector<std::int64_t> KnownSpeeds::slow_ranks() const {
  std::vector<std::int64_t> slow;
  constexpr double rounding = 1e-9;
  const double mean = sum(std::ssize(speeds_)) / static_cast<double>(speeds_.size());
  for (std::size_t rank = 0; rank < speeds_.size(); ++rank) {
    if (speeds_[rank] < mean * (1 - rounding)) slow.push_back(static_cast<std::int64_t>(rank));
  }
  return slow;
}

double KnownSpeeds::sum(std::int64_t ranks) const {
  return speeds_.empty() ? static_cast<double>(ranks) : std::accumulate(speeds_.begin(), speeds_.end(), 0.0);
}

double KnownSpeeds::slowest(const std::vector<std::int64_t>& ranks) const {
  if (speeds_.empty()) return 1;
  double slowest = speeds_[static_cast<std::size_t>(ranks.front())];
  for (const std::int64_t rank : ranks) slowest = std::min(slowest, speeds_[static_cast<std::size_t>(rank)]);
  return slowest;
}

Buckets::Buckets(const std::vector<Ring>& rings, std::int64_t count) : rings_(rings) {
  bucket_end_.reserve(rings.size());
  double total = 0;
  for (const Ring& ring : rings) total += ring_seconds(ring);
  double sum = 0;
  std::size_t first = 0;
  for (std::int64_t bucket = 1; first < rings.size(); ++bucket) {
    const double limit = total * static_cast<double>(bucket) / static_cast<double>(count);
    std::size_t end = first;
    do {
      left_.insert(left_.end(), end);
      sum += ring_seconds(rings[end++]);
    } while (end < rings.size() && (bucket >= count || sum + ring_seconds(rings[end]) <= limit));
    std::fill_n(std::back_inserter(bucket_end_), end - first, end);
    first = end;
  }
}

const Ring& Buckets::draw(std::int64_t targets) {
  const std::size_t longest = *left_.begin();
  const std::size_t end = bucket_end_[longest];
  const auto too_wide = [targets](const Ring& ring) { return ring.size.degree > targets; };
  const std::span<const Ring> bucket = std::span(rings_).subspan(longest, end - longest);
  const auto fitting = std::partition_point(bucket.begin(), bucket.end(), too_wide);
  auto drawn = left_.lower_bound(longest + static_cast<std::size_t>(fitting - bucket.begin()));
  if (drawn == left_.end() || *drawn >= end) drawn = left_.begin();
  const Ring& ring = rings_[*drawn];
  left_.erase(drawn);
  return ring;
}

void FlatMicroBatches::add(std::span<const std::int64_t> ranks, std::span<const SizedSequence> sequences,
                           const RingSize& size) {
  for (const std::int64_t rank : ranks) ranks_.emplace_back(static_cast<std::size_t>(rank));
  sequences_.insert(sequences_.end(), sequences.begin(), sequences.end());
  entries_.push_back({size, ranks_.size(), sequences_.size()});
}

void FlatMicroBatches::add_to(PlanBuilder& builder) const {
  builder.reserve_more(entries_.size());
  auto rank = ranks_.begin();
  std::size_t sequence = 0;
  for (const Entry& each : entries_) {
    const auto end = ranks_.begin() + static_cast<std::ptrdiff_t>(each.ranks_end);
    builder.add({rank, end}, std::span(sequences_).subspan(sequence, each.sequences_end - sequence), each.size);
    rank = end;
    sequence = each.sequences_end;
  }
}

Plan BalanceOutcome::take_plan(PlanBuilder builder) {
  micro_batches.add_to(builder);
  dealt.add_to(builder);
  return builder.take();
}

Balancing::Balancing(const BalancedStep& step, const BalanceCandidate& candidate)
    : context_(step.context),
      options_(step.options),
      speeds_(step.speeds),
      candidate_(candidate),
      sizing_(step.context, step.options.offload),
      loads_(no_loads(step, candidate)) {}

Balancing::Taken Balancing::take(std::int64_t degree, RankChoice choice, const Seconds& seconds) {
  std::vector<std::int64_t> ranks = loads_.take(degree, choice);
  double start = 0;
  for (const std::int64_t rank : ranks) start = std::max(start, loads_.load(rank));
  const std::int64_t per_node = context_.work.ranks_per_node;
  const bool near = ranks.front() / per_node == ranks.back() / per_node;  // they are in ascending order
  const double took = (near ? seconds.near : seconds.any) / speeds_.slowest(ranks);
  longest_ = std::max(longest_, took);
  const double end = start + took;
  return {std::move(ranks), end};
}

RingSize Balancing::sized(std::int64_t tokens) const {
  if (candidate_.tokens_per_rank > 0) return sizing_.size_of(tokens, candidate_.tokens_per_rank);
  return sizing_.size(tokens, candidate_.longest_seconds);
}

BalanceOutcome Balancing::outcome(const std::vector<double>& loads, DealtSequences dealt) {
  const auto [first, last] = std::minmax_element(loads.begin(), loads.end());
  const double step = *last + static_cast<double>(context_.stages - 1) * longest_;
  return {std::move(micro_batches_), std::move(dealt), step, *last > 0 ? 1 - *first / *last : 0};
}

}  // namespace hdpsim
