#include "sim/plan/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/quantity_text.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

/// Checks a policy's options against a pool and a context, and makes its planner.
class PlannerMaker {
 public:
  PlannerMaker(const Policy& policy, const PlanningContext& context, Diagnostics& diagnostics)
      : stated_(policy.stated), context_(context), diagnostics_(diagnostics) {}

  std::unique_ptr<Planner> operator()(const StaticPolicy& policy) {
    return make_static(context_,
                       {policy.cp ? checked_degree(*policy.cp) : least_degree_that_fits(where("cp")), policy.order});
  }

  std::unique_ptr<Planner> operator()(const NaivePolicy& policy) {
    const NaiveOptions options{policy.order, fitting(policy.offload)};
    if (policy.groups == GroupSizes::uniform) return uniform();
    return make_hdp_naive(context_, options);
  }

  std::unique_ptr<Planner> operator()(const BalancePolicy& policy) {
    BalanceOptions options{.buckets = policy.buckets,
                           .delta = policy.delta,
                           .offload = fitting(policy.offload),
                           .balance = {},
                           .node_first = policy.node_first,
                           .pack_groups = policy.pack_groups,
                           .widen = policy.widen,
                           .fallback = policy.fallback,
                           .margin = policy.margin,
                           .spread = policy.spread};
    if (policy.balance == BalanceRule::dp) options.balance = Balance::dp;
    if (policy.balance == BalanceRule::pp) options.balance = Balance::pp;
    if (policy.groups == GroupSizes::uniform) return uniform();
    if (policy.balance == BalanceRule::none) return make_hdp_naive(context_, {DealOrder::data, options.offload});
    return make_hdp_balance(context_, options);
  }

 private:
  // The static mesh with the degree that the longest sequence needs.
  std::unique_ptr<Planner> uniform() {
    return make_static(context_, {least_degree_that_fits(where("groups")), DealOrder::data});
  }

  // The value of an option, or that of the policy if the option is not stated.
  [[nodiscard]] const Value& where(std::string_view option) const {
    const Value* found = stated_.find(option);
    return found == nullptr ? stated_ : *found;
  }

  std::int64_t checked_degree(std::int64_t degree) {
    const Value& cp = where("cp");
    if (degree > context_.ranks) {
      error(cp, fmt::format("'cp' is {}, it must be auto or from 1 to {}", cp.text, context_.ranks), divisors_text());
    } else if (context_.ranks % degree != 0) {
      error(cp, fmt::format("'cp' is {}, which does not divide the pool of {} ranks", degree, context_.ranks),
            divisors_text());
    } else if (degree < least_ranks_for_context(context_.capacity)) {
      error(cp,
            fmt::format("'cp' is {}: {} ranks of {} tokens do not hold a context of {}", degree, degree,
                        count_text(context_.capacity), count_text(context_.context)),
            "use more ranks, or auto");
    }
    return degree;
  }

  std::int64_t least_degree_that_fits(const Value& where) {
    const std::int64_t least = least_ranks_for_context(context_.capacity);
    for (const std::int64_t degree : divisors()) {
      if (degree >= least) return degree;
    }
    does_not_fit(where, context_.capacity);
    return 1;
  }

  std::int64_t least_ranks_for_context(std::int64_t tokens_per_rank) const {
    return (context_.context - 1) / tokens_per_rank + 1;
  }

  std::vector<std::int64_t> divisors() const {
    std::vector<std::int64_t> found;
    for (std::int64_t divisor = 1; divisor <= context_.ranks; ++divisor) {
      if (context_.ranks % divisor == 0) found.push_back(divisor);
    }
    return found;
  }

  std::string divisors_text() const { return fmt::format("it can be {}", fmt::join(divisors(), ", ")); }

  // The rule as far as the cluster and the model support it.
  OffloadRule fitting(const OffloadRule& stated) {
    const OffloadRule rule = allowed(stated);
    const std::int64_t most = RingSizing(context_, rule).most_tokens_per_rank();
    if (least_ranks_for_context(most) > context_.ranks) does_not_fit(where("offload"), most);
    return rule;
  }

  OffloadRule allowed(const OffloadRule& stated) {
    using Mode = OffloadRule::Mode;
    const bool has_host = context_.host_tokens.value_or(0) > 0 && context_.work.offload_per_token > 0;
    if (stated.mode == Mode::none || (stated.mode == Mode::automatic && !has_host)) return {};
    const Value& value = where("offload");
    if (!has_host) {
      error(value, fmt::format("'offload' is {}, but the cluster has no host memory to copy to", value.text),
            "give the nodes host memory, or write none");
    }
    if (stated.mode == Mode::token_wise && !context_.work.again_per_token) {
      error(value, "'offload' is token-wise, but layers with experts are not computed again token by token",
            "write auto, or a ratio such as 0.5");
      return {};
    }
    return has_host ? stated : OffloadRule{};
  }

  void does_not_fit(const Value& where, std::int64_t tokens_per_rank) {
    error(where,
          fmt::format("a context of {} does not fit: {} ranks of {} tokens hold {}", count_text(context_.context),
                      context_.ranks, count_text(tokens_per_rank), count_text(context_.ranks * tokens_per_rank)),
          "use more ranks, a larger capacity or a shorter context");
  }

  void error(const Value& where, std::string message, std::string help) {
    diagnostics_.error(where.position, std::move(message), std::move(help));
  }

  const Value& stated_;
  const PlanningContext& context_;
  Diagnostics& diagnostics_;
};

/// A policy's plans, converted to the waves of expert groups that span several ranks.
class InExpertWaves final : public Planner {
 public:
  InExpertWaves(std::unique_ptr<Planner> policy, const PlanningContext& context)
      : policy_(std::move(policy)), ranks_(context.expert_ranks), padding_(context.expert_padding) {}

  [[nodiscard]] Plan plan(const Batch& batch, std::int64_t step) const override {
    return in_expert_waves(policy_->plan(batch, step), ranks_, padding_);
  }

 private:
  std::unique_ptr<Planner> policy_;
  std::int64_t ranks_;
  std::int64_t padding_;
};

}  // namespace

std::unique_ptr<Planner> make_planner(const Policy& policy, const PlanningContext& context, Diagnostics& diagnostics) {
  HDPSIM_CHECK(context.ranks >= 1 && context.ranks_per_node >= 1 && context.capacity >= 1 && context.context >= 1 &&
                   context.layers >= 1 && context.stages >= 1,
               "{} ranks, {} a node, capacity {}, context {}, {} layers, {} stages", context.ranks,
               context.ranks_per_node, context.capacity, context.context, context.layers, context.stages);
  Diagnostics found;
  std::unique_ptr<Planner> planner = std::visit(PlannerMaker(policy, context, found), policy.options);
  if (!found.empty()) planner.reset();
  diagnostics.append(found);
  if (planner != nullptr && context.expert_ranks > 1) {
    planner = std::make_unique<InExpertWaves>(std::move(planner), context);
  }
  return planner;
}

}  // namespace hdpsim
