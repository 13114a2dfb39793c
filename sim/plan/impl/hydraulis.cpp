#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/quantity_limits.h"
#include "sim/base/quantity_text.h"
#include "sim/plan/impl/hydraulis_strategy.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/slot.h"

namespace hdpsim {
namespace {

// Strategies whose first answers end earliest and which are searched further,
constexpr std::size_t most_searched = 4;
// and the exchanges of sequences that all of them together look at: tens of milliseconds.
constexpr std::int64_t most_exchanges = 1 << 20;

enum class Pipelines : std::uint8_t { unlike, alike };
enum class Search : std::uint8_t { two_stages, joint };

bool are_alike(const PipelineDegrees& degrees) {
  return std::adjacent_find(degrees.begin(), degrees.end(), std::not_equal_to<>()) == degrees.end();
}

PipelineDegrees alike(std::int64_t ranks, std::int64_t degree) {
  return PipelineDegrees(static_cast<std::size_t>(ranks / degree), degree);
}

// `wide` pipelines of one degree, and the other ranks in pipelines of another one.
PipelineDegrees degrees_beside(std::int64_t ranks, std::int64_t wide, std::int64_t degree, std::int64_t other) {
  PipelineDegrees degrees(static_cast<std::size_t>(wide), degree);
  degrees.insert(degrees.end(), static_cast<std::size_t>((ranks - wide * degree) / other), other);
  return degrees;
}

// Half of the ranks that are left to each degree, which is half of the one before, as long as it can be halved.
PipelineDegrees steps(std::int64_t ranks, std::int64_t degree) {
  PipelineDegrees degrees;
  for (std::int64_t left = ranks; left > 0; degree /= 2) {
    const bool is_last = degree % 2 != 0 || left == degree;
    const std::int64_t count = is_last ? left / degree : std::max<std::int64_t>(1, left / 2 / degree);
    degrees.insert(degrees.end(), static_cast<std::size_t>(count), degree);
    left -= count * degree;
  }
  return degrees;
}

/// Hydraulis (arXiv 2412.07894; PKU-DAIR/Hetu, examples/hydraulis) on one mesh: in every step the strategy of the
/// candidates that ends first, whose pipelines are groups of unlike degrees of context parallelism. They all have the
/// mesh's tp and pp, so that parameters lie alike in all strategies and need not move between steps.
class Hydraulis final : public BuildingPlanner {
 public:
  Hydraulis(const PlanningContext& context, std::vector<PipelineDegrees> candidates, Search search)
      : BuildingPlanner("hydraulis", context), candidates_(std::move(candidates)), search_(search) {
    for (const PipelineDegrees& degrees : candidates_) degrees_.insert(degrees_.end(), degrees.begin(), degrees.end());
    std::sort(degrees_.begin(), degrees_.end());
    degrees_.erase(std::unique(degrees_.begin(), degrees_.end()), degrees_.end());
    for (const PipelineDegrees& degrees : candidates_) {
      Strategy& strategy = strategies_.emplace_back();
      for (const std::int64_t degree : degrees) {
        const auto kind = std::lower_bound(degrees_.begin(), degrees_.end(), degree);
        strategy.push_back(static_cast<std::size_t>(kind - degrees_.begin()));
      }
    }
  }

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    if (batch.sequences.empty()) return;
    std::vector<std::int64_t> lengths;
    for (const Sequence& sequence : batch.sequences) lengths.push_back(sequence.tokens);
    const StrategySearch search(std::move(lengths), pipeline_kinds());
    const auto [candidate, work] = best_of(search);
    std::size_t rank = 0;
    for (std::size_t i = 0; i < work.pipelines.size(); ++i) {
      const std::int64_t degree = candidates_[candidate][i];
      for (const SequenceList& sequences : work.pipelines[i].micro_batches) {
        builder.add_consecutive(rank, {degree}, sequences);
      }
      rank += static_cast<std::size_t>(degree);
    }
  }

