#include "sim/plan/impl/best_plan.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/division.h"
#include "sim/plan/impl/contest.h"
#include "sim/plan/impl/grouped_pool.h"
#include "sim/plan/impl/loads.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/plan_time.h"
#include "sim/plan/step_bounds.h"

namespace hdpsim {
namespace {

/// Constructions of plans in which groups of `size` neighbouring ranks act as one rank.
class Constructions {
 public:
  /// `groups`: in_groups() of `ranks`. The arguments must outlive it.
  Constructions(const PlanningContext& ranks, std::int64_t size, const PlanningContext& groups,
                const BalanceOptions& options, const OrderedBatch& batch)
      : ranks_(ranks),
        size_(size),
        context_(groups),
        options_(options),
        batch_(batch),
        sizing_(groups, options.offload),
        short_(tail()),
        speeds_(groups, batch.step) {}

  /// Rings as wide as they must be to end in time, for a time that grows until all do.
  void widen(std::int64_t most, Contest& contest) const {
    const double least = least_step();
    double shortest = never;
    for (const double share : {1.0, 1.05, 1.12, 1.25, 1.5}) {
      if (most-- == 0 || least * share >= std::min(shortest, contest.limit())) break;
      for (const bool join : {true, false}) {
        if (!join && size_ > 1) continue;
        const BalanceCandidate candidate{.share = least * share, .widen = true, .join = join};
        shortest = std::min(shortest, enter(balance_ranks(balanced(), candidate), contest));
      }
    }
  }

  /// Work in even waves.
  void even(std::int64_t most, Contest& contest) const {
    const double least = least_step();
    const bool leaves_out = speeds_.differ() && context_.expert_ranks == 1;
    for (const double share : {1.0, 1.2}) {
      for (const std::int64_t waves : wave_counts()) {
        if (most-- == 0) return;
        BalanceCandidate candidate{.choice = RankChoice::least_loaded, .share = least * share, .waves = waves};
        (void)enter(balance_waves(balanced(), candidate), contest);
        candidate.rings_on_fast = true;
        if (leaves_out) (void)enter(balance_waves(balanced(), candidate), contest);
      }
    }
  }

 private:
  [[nodiscard]] std::span<const SizedSequence> tail() const {
    const auto is_long = [&](const SizedSequence& each) { return each.tokens >= context_.capacity; };
    const auto first = std::partition_point(batch_.order.begin(), batch_.order.end(), is_long);
    return std::span(batch_.order).subspan(static_cast<std::size_t>(first - batch_.order.begin()));
  }

  [[nodiscard]] BalancedStep balanced() const {
    return {context_, options_, batch_.order, short_, speeds_, batch_.step};
  }

  // All work spread evenly, or the longest sequence on the ranks on which it ends first.
  [[nodiscard]] double least_step() const {
    const double even = balanced_shares(batch_.batch, context_, sizing_).step;
    const std::int64_t longest = batch_.order.front().tokens;
    RingSize size = longest < context_.capacity ? sizing_.pack_size() : sizing_.size(longest, 0);
    size.degree = sizing_.narrowest_within(longest, size, even, context_.ranks);
    return std::max(even, sizing_.seconds(longest, size, size.degree <= context_.ranks_per_node));
  }

  // From as few waves as hold the tokens.
  [[nodiscard]] std::vector<std::int64_t> wave_counts() const {
    const std::int64_t fewest = divided(batch_.tokens, context_.capacity * context_.ranks);
    std::vector<std::int64_t> counts;
    for (const std::int64_t tenths : {10, 15, 20, 30, 50}) counts.push_back(divided(fewest * tenths, 10));
    for (std::int64_t more = 1; more <= 2; ++more) counts.push_back(fewest + more);
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    return counts;
  }

  double enter(BalanceOutcome outcome, Contest& contest) const {
    const double seconds = outcome.step;
    if (seconds >= contest.limit()) return seconds;
    PlanBuilder builder("hdp-balance", context_, batch_.batch, batch_.step);
    contest.enter(on_ranks(outcome.take_plan(std::move(builder)), size_, ranks_));
    return seconds;
  }

