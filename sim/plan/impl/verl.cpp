#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/division.h"
#include "sim/base/quantity_text.h"
#include "sim/plan/impl/dynamic_batches.h"
#include "sim/plan/impl/policies.h"
#include "sim/plan/impl/slot.h"

namespace hdpsim {
namespace {

/// verl's step with dynamic batch sizes (verl-project/verl 1dda039b, RayPPOTrainer._balance_batch,
/// TrainingWorker.train_mini_batch, rearrange_micro_batches): sequences are divided among the replicas by largest
/// differencing on their work; each optimizer step takes the next ones of every replica, and divides them among as many
/// micro-batches as their tokens ask for, the most of any replica. The order within a replica is verl's, too. ROLL's
/// packed batches are the same with rounded lengths (alibaba/ROLL 8eb27cc2, batch_balance, LoadBalancePacker).
class Verl final : public DynamicBatches {
 public:
  Verl(const std::string& policy, const PlanningContext& context, std::int64_t cp, VerlRules rules, UpdateRule updates)
      : DynamicBatches(policy, context, cp), rules_(rules), updates_(std::move(updates)) {}

 private:
  // What verl takes a sequence to cost, for every model (seqlen_balancing.py, calculate_workload).
  static ExactWork work(std::int64_t tokens) {
    const auto s = static_cast<ExactWork>(tokens);
    return 24576 * s + s * s;
  }

  [[nodiscard]] ExactWork cost(std::int64_t tokens) const override { return work(rounded(tokens)); }
  [[nodiscard]] std::size_t together() const override { return rules_.together; }
  [[nodiscard]] std::int64_t rounded(std::int64_t tokens) const override {
    return rounded_up(tokens, rules_.rounded_to);
  }

  [[nodiscard]] std::vector<Replicas> updates_of(const Batch& batch, std::size_t count) const override {
    for (const Sequence& sequence : batch.sequences) {
      if (rounded(sequence.tokens) <= rules_.limit) continue;
      updates_.refuse(fmt::format("a sequence of {} tokens is longer than a micro-batch, which has {}",
                                  count_text(sequence.tokens), count_text(rules_.limit)),
                      "use a larger 'max_tokens', or more ranks for a sequence");
    }
    const Replicas replicas = replicas_of(batch, count);
    std::vector<Replicas> updates;
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      std::vector<SequenceList> runs = updates_.runs(replicas[i], count);
      updates.resize(runs.size(), Replicas(count));
      for (std::size_t update = 0; update < runs.size(); ++update) updates[update][i] = std::move(runs[update]);
    }
    return updates;
  }

  // Where sequences cannot be dealt out in equal numbers, which verl refuses, only their work is balanced, unless
  // mini-batches of a size are asked for.
  [[nodiscard]] Replicas balanced(const Batch& batch, const SequenceList& sequences, std::size_t count) const {
    const bool divides = sequences.size() % count == 0;
    if (!divides && updates_.is_strict()) {
      updates_.refuse(fmt::format("{} sequences do not divide among {} replicas", sequences.size(), count),
                      "state 'updates' for batches of any number");
    }
    return differencing(sequences, count, divides,
                        [&](std::size_t sequence) { return work(batch.sequences[sequence].tokens); });
  }

  [[nodiscard]] Replicas replicas_of(const Batch& batch, std::size_t count) const {
    const SequenceList all = in_data_order(batch);
    switch (rules_.balance) {
      case VerlBalance::none:
        return even_runs(all, count);
      case VerlBalance::v1:
        return balanced(batch, all, count);
      case VerlBalance::groups:
        return grouped(batch, all, count);
      case VerlBalance::batch:
        return laid_out(batch, balanced(batch, all, count));
      case VerlBalance::keep_minibatch:
        break;
    }
    Replicas replicas(count);
    for (const SequenceList& run : updates_.runs(all)) {
      const Replicas parts = balanced(batch, run, count);
      for (std::size_t i = 0; i < count; ++i) replicas[i].insert(replicas[i].end(), parts[i].begin(), parts[i].end());
    }
    return laid_out(batch, std::move(replicas));
  }