  [[nodiscard]] std::vector<PipelineKind> pipeline_kinds() const {
    const GroupTimes times = group_times(context_.work, context_.ranks_per_node);
    std::vector<PipelineKind> kinds;
    for (const std::int64_t degree : degrees_) {
      PipelineKind& kind = kinds.emplace_back();
      kind.stages = context_.stages;
      kind.room = degree * context_.capacity;
      kind.per_micro_batch = times.fixed(degree);
      kind.sequence_seconds = [times, degree](std::int64_t tokens) { return times.sequence_seconds(tokens, degree); };
    }
    return kinds;
  }

  [[nodiscard]] StrategyWork work_of(const StrategySearch& search, std::size_t candidate, std::int64_t budget) const {
    const Strategy& strategy = strategies_[candidate];
    return search_ == Search::joint ? search.joint(strategy, budget) : search.two_stages(strategy, budget);
  }

  [[nodiscard]] std::pair<std::size_t, StrategyWork> best_of(const StrategySearch& search) const {
    std::vector<std::pair<double, std::size_t>> first_answers;
    for (std::size_t i = 0; i < strategies_.size(); ++i) {
      if (search.usable(strategies_[i])) first_answers.emplace_back(work_of(search, i, 0).seconds, i);
    }
    HDPSIM_CHECK(!first_answers.empty(), "none of {} strategies holds the batch", strategies_.size());
    std::sort(first_answers.begin(), first_answers.end());
    first_answers.resize(std::min(most_searched, first_answers.size()));
    std::optional<std::pair<std::size_t, StrategyWork>> best;
    for (const auto& [seconds, i] : first_answers) {
      StrategyWork work = work_of(search, i, most_exchanges / std::ssize(first_answers));
      if (!best || work.seconds < best->second.seconds) best.emplace(i, std::move(work));
    }
    return std::move(*best);
  }

  std::vector<PipelineDegrees> candidates_;
  std::vector<std::int64_t> degrees_;  // of pipelines, by kind
  std::vector<Strategy> strategies_;   // of each candidate
  Search search_;
};

/// `hydraulis: {strategies: auto | [[8, 4, 4], ...], pipelines: unlike | alike, search: two_stages | joint}`.
struct HydraulisPolicy final : PolicyOptions {
  std::vector<PipelineDegrees> strategies;  // empty: the usual ones
  Pipelines pipelines = Pipelines::unlike;
  Search search = Search::two_stages;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    std::vector<PipelineDegrees> candidates = strategies;
    if (candidates.empty()) {
      candidates = usual_strategies(pool.context().ranks, pool.least_degree_that_fits("strategies"));
    } else {
      for (std::size_t i = 0; i < candidates.size(); ++i) check_sum(pool, i);
    }
    if (pipelines == Pipelines::alike) {
      std::erase_if(candidates, [](const PipelineDegrees& degrees) { return !are_alike(degrees); });
    }
    if (!strategies.empty()) check_room(pool, candidates);
    return std::make_unique<Hydraulis>(pool.context(), std::move(candidates), search);
  }

 private:
  void check_sum(PoolFit& pool, std::size_t which) const {
    const PipelineDegrees& degrees = strategies[which];
    const std::int64_t ranks = std::accumulate(degrees.begin(), degrees.end(), std::int64_t{0});
    if (ranks == pool.context().ranks) return;
    pool.error(
        pool.where("strategies").items[which],
        fmt::format("the pipelines of a strategy have {} ranks together, the pool has {}", ranks, pool.context().ranks),
        fmt::format("state pipelines of {} ranks, or leave 'strategies' out", pool.context().ranks));
  }

  // Degrees fall, so that the first pipeline of a strategy holds most.
  void check_room(PoolFit& pool, const std::vector<PipelineDegrees>& candidates) const {
    const PlanningContext& context = pool.context();
    std::int64_t widest = 0;
    for (const PipelineDegrees& degrees : candidates) widest = std::max(widest, degrees.front());
    if ((context.context - 1) / context.capacity < widest) return;
    const bool alike = pipelines == Pipelines::alike;
    pool.error(pool.where("strategies"),
               widest == 0
                   ? std::string("no strategy has pipelines that are all alike")
                   : fmt::format("no strategy{} holds a context of {}: its widest pipeline has {} ranks of {} tokens",
                                 alike ? " of pipelines that are all alike" : "", count_text(context.context), widest,
                                 count_text(context.capacity)),
               "add a strategy with a wider pipeline, or leave 'strategies' out");
  }
};

