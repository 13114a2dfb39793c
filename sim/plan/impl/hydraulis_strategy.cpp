#include "sim/plan/impl/hydraulis_strategy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/division.h"
#include "sim/base/random.h"
#include "sim/plan/impl/loads.h"

namespace hdpsim {
namespace {

// Exchanges end where they are this close to a bound, as a share.
constexpr double close_to_bound = 1e-7;
// Restarts of a search, and of one among many.
constexpr int most_restarts = 256;
constexpr int few_restarts = 4;
constexpr std::int64_t most_shuffles = 100;  // as in Hydraulis
constexpr int compared = 4;                  // pipelines of each kind that a sequence may go to
// Rounds of exchanges between pipelines, after each of which micro-batches are counted anew.
constexpr int most_rounds = 8;

// Stage 1's objective.
double dispatch_worth(const PipelineKind& kind, double sum, std::int64_t /*tokens*/, double longest) {
  return kind.dispatched(sum, longest);
}

// The least that stage 2 can make of it.
double packed_worth(const PipelineKind& kind, double sum, std::int64_t tokens, double longest) {
  const auto seconds = [&](std::int64_t count) {
    return kind.seconds(std::max(longest, sum / static_cast<double>(count)), static_cast<std::size_t>(count));
  };
  const std::int64_t fewest = divided(tokens, kind.room);
  double least = seconds(fewest);
  if (kind.stages == 1 || longest <= 0) return least;
  // As long as v micro-batches of equal cost hold the longest sequence, (sum / v + c)(p - 1 + v) counts, which is least
  // at the root of sum (p - 1) / c.
  const double filled = sum / longest;
  const double ideal = std::sqrt(sum * static_cast<double>(kind.stages - 1) / std::max(kind.per_micro_batch, 1e-12));
  const auto count = static_cast<std::int64_t>(std::min(ideal, filled));
  for (const std::int64_t other : {count, count + 1}) {
    if (other > fewest) least = std::min(least, seconds(other));
  }
  return least;
}

Bin bin_of_kind(std::size_t kind, const PipelineKind& pipeline) {
  Bin bin;
  bin.kind = kind;
  bin.room = pipeline.room;
  bin.longest = pipeline.room;
  return bin;
}

// Each item, the longest first, to the bin of least cost that holds it; empty if one fits nowhere.
std::vector<Bin> least_cost_first(const Bin& empty, std::size_t count, const std::vector<std::size_t>& items,
                                  const ItemCosts& costs) {
  std::vector<Bin> bins(count, empty);
  LoadTree by_cost(count);
  for (std::size_t i = 0; i < count; ++i) by_cost.set(i, 0, 0);
  for (const std::size_t item : items) {
    const std::size_t chosen = by_cost.least({.most_used = static_cast<double>(empty.room - costs.tokens[item])});
    if (chosen == LoadTree::none) return {};
    Bin& bin = bins[chosen];
    bin.add(item, costs);
    by_cost.set(chosen, bin.cost, static_cast<double>(bin.tokens));
  }
  return bins;
}

// Each item, the longest first, to the fullest bin that holds it, or to a new one.
std::vector<Bin> fullest_first(const Bin& empty, const std::vector<std::size_t>& items, const ItemCosts& costs) {
  std::vector<Bin> bins;
  BestFit rooms;
  for (const std::size_t item : items) {
    const auto open = rooms.take(costs.tokens[item]);
    const std::size_t chosen = open ? open->pack : bins.size();
    if (!open) bins.push_back(empty);
    bins[chosen].add(item, costs);
    rooms.put(chosen, bins[chosen].room - bins[chosen].tokens);
  }
  return bins;
}

}  // namespace

StrategySearch::StrategySearch(std::vector<std::int64_t> lengths, std::vector<PipelineKind> kinds)
    : kinds_(std::move(kinds)), order_(lengths.size()) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  for (const std::size_t sequence : order_) costs_.tokens.push_back(lengths[sequence]);
  for (const PipelineKind& kind : kinds_) {
    std::vector<double>& costs = costs_.of_kind.emplace_back();
    for (const std::int64_t tokens : costs_.tokens) costs.push_back(kind.sequence_seconds(tokens));
  }
  tokens_as_costs_ = {costs_.tokens, {{costs_.tokens.begin(), costs_.tokens.end()}}};
}

bool StrategySearch::usable(const Strategy& strategy) const {
  return order_.empty() || std::any_of(strategy.begin(), strategy.end(),
                                       [&](std::size_t kind) { return kinds_[kind].room >= costs_.tokens.front(); });
}

