#include "sim/plan/planner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/quantity_text.h"
#include "sim/document/reader.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

// The options of one policy while they are read.
class OptionReader {
 public:
  OptionReader(const Value& value, const std::string& policy, const PlanningContext& context, Diagnostics& diagnostics)
      : reader_(value, policy, diagnostics), context_(context) {}

  StaticOptions static_options() {
    const DealOrder order = deal_order();
    const std::int64_t cp = context_parallel_degree();
    reader_.finish();
    return {cp, order};
  }

  NaiveOptions naive_options() {
    read_groups();
    const DealOrder order = deal_order();
    const OffloadRule offload = offload_rule();
    reader_.finish();
    return {order, offload};
  }

  BalanceOptions balance_options() {
    BalanceOptions options;
    read_groups();
    options.buckets = reader_.optional_in<std::int64_t>("buckets", {1, 1e6}).value_or(options.buckets);
    options.delta = reader_.optional_in<double>("delta", {1e-4, 1}).value_or(options.delta);
    options.offload = offload_rule();
    if (const Value* balance = reader_.find("balance")) {
      const auto choice = read_choice(*balance, "balance", {"auto", "dp", "pp", "none"}, reader_.diagnostics());
      if (choice == 1) options.balance = Balance::dp;
      if (choice == 2) options.balance = Balance::pp;
      balances_ = choice != 3;
    }
    if (const Value* placement = reader_.find("placement")) {
      options.node_first = read_choice(*placement, "placement", {"node-first", "any"}, reader_.diagnostics()) == 0;
    }
    options.pack_groups = reader_.optional<bool>("pack_groups", options.pack_groups);
    options.widen = reader_.optional<bool>("widen", options.widen);
    options.fallback = reader_.optional<bool>("fallback", options.fallback);
    reader_.finish();
    return options;
  }

  /// Of the policy whose options were read.
  [[nodiscard]] bool balances() const { return balances_; }
  [[nodiscard]] std::optional<StaticOptions> uniform() const { return uniform_; }

 private:
  // The static mesh's groups, whose degree follows from the longest sequence.
  void read_groups() {
    const Value* groups = reader_.find("groups");
    if (groups == nullptr) return;
    const auto choice = read_choice(*groups, "way to make groups", {"by_length", "uniform"}, reader_.diagnostics());
    if (choice == 1) uniform_ = StaticOptions{least_degree_that_fits(*groups), DealOrder::data};
  }

  DealOrder deal_order() {
    const Value* order = reader_.find("order");
    if (order == nullptr) return DealOrder::data;
    const auto choice = read_choice(*order, "order", {"data", "descending"}, reader_.diagnostics());
    return choice == 1 ? DealOrder::descending : DealOrder::data;
  }

