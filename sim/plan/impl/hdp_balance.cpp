#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/division.h"
#include "sim/plan/impl/balance.h"
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

  /// A plan of another policy.
  struct Other {
    Plan plan;
    double step;
  };
  void add(Other other) {
    if (other.step < shortest() / same_step_) other_ = std::move(other);
  }

  /// True if a plan of at least `bound` seconds may be shorter than the best by more than what counts as equal.
  [[nodiscard]] bool may_be_shortened_to(double bound) const { return shortest() > same_step_ * bound; }

  /// `builder`: of an empty plan.
  Plan take(PlanBuilder builder) {
    if (other_) return std::move(other_->plan);
    const double most = same_step_ * shortest();
    std::erase_if(kept_, [&](const BalanceOutcome& kept) { return kept.step > most; });
    const auto better = [this](const BalanceOutcome& a, const BalanceOutcome& b) { return is_better(a, b); };
    return std::min_element(kept_.begin(), kept_.end(), better)->take_plan(std::move(builder));
  }

 private:
  [[nodiscard]] double shortest() const {
    if (other_) return other_->step;
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
  std::optional<Other> other_;
};

// The least divisor of `number` that is at least `least`; more than `number` if there is none.
std::int64_t least_divisor(std::int64_t number, std::int64_t least) {
  while (least <= number && number % least != 0) ++least;
  return least;
}

// No rule is best for every batch: it tries a few, and the work model selects the best.
class HdpBalance final : public Planner {
 public:
  HdpBalance(const PlanningContext& context, const BalanceOptions& options)
      : context_(context),
        options_(options),
        cp_(least_divisor(context.ranks, divided(context.context, context.capacity))) {
    if (options.fallback) naive_ = make_hdp_naive(context, {DealOrder::descending, options.offload});
    if (options.fallback && cp_ <= context.ranks)
      static_ = make_static(context, {.cp = cp_, .order = DealOrder::descending, .offload = options.offload});
    const bool in_waves = context.stages > 1 || context.expert_ranks > 1;
    if (!options.balance) options_.balance = in_waves ? Balance::pp : Balance::dp;
  }

  [[nodiscard]] bool may_refuse() const override { return false; }
  Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder("hdp-balance", context_, batch, step);
    const SizedList order = sized_longest_first(batch);
    const auto is_long = [&](const SizedSequence& each) { return each.tokens >= context_.capacity; };
    const ShortSequences short_sequences({std::partition_point(order.begin(), order.end(), is_long), order.end()});
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
    const double static_time = static_ ? static_bound(batch) : share;
    if (!best.may_be_shortened_to(std::min(share, static_time))) return best.take(std::move(builder));
    // These numbers of ranks per sequence do not depend on the speeds.
    double bound = bounds_with(batch, context_, {}, context_.capacity).step();
    const double longer = static_cast<double>(context_.ranks) / speeds.sum(context_.ranks);
    for (const std::int64_t tokens : sizes) {
      const Bounds fewer = bounds_with(batch, context_, options_.offload, tokens);
      bound = std::min(bound, fewer.step());
      if (!best.may_be_shortened_to(fewer.step() * longer)) continue;
      add({.share = fewer.share * longer, .tokens_per_rank = tokens});
    }
    if (speeds.differ()) return best.take(std::move(builder));
    // The sizes of hdp-naive are those above: if the best is near their bound, hdp-naive gains nothing.
    constexpr double much = 1.04;
    if (naive_ && best.may_be_shortened_to(much * bound)) best.add(planned(*naive_, batch, step));
    if (static_ && best.may_be_shortened_to(static_time)) best.add(planned(*static_, batch, step));
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
    for (BalanceCandidate& candidate : candidates) candidate.share *= longer;
    if (!speeds.differ() || options_.balance == Balance::pp) return candidates;
    for (std::size_t i = 0, count = candidates.size(); i < count; ++i) {
      candidates.push_back(candidates[i]);
      candidates.back().rings_on_fast = true;
    }
    return candidates;
  }

  // Policies that ignore loads sometimes have fewer micro-batches, or rings that stay in their nodes.
  BestOutcome::Other planned(const Planner& policy, const Batch& batch, std::int64_t step) const {
    Plan plan = policy.plan(batch, step);
    plan.policy = "hdp-balance";
    const double seconds = plan_time(plan, context_.work).step(context_.stages);
    return {std::move(plan), seconds};
  }

  // A lower bound of the static plan: all sequences on rings of cp ranks, spread evenly.
  double static_bound(const Batch& batch) const {
    double area = 0;
    for (const Sequence& sequence : batch.sequences) area += causal_pairs(sequence.tokens);
    const double groups = static_cast<double>(context_.ranks) / static_cast<double>(cp_);
    const bool near = cp_ <= context_.work.ranks_per_node;
    return context_.work.without_fixed_costs().seconds(area, batch.tokens(), cp_, near) / groups;
  }

  PlanningContext context_;
  BalanceOptions options_;
  std::int64_t cp_;
  std::unique_ptr<Planner> naive_;   ///< Null without fallback.
  std::unique_ptr<Planner> static_;  ///< Null without fallback, or if no mesh holds the context.
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
  GroupSizes groups = GroupSizes::by_length;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    BalanceOptions made = static_cast<const BalanceOptions&>(*this);
    made.offload = pool.fitting(offload);
    if (rule == BalanceRule::dp) made.balance = Balance::dp;
    if (rule == BalanceRule::pp) made.balance = Balance::pp;
    if (groups == GroupSizes::uniform) return make_uniform(pool, made.offload);
    if (rule == BalanceRule::none) return make_hdp_naive(pool.context(), {DealOrder::data, made.offload});
    return std::make_unique<HdpBalance>(pool.context(), made);
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
  keys.flag("fallback", at(&BalancePolicy::fallback),
            "the plan of hdp-naive or static is taken where it is shorter by more than the margin");
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