StrategyWork StrategySearch::two_stages(const Strategy& strategy, std::int64_t budget) const {
  std::vector<std::vector<Bin>> starts = dispatches(strategy, budget);
  std::int64_t left = budget / 2;
  const std::vector<Bin>* best = nullptr;
  for (std::vector<Bin>& dispatched : starts) {
    exchange_with_restarts(dispatched, costs_, 0, most_restarts, left);
    if (best == nullptr || last_end(dispatched, costs_) < last_end(*best, costs_)) best = &dispatched;
  }
  left += budget - budget / 2;
  return work_of(packed_pipelines(strategy, *best, few_restarts, left), last_end(*best, costs_));
}

StrategyWork StrategySearch::joint(const Strategy& strategy, std::int64_t budget) const {
  std::vector<std::vector<Bin>> starts = dispatches(strategy, budget);
  const std::int64_t share = budget / (std::ssize(starts) + 1);
  std::vector<std::int64_t> left(starts.size() + 1, share);
  double dispatch = never;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    left[i] = share / 4;
    exchange_with_restarts(starts[i], costs_, 0, most_restarts, left[i]);
    left[i] += share - share / 4;
    dispatch = std::min(dispatch, last_end(starts[i], costs_));
  }
  starts.push_back(longest_first_dispatch(strategy, packed_worth));
  std::vector<Packed> best;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    std::vector<Packed> pipelines = exchanged(strategy, packed_pipelines(strategy, starts[i], 0, left[i]), left[i]);
    if (best.empty() || end_of(pipelines) < end_of(best)) best = std::move(pipelines);
  }
  return work_of(best, dispatch);
}

// Answers of stage 1: longest first and, as far as the budget goes, the best of Hydraulis' own random orders.
std::vector<std::vector<Bin>> StrategySearch::dispatches(const Strategy& strategy, std::int64_t budget) const {
  HDPSIM_CHECK(usable(strategy), "no pipeline holds a sequence of {} tokens", costs_.tokens.front());
  std::vector<std::vector<Bin>> starts = {longest_first_dispatch(strategy, dispatch_worth)};
  const auto shuffle_work = static_cast<std::int64_t>(order_.size() * strategy.size()) + 1;
  const int shuffles = static_cast<int>(std::min<std::int64_t>(most_shuffles, budget / 4 / shuffle_work));
  if (shuffles > 0 && strategy.size() > 1) starts.push_back(shuffled_dispatch(strategy, shuffles));
  return starts;
}

StrategyWork StrategySearch::work_of(const std::vector<Packed>& pipelines, double dispatch) const {
  StrategyWork work;
  work.dispatch = dispatch;
  work.seconds = end_of(pipelines);
  for (const Packed& pipeline : pipelines) work.pipelines.push_back(work_of(pipeline));
  return work;
}

PipelineWork StrategySearch::micro_batches(std::size_t kind, const SequenceList& sequences, std::int64_t budget) const {
  std::vector<std::size_t> places(order_.size());
  for (std::size_t item = 0; item < order_.size(); ++item) places[order_[item]] = item;
  std::vector<std::size_t> items;
  for (const std::size_t sequence : sequences) items.push_back(places[sequence]);
  std::sort(items.begin(), items.end());
  return work_of(packed(kind, items, most_restarts, budget));
}

std::vector<Bin> StrategySearch::idle_pipelines(const Strategy& strategy) const {
  std::vector<Bin> bins;
  for (const std::size_t kind : strategy) {
    Bin& bin = bins.emplace_back(bin_of_kind(kind, kinds_[kind]));
    bin.room = std::numeric_limits<std::int64_t>::max();
    bin.tail = static_cast<double>(kinds_[kind].stages - 1);
  }
  return bins;
}