  std::int64_t context_parallel_degree() {
    const Value* cp = reader_.find("cp");
    if (cp == nullptr || cp->text == "auto") return least_degree_that_fits(cp == nullptr ? reader_.value() : *cp);
    const std::int64_t degree = parse_count(cp->text).value.value_or(0);
    if (degree < 1 || degree > context_.ranks) {
      error(*cp, fmt::format("'cp' is {}, it must be auto or from 1 to {}", written(*cp), context_.ranks),
            divisors_text());
    } else if (context_.ranks % degree != 0) {
      error(*cp, fmt::format("'cp' is {}, which does not divide the pool of {} ranks", degree, context_.ranks),
            divisors_text());
    } else if (degree < least_ranks_for_context(context_.capacity)) {
      error(*cp,
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

  OffloadRule offload_rule() {
    const Value* offload = reader_.find("offload");
    const OffloadRule rule = offload == nullptr ? OffloadRule{} : read_offload(*offload);
    const std::int64_t most = RingSizing(context_, rule).most_tokens_per_rank();
    if (least_ranks_for_context(most) > context_.ranks) {
      does_not_fit(offload == nullptr ? reader_.value() : *offload, most);
    }
    return rule;
  }

  OffloadRule read_offload(const Value& value) {
    using Mode = OffloadRule::Mode;
    const bool has_host = context_.host_tokens.value_or(0) > 0 && context_.work.offload_per_token > 0;
    if (value.text == "none") return {};
    if (value.text == "auto") return {has_host ? Mode::automatic : Mode::none, 0};
    if (value.text == "token-wise") return token_wise(value, has_host);
    Diagnostics not_a_number;
    const double ratio = read<double>(value, not_a_number).value_or(-1);
    if (!(ratio >= 0 && ratio <= 1)) {
      error(value,
            fmt::format("'offload' is {}, it must be none, auto, token-wise or a ratio from 0 to 1", written(value)),
            "write none, auto, token-wise or a ratio such as 0.5");
    } else if (ratio > 0 && !has_host) {
      no_host(value);
    } else if (ratio > 0) {
      return {Mode::fixed, ratio};
    }
    return {};
  }

  OffloadRule token_wise(const Value& value, bool has_host) {
    if (!has_host) no_host(value);
    if (!context_.work.again_per_token) {
      error(value, "'offload' is token-wise, but layers with experts are not computed again token by token",
            "write auto, or a ratio such as 0.5");
    }
    if (!has_host || !context_.work.again_per_token) return {};
    return {OffloadRule::Mode::token_wise, 0};
  }

  void no_host(const Value& value) {
    error(value, fmt::format("'offload' is {}, but the cluster has no host memory to copy to", value.text),
          "give the nodes host memory, or write none");
  }

  static std::string_view written(const Value& value) {
    return value.is_scalar() ? std::string_view(value.text) : kind_name(value.kind);
  }

  void does_not_fit(const Value& where, std::int64_t tokens_per_rank) {
    error(where,
          fmt::format("a context of {} does not fit: {} ranks of {} tokens hold {}", count_text(context_.context),
                      context_.ranks, count_text(tokens_per_rank), count_text(context_.ranks * tokens_per_rank)),
          "use more ranks, a larger capacity or a shorter context");
  }

  void error(const Value& where, std::string message, std::string help) {
    reader_.diagnostics().error(where.position, std::move(message), std::move(help));
  }

  MapReader reader_;
  const PlanningContext& context_;
  bool balances_ = true;
  std::optional<StaticOptions> uniform_;
};

/// A policy's plans in the waves of expert groups that reach over several ranks.
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

std::unique_ptr<Planner> make_named(const std::string& policy, const Value& options, const PlanningContext& context,
                                    Diagnostics& diagnostics) {
  OptionReader reader(options, policy, context, diagnostics);
  if (policy == "static") return make_static(context, reader.static_options());
  const bool naive = policy == "hdp-naive";
  const BalanceOptions balance = naive ? BalanceOptions{} : reader.balance_options();
  const NaiveOptions options_of_naive = naive ? reader.naive_options() : NaiveOptions{DealOrder::data, balance.offload};
  if (reader.uniform()) return make_static(context, *reader.uniform());
  if (naive || !reader.balances()) return make_hdp_naive(context, options_of_naive);
  return make_hdp_balance(context, balance);
}

}  // namespace

const std::vector<std::string>& planner_names() {
  static const std::vector<std::string> names{"static", "hdp-naive", "hdp-balance"};
  return names;
}

std::unique_ptr<Planner> make_planner(const Value& entry, const PlanningContext& context, Diagnostics& diagnostics) {
  HDPSIM_CHECK(context.ranks >= 1 && context.ranks_per_node >= 1 && context.capacity >= 1 && context.context >= 1 &&
                   context.layers >= 1 && context.stages >= 1,
               "{} ranks, {} a node, capacity {}, context {}, {} layers, {} stages", context.ranks,
               context.ranks_per_node, context.capacity, context.context, context.layers, context.stages);
  const bool has_options = entry.is_map() && entry.entries.size() == 1;
  if (!has_options && !entry.is_scalar()) {
    diagnostics.error(entry.position, "a plan is the name of a policy, or one name with its options",
                      "write hdp-naive, or static: {cp: 8}");
    return nullptr;
  }
  const std::string& policy = has_options ? entry.entries.front().key : entry.text;
  const auto& names = planner_names();
  if (std::find(names.begin(), names.end(), policy) == names.end()) {
    diagnostics.error(has_options ? entry.entries.front().position : entry.position,
                      fmt::format("there is no policy '{}'", policy), suggestion(policy, names));
    return nullptr;
  }
  Value options = has_options ? entry.entries.front().value : Value::map(entry.position);
  if (options.is_null()) options = Value::map(options.position);
  Diagnostics found;
  std::unique_ptr<Planner> planner = make_named(policy, options, context, found);
  if (!found.empty()) planner.reset();
  diagnostics.append(found);
  if (planner != nullptr && context.expert_ranks > 1) {
    planner = std::make_unique<InExpertWaves>(std::move(planner), context);
  }
  return planner;
}

}  // namespace hdpsim
