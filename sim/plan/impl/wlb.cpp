#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "sim/document/limits.h"
#include "sim/plan/impl/outlier_queues.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

/// The lengths from which sequences wait for a step in which every micro-batch gets one; empty: what suits the data.
using Outliers = std::optional<std::vector<std::int64_t>>;

/// WLB-LLM on a static mesh (Wang et al. 2025, arXiv 2503.17924, algorithm 1): micro-batches of unlike numbers of
/// tokens and even work, as many as the batch would fill with the context's tokens each.
class WlbLlm final : public BuildingPlanner {
 public:
  WlbLlm(const PlanningContext& context, std::int64_t cp, Outliers outliers)
      : BuildingPlanner("wlb", context), outliers_(std::move(outliers)), cp_(cp) {
    rules_.replicas = context.ranks / cp;
    rules_.context = context.context;
    rules_.room = context.capacity * cp;
    rules_.work = context.work;
  }

  [[nodiscard]] BatchSourcePtr held_back(const BatchSource& data, std::int64_t steps) const override {
    if (outliers_ && outliers_->empty()) return nullptr;
    const auto bounds = [&data, steps, rules = rules_, stated = outliers_] {
      return stated ? *stated : tuned_bounds(data, steps, rules);
    };
    return std::make_unique<HeldBackBatches>(data, rules_, bounds, steps);
  }

  [[nodiscard]] HoldingRule holding(const BatchSource& data, std::int64_t steps) const override {
    if (outliers_ && outliers_->empty()) return nullptr;
    OutlierRules rules = rules_;
    rules.bounds = outliers_ ? *outliers_ : tuned_bounds(data, steps, rules_);
    return [rules](const Batch& arrived, HeldSequences& held) {
      return rules.bounds.empty() ? arrived : release(arrived, rules, held).batch;
    };
  }

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    builder.add_in_turn(packed_whole(batch), cp_, RingSizing(context_, {}));
  }

  // Longest first. Batches of held_back() come in another order, in which they are known to fit.
  [[nodiscard]] std::vector<SequencePack> packed_whole(const Batch& batch) const {
    const std::array<SequenceList, 2> orders = {longest_first(batch), in_data_order(batch)};
    for (std::size_t count = rules_.micro_batches(batch.tokens());;
         count += static_cast<std::size_t>(rules_.replicas)) {
      for (const SequenceList& order : orders) {
        WorkPacks packed = pack_by_work(batch, order, count, rules_.room,
                                        [&](std::int64_t tokens) { return work_of(rules_.work, tokens); });
        if (packed.left.empty()) return std::move(packed.packs);
      }
    }
  }

  OutlierRules rules_;  ///< Without bounds.
  Outliers outliers_;
  std::int64_t cp_;
};

/// WLB-LLM as the baseline that DistCA compares with: a batch is packed by a price of its own, as many packs as it
/// would fill with the context's tokens each, which is the most of a pack while others have room. What finds no room is
/// not held back, so that packs may have more than a rank holds. (The original gives an empty pack 128 tokens of no
/// document; here its replica has no micro-batch.)
class WlbInStep final : public BuildingPlanner {
 public:
  WlbInStep(const PlanningContext& context, std::int64_t cp, std::int64_t breakpoint)
      : BuildingPlanner("wlb", context, true), cp_(cp), breakpoint_(static_cast<double>(breakpoint)) {}

  [[nodiscard]] Plan plan(const Batch& batch, std::int64_t step) const override {
    Plan made = BuildingPlanner::plan(batch, step);
    raise_capacity(made);
    return made;
  }

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    const OutlierRules rules{{}, context_.ranks / cp_, context_.context, 0, {}};
    const auto price = [this](std::int64_t tokens) {
      const double share = static_cast<double>(tokens) / breakpoint_;
      return share * share + share;
    };
    const auto packs = pack_all_by_work(batch, rules.micro_batches(batch.tokens()), context_.context, price);
    builder.add_in_turn(packs, cp_, RingSizing(context_, {}));
  }

  std::int64_t cp_;
  double breakpoint_;
};

/// `wlb: {cp: auto | N, outliers: auto | none | [tokens, ...], defer: true | false, breakpoint: tokens}`.
struct WlbPolicy final : PolicyOptions {
  std::optional<std::int64_t> cp;
  Outliers outliers;
  bool defer = true;
  std::int64_t breakpoint = 131'072;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    if (!defer) {
      if (outliers && !outliers->empty()) {
        pool.error(pool.where("outliers"), "'outliers' are held back, which defer: false does not do",
                   "remove one of the two");
      }
      return std::make_unique<WlbInStep>(pool.context(), pool.degree_of(cp), breakpoint);
    }
    return std::make_unique<WlbLlm>(pool.context(), pool.degree_of(cp), outliers);
  }
};

void read_outliers(const Value& value, WlbPolicy& policy, Diagnostics& diagnostics) {
  if (value.text == "auto") return;
  policy.outliers.emplace();
  if (value.text == "none") return;
  for (const Value& item : value.items) {
    const std::int64_t tokens = item.is_scalar() ? parse_count(item.text).value.value_or(0) : 0;
    const std::int64_t least = policy.outliers->empty() ? 1 : policy.outliers->back() + 1;
    if (tokens >= least) {
      policy.outliers->push_back(tokens);
    } else {
      diagnostics.error(item.position,
                        fmt::format("'outliers' has {}, it must have rising numbers of tokens", written(item)),
                        "write outliers: [16Ki, 64Ki]");
    }
  }
  if (!value.is_sequence()) {
    diagnostics.error(value.position,
                      fmt::format("'outliers' is {}, it must be auto, none or a list of lengths", written(value)),
                      "write outliers: auto, or outliers: [16Ki, 64Ki]");
  }
}

}  // namespace

PolicyKind wlb_policy() {
  KeyTable<WlbPolicy> keys("wlb");
  add_cp(keys);
  keys.add(
      {"outliers",
       either_shape(
           {word_shape({"auto", "none"}), list_shape(count_shape({1, limits::most_tokens_of_sequence}, "tokens"))}),
       "auto",
       "lengths from which sequences are held back, those from each length up to the next in a queue of their own, "
       "until every micro-batch of a step gets one; `auto`: those that even out the work of micro-batches most, "
       "none if no queue fills within eight steps",
       {.mechanism = "outlier-delay", .off = "none"}},
      read_outliers);
  keys.flag("defer", at(&WlbPolicy::defer),
            "whether sequences may wait; without, as in the baseline of DistCA's authors: micro-batches have up to the "
            "context's tokens, balanced by (s / `breakpoint`)^2 + s / `breakpoint`, and what finds no room goes to the "
            "one of least work");
  keys.count("breakpoint", {1, limits::most_tokens_of_sequence}, at(&WlbPolicy::breakpoint),
             "the length at which that baseline takes attention to cost as much as all else", {.unit = "tokens"});
  return policy_kind("wlb",
                     "WLB-LLM's packing on a static mesh: micro-batches balanced by work, not by token count, longest "
                     "sequence first; long sequences wait for a step in which every micro-batch gets one",
                     std::move(keys));
}

}  // namespace hdpsim