  // Groups of consecutive sequences, such as the answers to one prompt, stay together.
  [[nodiscard]] Replicas grouped(const Batch& batch, const SequenceList& all, std::size_t count) const {
    std::vector<ExactWork> works((all.size() + rules_.group - 1) / rules_.group);
    for (const std::size_t i : all) works[i / rules_.group] += work(batch.sequences[i].tokens);
    const bool divides = works.size() % count == 0;
    if (!divides && updates_.is_strict()) {
      updates_.refuse(fmt::format("{} groups of sequences do not divide among {} replicas", works.size(), count),
                      "state 'updates' for batches of any number");
    }
    Replicas replicas;
    for (const SequenceList& groups : largest_differencing(works, count, divides)) {
      SequenceList& replica = replicas.emplace_back();
      for (const std::size_t group : groups) {
        const std::size_t end = std::min(all.size(), (group + 1) * rules_.group);
        for (std::size_t i = group * rules_.group; i < end; ++i) replica.push_back(i);
      }
    }
    return replicas;
  }

  // The sequences of every replica, the longest of them in the middle.
  static Replicas laid_out(const Batch& batch, Replicas replicas) {
    for (SequenceList& replica : replicas) {
      std::sort(replica.begin(), replica.end(), [&](std::size_t a, std::size_t b) {
        return std::pair(batch.sequences[a].tokens, a) < std::pair(batch.sequences[b].tokens, b);
      });
      SequenceList laid_out;
      for (std::size_t i = 0; i < replica.size(); i += 2) laid_out.push_back(replica[i]);
      for (std::size_t i = replica.size() / 2 * 2; i-- > 0;) {
        if (i % 2 == 1) laid_out.push_back(replica[i]);
      }
      replica = std::move(laid_out);
    }
    return replicas;
  }

  // As many as the replica with most tokens asks for.
  [[nodiscard]] std::size_t micro_batches_of(const Batch& batch, const Replicas& replicas) const override {
    std::int64_t most = 1;
    std::int64_t least_units = std::ssize(batch.sequences);
    for (const SequenceList& replica : replicas) {
      const std::int64_t units = divided(std::ssize(replica), static_cast<std::int64_t>(rules_.together));
      std::int64_t tokens = 0;
      for (const std::size_t sequence : replica) tokens += rounded(batch.sequences[sequence].tokens);
      most = std::max(most, std::min(divided(tokens, rules_.limit), units));
      least_units = std::min(least_units, units);
      if (updates_.is_strict() && replica.size() % rules_.together != 0) {
        updates_.refuse(fmt::format("{} sequences of a replica are no groups of {}", replica.size(), rules_.together),
                        "choose another 'together'");
      }
    }
    const std::int64_t count = rounded_up(most, rules_.multiple);
    if (updates_.is_strict() && count > least_units) {
      updates_.refuse(fmt::format("{} micro-batches for {} sequences or groups of them", count, least_units),
                      "use larger mini-batches, or a smaller 'micro_batches_divided_by'");
    }
    return static_cast<std::size_t>(count);
  }

  // Small ones at both ends: pipelines fill and drain with them.
  [[nodiscard]] Replicas in_order(Replicas parts, const std::vector<ExactWork>& costs) const override {
    const auto work_of = [&](const SequenceList& part) {
      return std::accumulate(part.begin(), part.end(), ExactWork{0},
                             [&](ExactWork sum, std::size_t i) { return sum + costs[i]; });
    };
    std::sort(parts.begin(), parts.end(), [&](const SequenceList& a, const SequenceList& b) {
      return std::pair(work_of(a), a.front()) > std::pair(work_of(b), b.front());
    });
    Replicas ordered;
    for (std::size_t i = (parts.size() + 1) / 2; i-- > 0;) ordered.push_back(std::move(parts[2 * i]));
    for (std::size_t i = 1; i < parts.size(); i += 2) ordered.push_back(std::move(parts[i]));
    return ordered;
  }

  VerlRules rules_;
  UpdateRule updates_;
};

/// verl with dynamic context parallelism (verl-project/verl 1dda039b, DynamicCPScheduler.schedule): all ranks take each
/// mini-batch of consecutive sequences, in the slots of Megatron-LM's scheduler.
class VerlDynamicCp final : public BuildingPlanner {
 public:
  VerlDynamicCp(const PlanningContext& context, std::int64_t tokens_of_rank, SlotOwner owner, UpdateRule updates)
      : BuildingPlanner("verl", context, true), pool_(context), owner_(std::move(owner)), updates_(std::move(updates)) {
    pool_.capacity = tokens_of_rank;
  }

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    for (const SequenceList& run : updates_.runs(in_data_order(batch))) {
      builder.begin_update();
      for (const Slot& slot : dynamic_slots(batch, run, pool_, owner_)) {
        require_aligned(slot);
        add_packed(builder, slot);
      }
    }
  }