  const PlanningContext& ranks_;  // of the pool
  std::int64_t size_;
  const PlanningContext& context_;  // of the groups
  const BalanceOptions& options_;
  const OrderedBatch& batch_;
  RingSizing sizing_;
  ShortSequences short_;
  KnownSpeeds speeds_;
};

PlanningContext in_one_way(PlanningContext context) {
  context.work.others.clear();
  return context;
}

PlanningContext in_any_way(PlanningContext context) {
  const auto work = context.work_in_any_way ? context.work_in_any_way() : nullptr;
  if (work) context.work = *work;
  return context;
}

/// What proposes plans whose ranks hold at most so many tokens.
class Proposers {
 public:
  /// `context`: with that capacity. `position`: where a study asks for the policy.
  Proposers(const PlanningContext& context, const BalanceOptions& options, const MakeAlgorithm& make_algorithm,
            PlanSearch search, const Position& position)
      : context_(context),
        as_authors_know_it_(in_one_way(context)),
        options_(options),
        group_sizes_(group_sizes(context_)),
        algorithm_(make_algorithm(context_)),
        naive_(make_hdp_naive(context_, {DealOrder::descending, options.offload})) {
    for (const std::int64_t cp : degrees_that_hold_the_context()) {
      for (const DealOrder order : {DealOrder::data, DealOrder::descending}) {
        meshes_.emplace_back(cp, make_static(context_, {.cp = cp, .order = order, .offload = options.offload}));
      }
    }
    if (search == PlanSearch::all) add_others(position);
  }

  [[nodiscard]] const Planner& algorithm() const { return *algorithm_; }
  [[nodiscard]] bool hold(std::int64_t tokens) const { return tokens <= context_.capacity * context_.ranks; }

  void propose(const OrderedBatch& batch, const Effort& effort, Contest& contest) const {
    enter(*algorithm_, batch, contest);
    construct(batch, effort, contest);
    if (is_promising(context_, batch, effort, contest)) enter(*naive_, batch, contest);
    for (const auto& [cp, mesh] : meshes_) {
      if (is_promising(in_groups(context_, cp, batch), batch, effort, contest)) enter(*mesh, batch, contest);
    }
  }

  /// The plans of other policies.
  void propose_others(const OrderedBatch& batch, const Effort& effort, Contest& contest) const {
    for (const auto& other : others_) enter(*other, batch, contest);
    if (!in_waves() && !effort.asks_all_others()) return;
    for (const auto& other : long_others_) enter(*other, batch, contest);
  }

  /// Whether ranks wait for each other, in pipelines or in waves of experts.
  [[nodiscard]] bool in_waves() const { return context_.stages > 1 || context_.expert_ranks > 1; }

 private:
  // Those of groups that suit the nodes, and the least.
  [[nodiscard]] std::set<std::int64_t> degrees_that_hold_the_context() const {
    const auto holds = [&](std::int64_t degree) { return degree * context_.capacity >= context_.context; };
    std::set<std::int64_t> degrees;
    std::copy_if(group_sizes_.begin(), group_sizes_.end(), std::inserter(degrees, degrees.end()), holds);
    std::int64_t least = divided(context_.context, context_.capacity);
    while (least < context_.ranks && context_.ranks % least != 0) ++least;
    if (least <= context_.ranks) degrees.insert(least);
    return degrees;
  }

  void construct(const OrderedBatch& batch, const Effort& effort, Contest& contest) const {
    const std::int64_t most = effort.times(30);
    for (const std::int64_t size : group_sizes_) {
      const PlanningContext groups = in_groups(context_, size, batch);
      if (!is_promising(groups, batch, effort, contest)) continue;
      const Constructions constructions(context_, size, groups, options_, batch);
      constructions.widen(most, contest);
      if (in_waves()) constructions.even(most, contest);
    }
  }

  // Whether these groups, with all that they compute spread evenly, end earlier than the best plan so far.
  static bool is_promising(const PlanningContext& groups, const OrderedBatch& batch, const Effort& effort,
                           const Contest& contest) {
    constexpr double worth_the_effort = 0.98;
    const double seconds = groups.work.compute_seconds(batch.pairs, batch.tokens);
    const double share = seconds / static_cast<double>(groups.ranks);
    return share < contest.shortest() * (effort.asks_others() ? 1 : worth_the_effort);
  }

  static void enter(const Planner& planner, const OrderedBatch& batch, Contest& contest) {
    try {
      contest.enter(planner.plan(batch.batch, batch.step));
    } catch (const InputError&) {  // it has no plan of this batch
    }
  }

  // The other policies with their defaults, as far as they suit the pool.
  void add_others(const Position& position) {
    for (const PolicyKind& kind : policies()) {
      if (kind.name == "hdp-balance" || kind.name == "hdp-naive" || kind.name == "static") continue;
      Diagnostics found;
      const Value no_options = Value::map(position);
      const auto options = kind.read(no_options, found);
      PoolFit pool(no_options, as_authors_know_it_, found);
      auto planner = options->planner(pool);
      if (found.empty()) (kind.takes_long ? long_others_ : others_).push_back(std::move(planner));
    }
  }

