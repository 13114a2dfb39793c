#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "sim/plan/impl/balance.h"
#include "sim/plan/impl/loads.h"

namespace hdpsim {
namespace {

// The parts of a span that joins a ring must be whole tiles of the attention kernels: two parts per rank of at least
// 128 rows.
constexpr std::int64_t least_joined_tokens_per_rank = 256;

class RankBalancing : Balancing {
 public:
  RankBalancing(const BalancedStep& step, const BalanceCandidate& candidate)
      : Balancing(step, candidate),
        long_(step.order.begin(), first_short(step.order, step.batch, step.context.capacity)),
        short_(step.batch, std::span(step.order).subspan(long_.size())) {}

  BalanceOutcome run() {
    std::vector<Ring> rings;
    rings.reserve(long_.size());
    for (const std::size_t sequence : long_) {
      const RingSize size = sized(tokens(sequence));
      rings.push_back({sequence, size, sizing_.seconds(tokens(sequence), size)});
    }
    Buckets buckets(rings, options_.buckets);
    while (!buckets.empty()) place(buckets.draw(loads_.target_count()));
    return place_short();
  }

 private:
  static SequenceList::const_iterator first_short(const SequenceList& order, const Batch& batch,
                                                  std::int64_t capacity) {
    return std::partition_point(order.begin(), order.end(),
                                [&](std::size_t sequence) { return batch.sequences[sequence].tokens >= capacity; });
  }

  std::int64_t tokens(std::size_t sequence) const { return batch_.sequences[sequence].tokens; }

  void place(const Ring& ring) {
    RingSize size = ring.size;
    if (options_.widen) size.degree = widened(ring);
    SequenceList members{ring.sequence};
    const Seconds seconds = let_join(members, size);
    loads_.make_available(size.degree);
    const Taken taken = take(size.degree, candidate_.choice, seconds);
    for (const std::int64_t rank : taken.ranks) loads_.put(rank, taken.end);
    add(taken, members, size);
  }

  // The least degree with which the ring ends within the balanced share; if there is none, the one with which it ends
  // first. Wider rings wait for more ranks, and beyond a certain width their transfers are no longer hidden.
  std::int64_t widened(const Ring& ring) const {
    const std::int64_t count = tokens(ring.sequence);
    const std::int64_t widest = sizing_.widest_hidden_ring(count, ring.size.degree);
    std::int64_t best = ring.size.degree;
    double best_finish = never;
    const double soon_enough = candidate_.share * (1 + options_.delta);
    for (const RankLoads::Offer& offer : loads_.offers()) {
      if (offer.ranks < ring.size.degree || best_finish <= soon_enough) continue;
      const std::int64_t most = std::min(widest, offer.ranks);
      const std::int64_t needed = sizing_.degree_within(count, candidate_.share - offer.start, most);
      const std::int64_t degree = std::max(ring.size.degree, needed);
      const double finish = offer.start + sizing_.seconds(count, {degree, ring.size.offload, ring.size.token_wise});
      if (finish < best_finish) {
        best_finish = finish;
        best = degree;
      }
    }
    return best;
  }

  // Lets short sequences fill the room that ceil(s / C) leaves in a ring, the longest that fits first, as long as they
  // cost the ring's ranks no more than they would cost alone. Returns the seconds of the micro-batch.
  Seconds let_join(SequenceList& members, RingSize size) {
    std::int64_t sum = tokens(members.front());
    double pairs = causal_pairs(sum);
    if (!options_.pack_groups || size.degree == 1 || size.offload > 0 || size.token_wise) {
      return {sizing_.seconds(sum, size), sizing_.seconds(sum, size, true)};
    }
    double seconds = context_.work.seconds(pairs, sum, size.degree);
    const auto seconds_with = [&](std::int64_t count) {
      return context_.work.seconds(pairs + causal_pairs(count), sum + count, size.degree);
    };
    const auto worth_it = [&](std::size_t sequence) {
      const std::int64_t count = tokens(sequence);
      const double cost = (seconds_with(count) - seconds) * static_cast<double>(size.degree);
      return count >= least_joined_tokens_per_rank * size.degree &&
             cost <= seconds_in_full_micro_batch(count, context_);
    };
    while (const auto joins = short_.take_longest_within(size.degree * context_.capacity - sum, worth_it)) {
      const std::int64_t count = tokens(*joins);
      seconds = seconds_with(count);
      members.push_back(*joins);
      sum += count;
      pairs += causal_pairs(count);
    }
    return {seconds, context_.work.seconds(pairs, sum, size.degree, true)};
  }

  BalanceOutcome place_short() {
    std::vector<double> loads = loads_.loads();
    DealtSequences dealt = deal_short_sequences(batch_, short_.rest(), sizing_, loads, speeds_.by_rank());
    return outcome(loads, std::move(dealt));
  }

  SequenceList long_;
  ShortSequences short_;
};

}  // namespace

BalanceOutcome balance_ranks(const BalancedStep& step, const BalanceCandidate& candidate) {
  return RankBalancing(step, candidate).run();
}

}  // namespace hdpsim