  // verl makes its communicators so, and no rank may be without work.
  void require_aligned(const Slot& slot) const {
    std::int64_t rank = 0;
    for (const SlotGroup& group : slot) {
      if (rank % group.degree != 0) {
        updates_.refuse(fmt::format("a group of {} ranks begins at rank {}", group.degree, rank),
                        "use a pool of a power of two of ranks");
      }
      rank += group.degree;
    }
    if (rank == pool_.ranks) return;
    updates_.refuse(fmt::format("{} of {} ranks have no sequence in a slot", pool_.ranks - rank, pool_.ranks),
                    "use a pool of a power of two of ranks");
  }

  PlanningContext pool_;
  SlotOwner owner_;
  UpdateRule updates_;
};

/// `verl: {cp: auto | N, max_tokens: N, micro_batches_divided_by: N, balance: WORD, group: N, together: N, mini_batch:
/// N, updates: N, dynamic_cp: false}`.
struct VerlPolicy final : MiniBatchOptions {
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> max_tokens;
  std::int64_t multiple = 1;
  VerlBalance balance = VerlBalance::batch;
  std::int64_t group = 1;
  std::int64_t together = 1;
  bool dynamic_cp = false;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    if (dynamic_cp) return dynamic(pool);
    const std::int64_t degree = pool.degree_of(cp);
    if (group > 1 && balance != VerlBalance::groups) {
      pool.error(pool.where("group"), "'group' has sequences stay together, which only balance: groups does",
                 "write balance: groups, or leave 'group' out");
    }
    return make_verl("verl", pool.context(), degree,
                     VerlRules{.balance = balance,
                               .group = static_cast<std::size_t>(group),
                               .together = static_cast<std::size_t>(together),
                               .multiple = multiple,
                               .limit = pool.micro_batch_limit(degree, max_tokens)},
                     UpdateRule("verl", pool, *this));
  }

 private:
  [[nodiscard]] std::unique_ptr<Planner> dynamic(PoolFit& pool) const {
    const VerlPolicy others;
    const bool has_others = cp || multiple != others.multiple || balance != others.balance || group != others.group ||
                            together != others.together;
    if (has_others) {
      pool.error(
          pool.where("dynamic_cp"),
          "with 'dynamic_cp' all ranks take each mini-batch: no replicas are balanced, and no micro-batches made",
          "keep of the other options 'max_tokens', 'mini_batch' and 'updates'");
    }
    pool.require_room();
    return std::make_unique<VerlDynamicCp>(pool.context(), pool.micro_batch_limit(1, max_tokens),
                                           SlotOwner{"verl", pool.position(), pool.context().ranks},
                                           UpdateRule("verl", pool, *this));
  }
};

}  // namespace

std::unique_ptr<Planner> make_verl(const std::string& policy, const PlanningContext& context, std::int64_t cp,
                                   const VerlRules& rules, UpdateRule updates) {
  return std::make_unique<Verl>(policy, context, cp, rules, std::move(updates));
}

PolicyKind verl_policy() {
  KeyTable<VerlPolicy> keys("verl");
  add_cp(keys);
  add_max_tokens(keys);
  add_micro_batch_multiple(keys);
  keys.word("balance", "way to balance",
            {{"batch", VerlBalance::batch},
             {"v1", VerlBalance::v1},
             {"keep_minibatch", VerlBalance::keep_minibatch},
             {"groups", VerlBalance::groups},
             {"none", VerlBalance::none}},
            at(&VerlPolicy::balance),
            "how replicas get sequences: `batch`, by work, short and long ones spread over the mini-batches; `v1`, by "
            "work, in the order of the data; `keep_minibatch`, as `batch` within each run of a mini-batch; `groups`, "
            "by the work of `group` consecutive sequences; `none`, consecutive ones");
  keys.count("group", {1, 65536}, at(&VerlPolicy::group),
             "consecutive sequences, such as the answers to one prompt, that stay on one replica under balance: groups",
             {.unit = "sequences"});
  keys.count("together", {1, 65536}, at(&VerlPolicy::together),
             "consecutive sequences of a replica that stay in one micro-batch, as reward models need",
             {.unit = "sequences"});
  add_mini_batches(keys);
  keys.flag("dynamic_cp", at(&VerlPolicy::dynamic_cp),
            "all ranks take each mini-batch, in groups by length as Megatron-LM's default_dynamic_cp makes them");
  return policy_kind(
      "verl",
      "dynamic batches of verl (RL training): sequences are divided among replicas of `cp` ranks, and those of "
      "a replica among micro-batches, by largest differencing on 24576 s + s^2 for s tokens; the ranks "
      "of a replica form a ring, where verl uses all-to-alls (Ulysses)",
      std::move(keys));
}

}  // namespace hdpsim
