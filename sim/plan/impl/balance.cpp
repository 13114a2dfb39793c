#include "sim/plan/impl/balance.h"

#include <algorithm>
#include <utility>

namespace hdpsim {
namespace {

// The ranks of the pool before any work: those differ that are more than delta of the balanced share apart.
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

Balancing::Taken Balancing::take(std::int64_t degree, RankChoice choice, double seconds) {
  std::vector<std::int64_t> ranks = loads_.take(degree, choice);
  double start = 0;
  for (const std::int64_t rank : ranks) start = std::max(start, loads_.load(rank));
  const double end = start + seconds / speeds_.slowest(ranks);
  return {std::move(ranks), end};
}

void Balancing::add(const Taken& taken, const SequenceList& members, const RingSize& size) {
  std::vector<HdpRank> group;
  group.reserve(taken.ranks.size());
  for (const std::int64_t rank : taken.ranks) group.emplace_back(static_cast<std::size_t>(rank));
  builder_.add(std::move(group), members, size);
}

BalanceOutcome Balancing::outcome(const std::vector<double>& loads, DealtSequences dealt) {
  const auto [first, last] = std::minmax_element(loads.begin(), loads.end());
  return {std::move(builder_), std::move(dealt), *last, *last > 0 ? 1 - *first / *last : 0};
}

}  // namespace hdpsim