void read_strategies(const Value& value, HydraulisPolicy& policy, Diagnostics& diagnostics) {
  policy.strategies.clear();
  if (value.is_scalar() && value.text == "auto") return;
  const auto is_list = [](const Value& item) { return item.is_sequence() && !item.items.empty(); };
  if (!is_list(value) || !std::all_of(value.items.begin(), value.items.end(), is_list)) {
    diagnostics.error(value.position, "'strategies' is auto, or a list of lists of the ranks of pipelines",
                      "write strategies: [[8, 4, 4], [4, 4, 4, 4]]");
    return;
  }
  for (const Value& item : value.items) {
    PipelineDegrees& degrees = policy.strategies.emplace_back();
    for (const Value& degree : item.items) {
      degrees.push_back(
          read_in<std::int64_t>(degree, "the ranks of a pipeline", {1, limits::most_devices}, diagnostics).value_or(1));
    }
    std::sort(degrees.begin(), degrees.end(), std::greater<>());
  }
}

}  // namespace

std::vector<PipelineDegrees> usual_strategies(std::int64_t ranks, std::int64_t holding) {
  std::vector<PipelineDegrees> all;
  const auto add = [&all](PipelineDegrees degrees) {
    if (std::find(all.begin(), all.end(), degrees) == all.end()) all.push_back(std::move(degrees));
  };
  for (std::int64_t degree = 1; ranks % degree == 0; degree *= 2) add(alike(ranks, degree));
  add(alike(ranks, holding));
  for (std::int64_t other = 1; other < holding && holding % other == 0; other *= 2) {
    add(degrees_beside(ranks, 1, holding, other));
    add(degrees_beside(ranks, std::max<std::int64_t>(1, ranks / 2 / holding), holding, other));
  }
  add(steps(ranks, holding));
  for (std::int64_t degree = 2; degree < holding && ranks % degree == 0; degree *= 2) add(steps(ranks, degree));
  return all;
}

PolicyKind hydraulis_policy() {
  KeyTable<HydraulisPolicy> keys("hydraulis");
  keys.add(
      {"strategies",
       either_shape({word_shape({"auto"}), list_shape(list_shape(count_shape({1, limits::most_devices}, "ranks")))}),
       "auto",
       "the candidates of every step: each is a list of the ranks of its pipelines, which together are the pool; "
       "they are laid out widest first. `auto`: pipelines that are all alike, of every power of two of ranks, and "
       "mixed ones, some as wide as the context needs and the others narrower",
       {.see = "strategies-of-unlike-pipelines"}},
      read_strategies);
  keys.word("pipelines", "way to choose pipelines", {{"unlike", Pipelines::unlike}, {"alike", Pipelines::alike}},
            at(&HydraulisPolicy::pipelines),
            "whether the pipelines of a strategy may differ in degree, or only strategies with equal ones count",
            {.mechanism = "dynamic-groups", .off = "alike"});
  keys.word("search", "search", {{"two_stages", Search::two_stages}, {"joint", Search::joint}},
            at(&HydraulisPolicy::search),
            "sequences go to pipelines by the sum of what they cost, and are then packed, as its authors do; or both "
            "at once, by its authors' price of a step alone, in which every micro-batch of a pipeline lasts as long as "
            "the costliest one",
            {});
  PolicyKind kind = policy_kind(
      "hydraulis",
      "Hydraulis: of several strategies, each a list of pipelines of unlike degrees of context parallelism, "
      "every step has the one that ends first by the policy's own prices; sequences are dispatched to "
      "pipelines, and packed into micro-batches of even work in each. All pipelines have the mesh's tp "
      "and pp: no parameters move between steps, and pipelines of unlike tp or pp are not modelled",
      std::move(keys));
  kind.takes_long = true;
  return kind;
}

}  // namespace hdpsim
