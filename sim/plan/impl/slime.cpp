// slime and its fork miles.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/division.h"
#include "sim/plan/impl/mini_batches.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

struct SlimeRules {
  bool is_miles = false;
  bool balance_data = false;
  bool balance_by_flops = false;
  std::optional<std::int64_t> micro_batch;  ///< Sequences of each micro-batch; empty: as many as its tokens allow.
  std::size_t samples = 1;                  ///< Consecutive sequences of a rollout.
  std::size_t multiple = 1;                 ///< The number of micro-batches is a multiple of this.
  std::int64_t limit = 1;                   ///< Tokens of a micro-batch.
};

/// A step of slime (THUDM/slime 624b824a) or miles (radixark/miles 31f1ca96), build_dp_schedule: the next rollouts of
/// the batch are packed, packs are halved until every replica gets the same number of them, and dealt to the replicas.
class Slime final : public BuildingPlanner {
 public:
  Slime(const PlanningContext& context, std::int64_t cp, const SlimeRules& rules, UpdateRule updates)
      : BuildingPlanner(rules.is_miles ? "miles" : "slime", context, true),
        cp_(cp),
        rules_(rules),
        updates_(std::move(updates)) {}

  Plan plan(const Batch& batch, std::int64_t step) const override {
    Plan made = BuildingPlanner::plan(batch, step);
    if (rules_.balance_by_flops || rules_.micro_batch) raise_capacity(made);
    return made;
  }

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    SequenceList rollouts((batch.sequences.size() + rules_.samples - 1) / rules_.samples);
    std::iota(rollouts.begin(), rollouts.end(), std::size_t{0});
    for (const SequenceList& run : updates_.runs(rollouts)) {
      SequenceList sequences;
      for (const std::size_t rollout : run) {
        const std::size_t end = std::min(batch.sequences.size(), (rollout + 1) * rules_.samples);
        for (std::size_t i = rollout * rules_.samples; i < end; ++i) sequences.push_back(i);
      }
      if (sequences.empty()) continue;
      builder.begin_update();
      add_update(builder, batch, sequences);
    }
  }

  void add_update(PlanBuilder& builder, const Batch& batch, const SequenceList& sequences) const {
    const auto replicas = static_cast<std::size_t>(context_.ranks / cp_);
    const std::size_t unit = replicas * rules_.multiple;
    if (sequences.size() < replicas) {
      updates_.refuse(fmt::format("an optimizer step of {} sequences for {} replicas", sequences.size(), replicas),
                      "use larger batches, or fewer 'updates'");
    }
    std::vector<SequencePack> packs = packs_of(batch, sequences);
    if (rules_.micro_batch && packs.size() % unit != 0) {
      updates_.refuse(fmt::format("{} micro-batches are no multiple of {}", packs.size(), unit),
                      "choose another 'micro_batch', or leave it out");
    }
    halve_heaviest(packs, unit, batch, [](std::int64_t tokens) { return static_cast<double>(tokens); });
    if (packs.size() % unit != 0) {
      updates_.refuse(fmt::format("{} sequences make no multiple of {} micro-batches", sequences.size(), unit),
                      "use larger batches, or a smaller 'micro_batches_divided_by'");
    }
    const std::vector<SequenceList> dealt = dealt_to(replicas, batch, packs);
    for (std::size_t replica = 0; replica < replicas; ++replica) {
      for (const std::size_t pack : dealt[replica]) {
        builder.add_consecutive(replica * static_cast<std::size_t>(cp_), {cp_}, packs[pack].sequences);
      }
    }
  }

  [[nodiscard]] std::vector<SequencePack> packs_of(const Batch& batch, const SequenceList& sequences) const {
    constexpr std::int64_t any = std::numeric_limits<std::int64_t>::max();
    if (rules_.micro_batch) return next_fit(batch, sequences, any, rules_.micro_batch);
    if (!rules_.balance_by_flops) {
      return first_fit(batch, rules_.is_miles ? longest_first(batch, sequences) : sequences, rules_.limit);
    }
    const std::int64_t asked = std::max<std::int64_t>(1, divided(tokens_of(batch, sequences), rules_.limit));
    if (asked >= std::ssize(sequences)) return next_fit(batch, sequences, any, 1);
    std::vector<SequencePack> packs;
    for (SequenceList& part : differencing(sequences, static_cast<std::size_t>(asked), false,
                                           [&](std::size_t sequence) { return flops(batch, sequence); })) {
      const std::int64_t tokens = tokens_of(batch, part);
      packs.push_back({std::move(part), tokens, 0});
    }
    return packs;
  }

  // The numbers of the packs of every replica.
  [[nodiscard]] std::vector<SequenceList> dealt_to(std::size_t replicas, const Batch& batch,
                                                   const std::vector<SequencePack>& packs) const {
    SequenceList numbers(packs.size());
    std::iota(numbers.begin(), numbers.end(), std::size_t{0});
    if (rules_.balance_data || rules_.balance_by_flops) {
      const bool by_tokens = rules_.is_miles && !rules_.balance_by_flops;
      return differencing(numbers, replicas, true, [&](std::size_t pack) {
        if (by_tokens) return static_cast<ExactWork>(packs[pack].tokens);
        ExactWork sum = 0;
        for (const std::size_t sequence : packs[pack].sequences) sum += flops(batch, sequence);
        return sum;
      });
    }
    std::vector<SequenceList> dealt(replicas);
    for (const std::size_t pack : numbers) dealt[pack % replicas].push_back(pack);
    return dealt;
  }

  [[nodiscard]] ExactWork flops(const Batch& batch, std::size_t sequence) const {
    const auto s = static_cast<ExactWork>(batch.sequences[sequence].tokens);
    return s * (static_cast<ExactWork>(context_.counted_flops.linear) +
                s * static_cast<ExactWork>(context_.counted_flops.square));
  }

  std::int64_t cp_;
  SlimeRules rules_;
  UpdateRule updates_;
};

