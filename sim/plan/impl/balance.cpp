#include "sim/plan/impl/balance.h"

#include <algorithm>
#include <utility>

namespace hdpsim {
namespace {

// The ranks of the pool before any work. Loads differ if they are more than delta of the balanced share apart.
RankLoads no_loads(const BalancedStep& step, const BalanceCandidate& candidate) {
  return {step.context.ranks, step.options.node_first ? step.context.ranks_per_node : 1,
          candidate.share > 0 ? step.options.delta * candidate.share : 1,
          candidate.rings_on_fast ? step.speeds.slow_ranks() : std::vector<std::int64_t>{}};
}

}  // namespace

Plan BalanceOutcome::take_plan() {
  dealt.add_to(builder);
  return builder.take();
}

Balancing::Balancing(const BalancedStep& step, const BalanceCandidate& candidate)
    : context_(step.context),
      options_(step.options),
      batch_(step.batch),
      speeds_(step.speeds),
      candidate_(candidate),
      builder_("hdp-balance", step.context, step.batch, step.step),
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

void Balancing::add(const Taken& taken, const SequenceList& members, const RingSize& size) {
  std::vector<HdpRank> group;
  group.reserve(taken.ranks.size());
  for (const std::int64_t rank : taken.ranks) group.emplace_back(static_cast<std::size_t>(rank));
  builder_.add(std::move(group), members, size);
}

BalanceOutcome Balancing::outcome(const std::vector<double>& loads, DealtSequences dealt) {
  const auto [first, last] = std::minmax_element(loads.begin(), loads.end());
  const double step = *last + static_cast<double>(context_.stages - 1) * longest_;
  return {std::move(builder_), std::move(dealt), step, *last > 0 ? 1 - *first / *last : 0};
}

}  // namespace hdpsim