  PlanningContext context_;
  PlanningContext as_authors_know_it_;  // of whom none chooses how groups share
  BalanceOptions options_;
  std::vector<std::int64_t> group_sizes_;
  std::unique_ptr<Planner> algorithm_;
  std::unique_ptr<Planner> naive_;
  std::vector<std::pair<std::int64_t, std::unique_ptr<Planner>>> meshes_;  // by cp
  std::vector<std::unique_ptr<Planner>> others_;
  // Those that take long have found better packs for ranks that wait for each other, and little elsewhere.
  std::vector<std::unique_ptr<Planner>> long_others_;
};

PlanningContext with_capacity(PlanningContext context, std::int64_t capacity) {
  context.capacity = capacity;
  return context;
}

class BestPlan final : public Planner {
 public:
  BestPlan(const PoolFit& pool, const BalanceOptions& options, const MakeAlgorithm& make_algorithm, PlanSearch search)
      : is_quick_(search == PlanSearch::quick),
        context_(search == PlanSearch::own ? pool.context() : in_any_way(pool.context())),
        full_(context_, options, make_algorithm, search, pool.position()) {
    if (is_quick_) return;
    constexpr std::int64_t least_part = 32;
    const bool asks = Effort{context_.ranks}.asks_others();  // in some batch
    for (std::int64_t part = 2; asks && part <= least_part; part *= 2) {
      const PlanningContext less = with_capacity(context_, divided(context_.capacity, part));
      less_full_.emplace_back(less, options, make_algorithm, search, pool.position());
    }
    if (context_.work.others.empty()) return;
    one_way_ = in_one_way(context_);
    in_one_way_.emplace(one_way_, options, make_algorithm, PlanSearch::own, pool.position());
  }

  [[nodiscard]] bool may_refuse() const override { return false; }

  Plan plan(const Batch& batch, std::int64_t step) const override {
    if (batch.sequences.empty()) return full_.algorithm().plan(batch, step);
    const Effort effort{std::ssize(batch.sequences) + context_.ranks, is_quick_};
    const OrderedBatch ordered(batch, step);
    Contest contest(context_, effort);
    full_.propose(ordered, effort, contest);
    const bool asks = effort.asks_others() && !is_near_the_bound(batch, contest);
    if (asks) ask(ordered, effort, contest);
    Plan best = contest.take();
    if (asks && in_one_way_) best = shorter(std::move(best), best_in_one_way(ordered, effort));
    best.policy = "hdp-balance";
    best.capacity = context_.capacity;
    return best;
  }

 private:
  // In a contest of its own: where estimates are far from simulated steps, as of a pipeline's, those of other ways
  // would keep it out.
  [[nodiscard]] Plan best_in_one_way(const OrderedBatch& batch, const Effort& effort) const {
    Contest contest(one_way_, effort);
    in_one_way_->propose(batch, effort, contest);
    return contest.take();
  }

  [[nodiscard]] Plan shorter(Plan a, Plan b) const {
    const auto seconds = [&](const Plan& plan) {
      if (context_.simulated_seconds) return context_.simulated_seconds(plan);
      return plan_time(plan, context_.work).step(context_.stages);
    };
    return seconds(b) < seconds(a) ? std::move(b) : std::move(a);
  }

  // Where the plan of many sequences is so near its bound, it is not worth the time that other policies take.
  [[nodiscard]] bool is_near_the_bound(const Batch& batch, const Contest& contest) const {
    constexpr double near = 1.015;
    constexpr std::int64_t many = 256;
    if (std::ssize(batch.sequences) < many) return false;
    const BoundedPool pool{.ranks = context_.ranks, .capacity = context_.capacity, .stages = context_.stages};
    return contest.shortest() <= near * step_bounds(batch, pool, context_.work).step();
  }

  // Policies fill ranks as far as they can. What suits ranks that hold less often suits pipelines, which then have more
  // and shorter micro-batches, and keeps a device with more memory from being slower than one with less. Elsewhere less
  // and less is tried as long as it helps.
  void ask(const OrderedBatch& batch, const Effort& effort, Contest& contest) const {
    full_.propose_others(batch, effort, contest);
    if (in_one_way_) in_one_way_->propose(batch, effort, contest);
    for (const Proposers& less_full : less_full_) {
      if (!less_full.hold(batch.order.front().tokens)) return;
      const double before = contest.shortest();
      less_full.propose(batch, effort, contest);
      less_full.propose_others(batch, effort, contest);
      if (!full_.in_waves() && contest.shortest() >= before) return;
    }
  }

  bool is_quick_;
  PlanningContext context_;
  PlanningContext one_way_;  // with in_one_way_
  Proposers full_;
  std::vector<Proposers> less_full_;     // with a half, a quarter, ... of the capacity
  std::optional<Proposers> in_one_way_;  // where groups may choose: other sizes of groups suit one way
};

}  // namespace

std::unique_ptr<Planner> make_best_plan(const PoolFit& pool, const BalanceOptions& options,
                                        const MakeAlgorithm& make_algorithm, PlanSearch search) {
  return std::make_unique<BestPlan>(pool, options, make_algorithm, search);
}

}  // namespace hdpsim