// Longest first, a sequence goes to the pipeline that is then worth least; of each kind, those are compared that were
// worth least before.
std::vector<Bin> StrategySearch::longest_first_dispatch(const Strategy& strategy, PipelineWorth worth) const {
  std::vector<Bin> bins = idle_pipelines(strategy);
  std::vector<std::set<std::pair<double, std::size_t>>> by_worth(kinds_.size());
  for (std::size_t i = 0; i < bins.size(); ++i) by_worth[strategy[i]].emplace(0, i);
  for (std::size_t item = 0; item < order_.size(); ++item) {
    std::size_t chosen = bins.size();
    double least = never;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
      if (kinds_[kind].room < costs_.tokens[item]) continue;
      int looked_at = 0;
      for (auto at = by_worth[kind].begin(); at != by_worth[kind].end() && looked_at < compared; ++at, ++looked_at) {
        const Bin& bin = bins[at->second];
        const double cost = costs_.of_kind[kind][item];
        const double longest = bin.items.empty() ? cost : costs_.of_kind[kind][bin.items.front()];
        const double then = worth(kinds_[kind], bin.cost + cost, bin.tokens + costs_.tokens[item], longest);
        if (then >= least) continue;
        least = then;
        chosen = at->second;
      }
    }
    Bin& bin = bins[chosen];
    const double before =
        bin.items.empty() ? 0 : worth(kinds_[bin.kind], bin.cost, bin.tokens, costs_.of_kind[bin.kind][bin.items[0]]);
    by_worth[bin.kind].erase({before, chosen});
    bin.add(item, costs_);
    by_worth[bin.kind].emplace(least, chosen);
  }
  return bins;
}

// Hydraulis' own stage 1 with other random numbers.
std::vector<Bin> StrategySearch::shuffled_dispatch(const Strategy& strategy, int shuffles) const {
  RandomStream random(1, "hydraulis: orders of sequences");
  std::vector<std::size_t> items(order_.size());
  std::iota(items.begin(), items.end(), std::size_t{0});
  std::vector<Bin> best;
  for (int i = 0; i < shuffles; ++i) {
    for (std::size_t left = items.size(); left > 1; --left) std::swap(items[left - 1], items[random.below(left)]);
    std::vector<Bin> bins = dispatch_in_order(strategy, items);
    if (best.empty() || last_end(bins, costs_) < last_end(best, costs_)) best = std::move(bins);
  }
  return best;
}

// Each sequence to the pipeline with which the last one ends first: of equals, to the last one that idles, or else to
// the first one.
std::vector<Bin> StrategySearch::dispatch_in_order(const Strategy& strategy,
                                                   const std::vector<std::size_t>& items) const {
  std::vector<Bin> bins = idle_pipelines(strategy);
  std::vector<double> largest(bins.size());
  double last = 0;
  for (const std::size_t item : items) {
    std::size_t chosen = bins.size();
    double earliest = never;
    for (std::size_t i = 0; i < bins.size(); ++i) {
      if (bins[i].longest < costs_.tokens[item]) continue;
      const double cost = costs_.of_kind[bins[i].kind][item];
      const double end = std::max(last, bins[i].cost + cost + bins[i].tail * std::max(largest[i], cost));
      if (end > earliest || (end == earliest && !bins[i].items.empty())) continue;
      earliest = end;
      chosen = i;
    }
    Bin& bin = bins[chosen];
    largest[chosen] = std::max(largest[chosen], costs_.of_kind[bin.kind][item]);
    bin.add(item, costs_);
    last = earliest;
  }
  for (Bin& bin : bins) std::sort(bin.items.begin(), bin.items.end());
  return bins;
}

StrategySearch::Packed StrategySearch::packed(std::size_t kind, const std::vector<std::size_t>& items, int restarts,
                                              std::int64_t& budget) const {
  if (items.empty()) return {};
  const PipelineKind& pipeline = kinds_[kind];
  const Bin empty = bin_of_kind(kind, pipeline);
  Bin all = empty;
  for (const std::size_t item : items) all.add(item, costs_);
  const double largest = costs_.of_kind[kind][items.front()];
  HDPSIM_CHECK(costs_.tokens[items.front()] <= empty.room, "a sequence of {} tokens in a pipeline that holds {}",
               costs_.tokens[items.front()], empty.room);
  const auto alone = std::count_if(items.begin(), items.end(),
                                   [&](std::size_t item) { return 2 * costs_.tokens[item] > pipeline.room; });
  const std::size_t first = static_cast<std::size_t>(std::max<std::int64_t>(divided(all.tokens, pipeline.room), alone));
  const auto sensible = static_cast<std::size_t>(all.tokens / pipeline.fewest_tokens);
  const std::vector<Bin> fewest = fullest_first(empty, items, costs_);
  const std::size_t last = std::max(std::min({first + tried_counts - 1, sensible, items.size()}), fewest.size());
  Packed best{never, {}};
  for (std::size_t count = first; count <= last; ++count) {
    const double even = std::max(largest, all.cost / static_cast<double>(count));
    if (pipeline.seconds(even, count) >= best.seconds) continue;
    std::vector<Bin> bins = least_cost_first(empty, count, items, costs_);
    if (bins.empty() && count < fewest.size()) bins = evenly_filled(empty, count, items, restarts, budget);
    if (bins.empty() && count < fewest.size()) continue;
    if (bins.empty()) {
      bins = fewest;
      bins.resize(count, empty);
    }
    exchange_with_restarts(bins, costs_, even * (1 + close_to_bound), restarts, budget);
    std::erase_if(bins, [](const Bin& bin) { return bin.items.empty(); });
    const double seconds = pipeline_seconds(kind, bins);
    if (seconds < best.seconds) best = {seconds, std::move(bins)};
  }
  return best;
}

