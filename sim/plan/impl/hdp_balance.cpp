#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/division.h"
#include "sim/plan/impl/balance.h"
#include "sim/plan/impl/best_plan.h"
#include "sim/plan/impl/loads.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/plan_time.h"

namespace hdpsim {
namespace {

// Steps within `margin` of the shortest count as equal. Among those it chooses the shortest whose ranks end within
// `spread` of each other; if there is none, the one whose ranks end closest together. The first among equals.
class BestOutcome {
 public:
  BestOutcome(double margin, double spread) : same_step_(1 + margin), together_(spread) {}

  // Plans of large pools are large: keeps only those that may still turn out the best. One that is neither shorter nor
  // better than another never does.
  void add(BalanceOutcome made) {
    const auto excludes = [this](const BalanceOutcome& a, const BalanceOutcome& b) {
      return a.step <= b.step && !is_better(b, a);
    };
    if (std::any_of(kept_.begin(), kept_.end(), [&](const BalanceOutcome& kept) { return excludes(kept, made); }))
      return;
    std::erase_if(kept_, [&](const BalanceOutcome& kept) { return excludes(made, kept); });
    kept_.push_back(std::move(made));
  }

  /// True if a plan of at least `bound` seconds may be shorter than the best by more than what counts as equal.
  [[nodiscard]] bool may_be_shortened_to(double bound) const { return shortest() > same_step_ * bound; }

  /// `builder`: of an empty plan.
  Plan take(PlanBuilder builder) {
    const double most = same_step_ * shortest();
    std::erase_if(kept_, [&](const BalanceOutcome& kept) { return kept.step > most; });
    const auto better = [this](const BalanceOutcome& a, const BalanceOutcome& b) { return is_better(a, b); };
    return std::min_element(kept_.begin(), kept_.end(), better)->take_plan(std::move(builder));
  }

 private:
  [[nodiscard]] double shortest() const {
    const auto shorter = [](const BalanceOutcome& a, const BalanceOutcome& b) { return a.step < b.step; };
    return std::min_element(kept_.begin(), kept_.end(), shorter)->step;
  }

  // Compares two whose steps count as equal.
  [[nodiscard]] bool is_better(const BalanceOutcome& a, const BalanceOutcome& b) const {
    if (a.spread <= together_ && b.spread <= together_) return a.step < b.step;
    return a.spread < b.spread;
  }

  double same_step_;
  double together_;
  std::vector<BalanceOutcome> kept_;
};

// No rule is best for every batch: it tries a few, and the work model selects the best.
class AlgorithmTwo final : public Planner {
 public:
  AlgorithmTwo(const PlanningContext& context, const BalanceOptions& options) : context_(context), options_(options) {
    const bool in_waves = context.stages > 1 || context.expert_ranks > 1;
    if (!options.balance) options_.balance = in_waves ? Balance::pp : Balance::dp;
  }

  [[nodiscard]] bool may_refuse() const override { return false; }
  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("hdp-balance", context_, batch, step);
    const SizedList order = sized_longest_first(batch);
    const auto is_long = [&](const SizedSequence& each) { return each.tokens >= context_.capacity; };
    const auto first_short = std::partition_point(order.begin(), order.end(), is_long);
    const std::span<const SizedSequence> all = order;
    const ShortSequences short_sequences(all.subspan(static_cast<std::size_t>(first_short - order.begin())));
    const KnownSpeeds speeds(context_, step);
    const BalancedStep balanced{context_, options_, order, short_sequences, speeds, step};
    BestOutcome best(options_.margin, options_.spread);
    const auto add = [&](const BalanceCandidate& candidate) {
      best.add(options_.balance == Balance::pp ? balance_waves(balanced, candidate)
                                               : balance_ranks(balanced, candidate));
    };
    double share = never;
    for (const BalanceCandidate& candidate : candidates(batch, speeds)) {
      add(candidate);
      share = std::min(share, candidate.share);
    }
    const std::vector<std::int64_t> sizes = offloaded_tokens(context_, options_.offload);
    if (!sizes.empty()) share = std::min(share, bounds_with(batch, context_, options_.offload, sizes.back()).share);
    if (!best.may_be_shortened_to(share)) return best.take(std::move(builder));
    const double longer = static_cast<double>(context_.ranks) / speeds.sum(context_.ranks);
    for (const std::int64_t tokens : sizes) {
      const Bounds fewer = bounds_with(batch, context_, options_.offload, tokens);
      if (!best.may_be_shortened_to(fewer.step() * longer)) continue;
      add({.share = fewer.share * longer,
           .tokens_per_rank = tokens,
           .widen = options_.widen,
           .join = options_.pack_groups});
    }
    return best.take(std::move(builder));
  }

