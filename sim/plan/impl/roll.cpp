#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/quantity_text.h"
#include "sim/plan/impl/dynamic_batches.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

/// ROLL's step with dynamic batching (alibaba/ROLL 8eb27cc2, dynamic_batching_shard,
/// make_mini_batch_iter_for_dynamic_batching): sequences of like lengths are padded to one, and every optimizer step
/// takes the next micro-batches.
class RollPadded final : public BuildingPlanner {
 public:
  /// The number of micro-batches is a multiple of `multiple`. `accumulate`: those of an optimizer step; empty: as
  /// `updates` says.
  RollPadded(const PlanningContext& context, std::int64_t cp, const PaddingRule& rule, std::size_t multiple,
             std::optional<std::int64_t> accumulate, UpdateRule updates)
      : BuildingPlanner("roll", context, true),
        cp_(cp),
        rule_(rule),
        multiple_(multiple),
        accumulate_(accumulate),
        updates_(std::move(updates)) {}

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    const auto replicas = static_cast<std::size_t>(context_.ranks / cp_);
    const PaddedBatch made = padded(batch, replicas);
    for (const SequenceList& run : runs_of(made.micro_batches.size())) {
      builder.begin_update();
      for (std::size_t replica = 0; replica < replicas; ++replica) {
        for (const std::size_t i : run) add_padded_rows(builder, made, made.micro_batches[i], replica, cp_);
      }
    }
  }

  [[nodiscard]] PaddedBatch padded(const Batch& batch, std::size_t replicas) const {
    if (accumulate_ && batch.sequences.size() % replicas != 0) {
      updates_.refuse(fmt::format("{} sequences do not divide among {} replicas", batch.sequences.size(), replicas),
                      "state 'updates' for batches of any number");
    }
    std::int64_t too_wide = 0;
    auto made = padded_batch(batch, in_data_order(batch), replicas, rule_, too_wide);
    if (!made) {
      updates_.refuse(fmt::format("a padded sequence of {} tokens is longer than a micro-batch, which has {}",
                                  count_text(too_wide), count_text(rule_.room)),
                      "use a larger 'max_tokens', or more ranks for a sequence");
    }
    const std::size_t count = (made->micro_batches.size() + multiple_ - 1) / multiple_ * multiple_;
    if (!halve_padded(made->micro_batches, count)) {
      updates_.refuse(
          fmt::format("{} sequences of a replica make no {} micro-batches", made->replicas[0].size(), count),
          "use larger batches, or a smaller 'micro_batches_divided_by'");
    }
    return std::move(*made);
  }

  [[nodiscard]] std::vector<SequenceList> runs_of(std::size_t micro_batches) const {
    SequenceList all(micro_batches);
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (!accumulate_) return updates_.runs(all);
    std::vector<SequenceList> runs;
    for (const std::size_t i : all) {
      if (i % static_cast<std::size_t>(*accumulate_) == 0) runs.emplace_back();
      runs.back().push_back(i);
    }
    return runs;
  }

  std::int64_t cp_;
  PaddingRule rule_;
  std::size_t multiple_;
  std::optional<std::int64_t> accumulate_;
  UpdateRule updates_;
};

/// `roll: {cp: auto | N, max_tokens: N, micro_batches_divided_by: N, batches: packed | padded, round_to: N, accumulate:
/// N, mini_batch: N, updates: N}`.
struct RollPolicy final : MiniBatchOptions {
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> max_tokens;
  std::int64_t multiple = 1;
  bool padded = false;
  std::int64_t round_to = 64;
  std::optional<std::int64_t> accumulate;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const std::int64_t degree = pool.degree_of(cp);
    const std::int64_t limit = pool.micro_batch_limit(degree, max_tokens);
    check(pool, limit);
    const UpdateRule steps("roll", pool, *this);
    if (padded) {
      return std::make_unique<RollPadded>(pool.context(), degree, PaddingRule{round_to, 0, limit},
                                          static_cast<std::size_t>(multiple), accumulate, steps);
    }
    const std::int64_t parts = pool.context().tp * (degree > 1 ? 2 * degree : 1);
    const VerlRules rules{.multiple = multiple, .limit = limit, .rounded_to = std::lcm(std::int64_t{16}, parts)};
    return make_verl("roll", pool.context(), degree, rules, steps);
  }

 private:
  void check(PoolFit& pool, std::int64_t limit) const {
    if (accumulate && (!padded || updates)) {
      pool.error(pool.where("accumulate"), "'accumulate' divides padded batches, in place of 'updates'",
                 padded ? "leave one of them out" : "write batches: padded, or leave it out");
    }
    if (!padded && round_to != RollPolicy{}.round_to) {
      pool.error(pool.where("round_to"), "'round_to' is of padded batches: packed ones are padded to what ranks divide",
                 "leave it out, or write batches: padded");
    }
    if (padded && mini_batch) {
      pool.error(pool.where("mini_batch"), "padded batches are not divided by numbers of sequences",
                 "state 'accumulate', or 'updates'");
    }
    if (padded || !max_tokens || limit >= pool.context().context) return;
    pool.error(pool.where("max_tokens"),
               fmt::format("a micro-batch has {} tokens, fewer than a context of {}", count_text(limit),
                           count_text(pool.context().context)),
               "use a larger 'max_tokens', or more ranks for a sequence");
  }
};

}  // namespace

PolicyKind roll_policy() {
  KeyTable<RollPolicy> keys("roll");
  add_cp(keys);
  add_max_tokens(keys);
  add_micro_batch_multiple(keys);
  add_padded_choice(keys, at(&RollPolicy::padded));
  keys.count("round_to", {1, 65536}, at(&RollPolicy::round_to),
             "lengths of padded batches are rounded up to a multiple of this", {.unit = "tokens"});
  keys.count("accumulate", {1, 65536}, at(&RollPolicy::accumulate),
             "micro-batches of a replica that each optimizer step takes of padded batches",
             {.unit = "micro-batches", .otherwise = "all"});
  add_mini_batches(keys);
  return policy_kind("roll",
                     "ROLL's batches (RL training): verl's, with lengths padded to what ranks and kernels divide; or "
                     "sequences of like lengths padded to one in each micro-batch",
                     std::move(keys));
}

}  // namespace hdpsim