// Items whose tokens are exchanged between bins until each holds what it has; empty if that is not found.
std::vector<Bin> StrategySearch::evenly_filled(const Bin& empty, std::size_t count,
                                               const std::vector<std::size_t>& items, int restarts,
                                               std::int64_t& budget) const {
  Bin boundless;
  boundless.room = boundless.longest = std::numeric_limits<std::int64_t>::max();
  std::vector<Bin> by_tokens = least_cost_first(boundless, count, items, tokens_as_costs_);
  exchange_with_restarts(by_tokens, tokens_as_costs_, static_cast<double>(empty.room), restarts, budget);
  std::vector<Bin> bins(count, empty);
  for (std::size_t i = 0; i < count; ++i) {
    if (by_tokens[i].tokens > empty.room) return {};
    for (const std::size_t item : by_tokens[i].items) bins[i].add(item, costs_);
  }
  return bins;
}

std::vector<StrategySearch::Packed> StrategySearch::packed_pipelines(const Strategy& strategy,
                                                                     const std::vector<Bin>& dispatched, int restarts,
                                                                     std::int64_t& budget) const {
  std::vector<Packed> pipelines;
  for (std::size_t i = 0; i < strategy.size(); ++i) {
    pipelines.push_back(packed(strategy[i], dispatched[i].items, restarts, budget));
  }
  return pipelines;
}

// With the numbers of micro-batches as they are, sequences are exchanged between all micro-batches; then each pipeline
// counts its micro-batches anew.
std::vector<StrategySearch::Packed> StrategySearch::exchanged(const Strategy& strategy,
                                                              const std::vector<Packed>& pipelines,
                                                              std::int64_t& budget) const {
  std::vector<Packed> best = pipelines;
  for (int round = 0; round < most_rounds && budget > 0; ++round) {
    std::vector<Bin> bins;
    for (std::size_t i = 0; i < strategy.size(); ++i) {
      std::vector<Bin> own = best[i].bins;
      if (own.empty()) own.push_back(bin_of_kind(strategy[i], kinds_[strategy[i]]));
      for (Bin& bin : own) {
        bin.weight = kinds_[strategy[i]].turns(own.size());
        bin.fixed = kinds_[strategy[i]].per_micro_batch;
        bin.origin = i;
        bins.push_back(bin);
      }
    }
    exchange_with_restarts(bins, costs_, 0, most_restarts, budget);
    std::vector<Packed> other(strategy.size());
    for (Bin& bin : bins) {
      if (bin.items.empty()) continue;
      bin.weight = 1;
      bin.fixed = 0;
      other[bin.origin].bins.push_back(bin);
    }
    for (std::size_t i = 0; i < strategy.size(); ++i) {
      other[i].seconds = pipeline_seconds(strategy[i], other[i].bins);
      std::vector<std::size_t> items;
      for (const Bin& bin : other[i].bins) items.insert(items.end(), bin.items.begin(), bin.items.end());
      std::sort(items.begin(), items.end());
      Packed again = packed(strategy[i], items, few_restarts, budget);
      if (again.seconds < other[i].seconds) other[i] = std::move(again);
    }
    if (end_of(other) >= end_of(best)) break;
    best = std::move(other);
  }
  return best;
}

double StrategySearch::end_of(const std::vector<Packed>& pipelines) {
  double end = 0;
  for (const Packed& pipeline : pipelines) end = std::max(end, pipeline.seconds);
  return end;
}

double StrategySearch::pipeline_seconds(std::size_t kind, const std::vector<Bin>& bins) const {
  return bins.empty() ? 0 : kinds_[kind].seconds(last_end(bins, costs_), bins.size());
}

PipelineWork StrategySearch::work_of(const Packed& packed) const {
  PipelineWork work;
  work.seconds = packed.seconds;
  for (const Bin& bin : packed.bins) {
    SequenceList& sequences = work.micro_batches.emplace_back();
    for (const std::size_t item : bin.items) sequences.push_back(order_[item]);
  }
  return work;
}

}  // namespace hdpsim