 private:
  // Candidates with the same number of ranks per sequence as without offload. With offload, a sequence may also take
  // the whole step on few ranks, which wastes nothing if such sequences fit side by side; or at most the time of the
  // mean micro-batch, which leaves more small pieces for balancing. If ranks are known to be slow, each candidate is
  // also tried with rings on fast ranks only.
  std::vector<BalanceCandidate> candidates(const Batch& batch, const KnownSpeeds& speeds) const {
    constexpr double as_without = 0;
    const Shares plain = balanced_shares(batch, context_, RingSizing(context_, {}));
    std::vector<BalanceCandidate> candidates{{RankChoice::least_wait, as_without, plain.step},
                                             {RankChoice::least_loaded, as_without, plain.step}};
    if (options_.offload.mode != OffloadRule::Mode::none) {
      const Shares shares = balanced_shares(batch, context_, RingSizing(context_, options_.offload));
      candidates.push_back({RankChoice::least_wait, shares.micro_batch, shares.step});
      candidates.push_back({RankChoice::least_wait, shares.step, shares.step});
    }
    const double longer = static_cast<double>(context_.ranks) / speeds.sum(context_.ranks);
    for (BalanceCandidate& candidate : candidates) {
      candidate.share *= longer;
      candidate.widen = options_.widen;
      candidate.join = options_.pack_groups;
    }
    if (!speeds.differ() || context_.expert_ranks > 1) return candidates;  // those of experts run in lockstep
    for (std::size_t i = 0, count = candidates.size(); i < count; ++i) {
      candidates.push_back(candidates[i]);
      candidates.back().rings_on_fast = true;
    }
    return candidates;
  }

  PlanningContext context_;
  BalanceOptions options_;
};

/// How `hdp-balance` evens out loads; see BalanceOptions.
enum class BalanceRule : std::uint8_t {
  automatic,  ///< `pp` in pipelines of more than one stage and with expert groups over several ranks, otherwise `dp`.
  dp,
  pp,
  none,  ///< No balancing, which makes the policy hdp-naive with the same offload.
};

/// `hdp-balance`: the options of its planner, but for `balance`, which is decided for the pool.
struct BalancePolicy final : PolicyOptions, BalanceOptions {
  BalanceRule rule = BalanceRule::automatic;
  std::optional<PlanSearch> search;  ///< Empty: all, or none where an option of the algorithm is stated.
  GroupSizes groups = GroupSizes::by_length;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    BalanceOptions made = static_cast<const BalanceOptions&>(*this);
    made.offload = pool.fitting(offload);
    if (rule == BalanceRule::dp) made.balance = Balance::dp;
    if (rule == BalanceRule::pp) made.balance = Balance::pp;
    if (groups == GroupSizes::uniform) return make_uniform(pool, made.offload);
    if (rule == BalanceRule::none) return make_hdp_naive(pool.context(), {DealOrder::data, made.offload});
    const auto algorithm = [&](const PlanningContext& context) {
      return std::make_unique<AlgorithmTwo>(context, made);
    };
    const PlanSearch searched = search.value_or(states_algorithm(pool) ? PlanSearch::none : PlanSearch::all);
    if (searched == PlanSearch::none) return algorithm(pool.context());
    return make_best_plan(pool, made, algorithm, searched);
  }

 private:
  static bool states_algorithm(const PoolFit& pool) {
    const auto names = {"balance", "buckets", "delta", "margin", "pack_groups", "placement", "spread", "widen"};
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return pool.states(name); });
  }
};

}  // namespace

PolicyKind hdp_balance_policy() {
  KeyTable<BalancePolicy> keys("hdp-balance");
  keys.count("buckets", {1, 1e6}, at(&BalancePolicy::buckets), "buckets of equal work into which sequences are sorted",
             {.unit = "buckets"});
  keys.number("delta", {1e-4, 1}, at(&BalancePolicy::delta),
              "the share of the balanced step by which loads must differ to count as different");
  add_offload(keys);
  keys.word(
      "balance", "balance",
      {{"auto", BalanceRule::automatic}, {"dp", BalanceRule::dp}, {"pp", BalanceRule::pp}, {"none", BalanceRule::none}},
      at(&BalancePolicy::rule),
      "DP-Balance, PP-Balance, or hdp-naive with the same offload (`none`); `auto`: `pp` for pipelines of more "
      "than one stage and for expert groups over several ranks",
      {.mechanism = "balance", .off = "none"});
  keys.word("placement", "placement", {{"node-first", true}, {"any", false}}, at(&BalancePolicy::node_first),
            "which ranks a group gets: whole nodes first, or the lowest");
  keys.flag("pack_groups", at(&BalancePolicy::pack_groups), "short sequences may join rings");
  keys.flag("widen", at(&BalancePolicy::widen),
            "a ring that would end late may take more ranks than its length asks for");
  keys.word(
      "search", "search",
      {{"auto", std::optional<PlanSearch>{}},
       {"none", PlanSearch::none},
       {"own", PlanSearch::own},
       {"quick", PlanSearch::quick},
       {"all", PlanSearch::all}},
      at(&BalancePolicy::search),
      "whose plans compete, in a simulated step: those of the algorithm alone (`none`), of other constructions and "
      "static meshes, too (`own`), of every other policy, too, for small batches (`all`), and then each group shares a "
      "sequence in the way that takes it least, of those for which devices have room; `quick`: as `all` with few plans "
      "of each kind and none of others, for plans that are only compared; `auto`: `all`, or `none` where an option of "
      "the algorithm is stated");
  keys.number("margin", {0, 1}, at(&BalancePolicy::margin),
              "the share by which the times of two plans must differ to count as different: the work model knows no "
              "better");
  keys.number("spread", {0, 1}, at(&BalancePolicy::spread),
              "of plans that take equally long, those are preferred whose ranks end within this share of the step of "
              "each other: what the work model misses then delays few ranks");
  add_groups(keys);
  return policy_kind("hdp-balance",
                     "ByteScale, Algorithm 2: groups as in hdp-naive, with the loads of all ranks evened out",
                     std::move(keys));
}

}  // namespace hdpsim