/// `slime`, `miles`: {cp: auto | N, max_tokens: N, micro_batches_divided_by: N, balance_data: false, balance_by_flops:
/// false, micro_batch: N, samples_per_rollout: N, mini_batch: N, updates: N}`.
template <bool is_miles>
struct SlimePolicy final : MiniBatchOptions {
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> max_tokens;
  std::int64_t multiple = 1;
  bool balance_data = false;
  bool balance_by_flops = false;
  std::optional<std::int64_t> micro_batch;
  std::int64_t samples = 1;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    if (micro_batch && balance_by_flops) {
      pool.error(pool.where("micro_batch"), "'balance_by_flops' makes micro-batches, and 'micro_batch' states them",
                 "leave one of them out");
    }
    const std::int64_t degree = pool.degree_of(cp);
    const SlimeRules rules{.is_miles = is_miles,
                           .balance_data = balance_data,
                           .balance_by_flops = balance_by_flops,
                           .micro_batch = micro_batch,
                           .samples = static_cast<std::size_t>(samples),
                           .multiple = static_cast<std::size_t>(multiple),
                           .limit = pool.micro_batch_limit(degree, max_tokens)};
    return std::make_unique<Slime>(pool.context(), degree, rules,
                                   UpdateRule(is_miles ? "miles" : "slime", pool, *this, "rollouts"));
  }
};

template <bool is_miles>
PolicyKind slime_kind(const std::string& meaning) {
  using Options = SlimePolicy<is_miles>;
  const std::string name = is_miles ? "miles" : "slime";
  KeyTable<Options> keys(name);
  add_cp(keys);
  add_max_tokens(keys);
  add_micro_batch_multiple(keys);
  keys.flag("balance_data", at(&Options::balance_data),
            is_miles ? "replicas get micro-batches of even tokens in sum; false: in turn"
                     : "replicas get micro-batches of even FLOPs in sum; false: in turn");
  keys.flag("balance_by_flops", at(&Options::balance_by_flops),
            "micro-batches have even FLOPs, in as many as the tokens ask for, and so have replicas");
  keys.count("micro_batch", {1, 65536}, at(&Options::micro_batch),
             "consecutive sequences of each micro-batch, whatever their tokens",
             {.unit = "sequences", .otherwise = "what the tokens allow"});
  keys.count("samples_per_rollout", {1, 65536}, at(&Options::samples), "consecutive sequences of one rollout",
             {.unit = "sequences"});
  add_mini_batches(keys, "rollouts", "the framework drops what is left over, and a batch with such a rest is refused");
  return policy_kind(name, meaning, std::move(keys));
}

}  // namespace

PolicyKind slime_policy() {
  return slime_kind<false>(
      "slime's micro-batches (RL training): each optimizer step packs its rollouts first fit, in the order of the "
      "data, "
      "halves packs until all replicas get as many, and deals them");
}

PolicyKind miles_policy() {
  return slime_kind<true>("miles' micro-batches (RL training, a fork of slime): as slime's, packed longest first");
}

}  // namespace hdpsim
