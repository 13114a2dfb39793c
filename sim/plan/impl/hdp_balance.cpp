#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/plan/impl/balance.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/plan_time.h"

namespace hdpsim {
namespace {

// Steps within 1 % of the shortest are the same to this model. Of those the shortest whose ranks end together, within
// 3 %; if there is none, the one whose ranks end the closest. The first among equals.
class BestOutcome {
 public:
  // Plans of large pools are large: keeps only those that may still turn out the best. One that is no shorter and no
  // better than another one never does.
  void add(BalanceOutcome made) {
    const auto excludes = [](const BalanceOutcome& a, const BalanceOutcome& b) {
      return a.step <= b.step && !is_better(b, a);
    };
    if (std::any_of(kept_.begin(), kept_.end(), [&](const BalanceOutcome& kept) { return excludes(kept, made); }))
      return;
    std::erase_if(kept_, [&](const BalanceOutcome& kept) { return excludes(made, kept); });
    kept_.push_back(std::move(made));
  }

  [[nodiscard]] double shortest() const {
    const auto shorter = [](const BalanceOutcome& a, const BalanceOutcome& b) { return a.step < b.step; };
    return std::min_element(kept_.begin(), kept_.end(), shorter)->step;
  }

  Plan take() {
    const double most = same_step * shortest();
    std::erase_if(kept_, [&](const BalanceOutcome& kept) { return kept.step > most; });
    return std::min_element(kept_.begin(), kept_.end(), is_better)->take_plan();
  }

  static constexpr double same_step = 1.01;

 private:
  // Of two whose steps are the same.
  static bool is_better(const BalanceOutcome& a, const BalanceOutcome& b) {
    constexpr double together = 0.03;
    if (a.spread <= together && b.spread <= together) return a.step < b.step;
    return a.spread < b.spread;
  }

  std::vector<BalanceOutcome> kept_;
};

// No rule is best for every batch: a few are tried, and the work model judges.
class HdpBalance final : public Planner {
 public:
  HdpBalance(const PlanningContext& context, const BalanceOptions& options)
      : context_(context),
        options_(options),
        simpler_(options.fallback ? simpler_policies(context, options.offload) : Planners{}) {
    const bool in_waves = context.stages > 1 || context.expert_ranks > 1;
    if (!options.balance) options_.balance = in_waves ? Balance::pp : Balance::dp;
  }

  Plan plan(const Batch& batch, std::int64_t step) const override {
    const SequenceList order = longest_first(batch);
    const KnownSpeeds speeds(context_, step);
    const BalancedStep balanced{context_, options_, batch, order, speeds, step};
    BestOutcome best;
    double least_share = std::numeric_limits<double>::infinity();
    const auto add = [&](const BalanceCandidate& candidate) {
      best.add(options_.balance == Balance::pp ? balance_waves(balanced, candidate)
                                               : balance_ranks(balanced, candidate));
      least_share = std::min(least_share, candidate.share);
    };
    for (const BalanceCandidate& candidate : candidates(batch, speeds)) add(candidate);
    for (const std::int64_t tokens : offloaded_tokens(context_, options_.offload)) {
      const BalanceCandidate fewer = with_tokens_per_rank(tokens, batch, speeds);
      if (best.shortest() > BestOutcome::same_step * fewer.longest_seconds) add(fewer);
    }
    const bool may_be_shorter = best.shortest() > BestOutcome::same_step * least_share && !speeds.differ();
    return may_be_shorter ? shorter_of(best, batch, step) : best.take();
  }

 private:
  // As many ranks a sequence as without offload. With it, a sequence may also take the whole step on few ranks, which
  // wastes nothing where such sequences fit side by side; or no longer than the mean micro-batch, which leaves more
  // small pieces to even out with. Where ranks are known to be slow, each of these also without them in rings.
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

  // How many ranks a sequence gets then does not hang on how fast anything is. No such plan is shorter than its share,
  // nor than its longest ring.
  BalanceCandidate with_tokens_per_rank(std::int64_t tokens_per_rank, const Batch& batch,
                                        const KnownSpeeds& speeds) const {
    const RingSizing sizing(context_, options_.offload);
    double all = 0;
    double longest = 0;
    for (const Sequence& sequence : batch.sequences) {
      const std::int64_t tokens = sequence.tokens;
      if (tokens < context_.capacity) {
        all += context_.work.compute_seconds(causal_pairs(tokens), tokens);
        continue;
      }
      const RingSize size = sizing.size_of(tokens, tokens_per_rank);
      const double work = sizing.work(tokens, size);
      all += work;
      longest = std::max(longest, work / static_cast<double>(size.degree));
    }
    const double share = all / speeds.sum(context_.ranks);
    return {.longest_seconds = std::max(longest, share), .share = share, .tokens_per_rank = tokens_per_rank};
  }

  Plan shorter_of(BestOutcome& best, const Batch& batch, std::int64_t step) const {
    std::optional<Plan> shorter;
    double shortest = best.shortest() / BestOutcome::same_step;
    for (const auto& policy : simpler_) {
      Plan plan = policy->plan(batch, step);
      const double seconds = plan_time(plan, context_.work).step(context_.stages);
      if (seconds >= shortest) continue;
      shortest = seconds;
      shorter = std::move(plan);
    }
    if (!shorter) return best.take();
    shorter->policy = "hdp-balance";
    return *std::move(shorter);
  }

  using Planners = std::vector<std::unique_ptr<Planner>>;
  static Planners simpler_policies(const PlanningContext& context, const OffloadRule& offload) {
    Planners policies;
    policies.push_back(make_hdp_naive(context, {.order = DealOrder::descending, .offload = offload}));
    std::int64_t cp = (context.context - 1) / context.capacity + 1;
    while (cp <= context.ranks && context.ranks % cp != 0) ++cp;
    if (cp <= context.ranks) policies.push_back(make_static(context, {.cp = cp, .order = DealOrder::descending}));
    return policies;
  }

  PlanningContext context_;
  BalanceOptions options_;
  Planners simpler_;
};

}  // namespace

std::unique_ptr<Planner> make_hdp_balance(const PlanningContext& context, const BalanceOptions& options) {
  return std::make_unique<HdpBalance>(context, options);
}

}  // namespace hdpsim
