// Dynamic batches of frameworks for reinforcement learning on a static mesh: verl, openrlhf.

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/division.h"
#include "sim/plan/impl/bin_exchange.h"
#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/policies.h"

namespace hdpsim {
namespace {

using Replicas = std::vector<SequenceList>;

/// Sequences are divided among the replicas, and those of every replica among the same number of micro-batches by
/// largest differencing, whatever a rank holds.
class DynamicBatches : public BuildingPlanner {
 public:
  Plan plan(const Batch& batch, std::int64_t step) const final {
    Plan made = BuildingPlanner::plan(batch, step);
    raise_capacity(made);
    return made;
  }

 protected:
  /// `cp`: the ranks of a replica, which share each of its sequences.
  DynamicBatches(std::string policy, const PlanningContext& context, std::int64_t cp)
      : BuildingPlanner(std::move(policy), context, true), cp_(cp) {}

  [[nodiscard]] virtual Replicas replicas_of(const Batch& batch, std::size_t count) const = 0;
  /// Micro-batches of a replica; some may stay empty.
  [[nodiscard]] virtual std::size_t micro_batches_of(const Batch& batch, const Replicas& replicas) const = 0;
  /// What a sequence costs.
  [[nodiscard]] virtual ExactWork cost(std::int64_t tokens) const = 0;
  /// The order in which a replica runs its micro-batches, each a list of places in `costs`; none is empty.
  [[nodiscard]] virtual Replicas in_order(Replicas micro_batches, const std::vector<ExactWork>& costs) const = 0;

  [[nodiscard]] std::vector<ExactWork> costs_of(const Batch& batch, const SequenceList& sequences) const {
    std::vector<ExactWork> costs;
    costs.reserve(sequences.size());
    for (const std::size_t sequence : sequences) costs.push_back(cost(batch.sequences[sequence].tokens));
    return costs;
  }

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override {
    const Replicas replicas = replicas_of(batch, static_cast<std::size_t>(context_.ranks / cp_));
    const std::size_t count = micro_batches_of(batch, replicas);
    for (std::size_t i = 0; i < replicas.size(); ++i) {
      const std::vector<ExactWork> costs = costs_of(batch, replicas[i]);
      Replicas parts = largest_differencing(costs, std::min(count, replicas[i].size() + 1), false);
      std::erase_if(parts, [](const SequenceList& part) { return part.empty(); });
      for (SequenceList& part : in_order(std::move(parts), costs)) {
        for (std::size_t& place : part) place = replicas[i][place];
        builder.add_consecutive(i * static_cast<std::size_t>(cp_), {cp_}, part);
      }
    }
  }

  std::int64_t cp_;
};

/// verl's step with dynamic batch sizes and one mini-batch (RayPPOTrainer._balance_batch, rearrange_micro_batches):
/// sequences are divided among the replicas by largest differencing on their work; so are those of a replica among as
/// many micro-batches as its tokens ask for, the most of any replica. The order within a replica is verl's, too.
class Verl final : public DynamicBatches {
 public:
  /// The number of micro-batches is a multiple of `multiple`; each should have `limit` tokens.
  Verl(const PlanningContext& context, std::int64_t cp, std::int64_t multiple, std::int64_t limit)
      : DynamicBatches("verl", context, cp), multiple_(multiple), limit_(limit) {}

 private:
  // What verl takes a sequence to cost, for every model (seqlen_balancing.py, calculate_workload).
  [[nodiscard]] ExactWork cost(std::int64_t tokens) const override {
    const auto s = static_cast<ExactWork>(tokens);
    return 24576 * s + s * s;
  }

  // The sequences of every replica, the longest of them in the middle. Where they cannot be dealt out in equal numbers,
  // which verl refuses, only their work is balanced.
  [[nodiscard]] Replicas replicas_of(const Batch& batch, std::size_t count) const override {
    const SequenceList all = in_data_order(batch);
    Replicas replicas = largest_differencing(costs_of(batch, all), count, all.size() % count == 0);
    for (SequenceList& replica : replicas) {
      std::stable_sort(replica.begin(), replica.end(), [&](std::size_t a, std::size_t b) {
        return batch.sequences[a].tokens < batch.sequences[b].tokens;
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
    for (const SequenceList& replica : replicas) {
      const std::int64_t asked = divided(tokens_of(batch, replica), limit_);
      most = std::max(most, std::min<std::int64_t>(asked, std::ssize(replica)));
    }
    return static_cast<std::size_t>(rounded_up(most, multiple_));
  }

  // Small ones at both ends: pipelines fill and drain with them.
  [[nodiscard]] Replicas in_order(Replicas parts, const std::vector<ExactWork>& costs) const override {
    const auto work = [&](const SequenceList& part) {
      return std::accumulate(part.begin(), part.end(), ExactWork{0},
                             [&](ExactWork sum, std::size_t i) { return sum + costs[i]; });
    };
    std::sort(parts.begin(), parts.end(), [&](const SequenceList& a, const SequenceList& b) {
      return std::pair(work(a), a.front()) > std::pair(work(b), b.front());
    });
    Replicas ordered;
    for (std::size_t i = (parts.size() + 1) / 2; i-- > 0;) ordered.push_back(std::move(parts[2 * i]));
    for (std::size_t i = 1; i < parts.size(); i += 2) ordered.push_back(std::move(parts[i]));
    return ordered;
  }

  std::int64_t multiple_;
  std::int64_t limit_;
};

/// OpenRLHF's step with dynamic batches (experience.py, balance_experiences; seqlen_balancing.py): sequences are dealt
/// to the replicas in a zig-zag, longest first; those of a replica are divided among micro-batches by largest
/// differencing on their lengths.
class OpenRlhf final : public DynamicBatches {
 public:
  /// `limit`: the tokens that a micro-batch should have.
  OpenRlhf(const PlanningContext& context, std::int64_t cp, std::int64_t limit)
      : DynamicBatches("openrlhf", context, cp), limit_(limit) {}

 private:
  [[nodiscard]] ExactWork cost(std::int64_t tokens) const override { return static_cast<ExactWork>(tokens); }

  // Rows of one sequence a replica, longest first: the first row, the last one backwards, the second, and so on.
  [[nodiscard]] Replicas replicas_of(const Batch& batch, std::size_t count) const override {
    const SequenceList order = longest_first(batch);
    const auto rows = static_cast<std::size_t>(divided(std::ssize(order), static_cast<std::int64_t>(count)));
    Replicas replicas(count);
    const auto deal = [&](std::size_t row, bool backwards) {
      const std::size_t first = row * count;
      const std::size_t length = std::min(count, order.size() - first);
      for (std::size_t i = 0; i < length; ++i) {
        replicas[i].push_back(order[first + (backwards ? length - 1 - i : i)]);
      }
    };
    for (std::size_t row = 0; row < rows / 2; ++row) {
      deal(row, false);
      deal(rows - 1 - row, true);
    }
    if (rows % 2 == 1) deal(rows / 2, true);
    return replicas;
  }

  // The most packs that the sequences of a replica fill if each goes to the first one with room.
  [[nodiscard]] std::size_t micro_batches_of(const Batch& batch, const Replicas& replicas) const override {
    std::size_t most = 1;
    for (const SequenceList& replica : replicas) {
      FirstFit packs(replica.size(), limit_);
      std::size_t filled = 0;
      std::size_t too_long = 0;
      for (const std::size_t sequence : replica) {
        const std::int64_t tokens = batch.sequences[sequence].tokens;
        if (tokens > limit_) {
          ++too_long;
        } else {
          filled = std::max(filled, packs.place(tokens).bin + 1);
        }
      }
      most = std::max(most, filled + too_long);
    }
    return most;
  }

  [[nodiscard]] Replicas in_order(Replicas parts, const std::vector<ExactWork>& /*costs*/) const override {
    return parts;
  }

  std::int64_t limit_;
};

struct DynamicBatchOptions : PolicyOptions {
  std::optional<std::int64_t> cp;
  std::optional<std::int64_t> max_tokens;
};

/// `openrlhf: {cp: auto | N, max_tokens: N}`.
struct OpenRlhfPolicy final : DynamicBatchOptions {
  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const std::int64_t degree = pool.degree_of(cp);
    return std::make_unique<OpenRlhf>(pool.context(), degree, pool.micro_batch_limit(degree, max_tokens));
  }
};

/// `verl: {cp: auto | N, max_tokens: N, micro_batches_divided_by: N}`.
struct VerlPolicy final : DynamicBatchOptions {
  std::int64_t multiple = 1;

  [[nodiscard]] std::unique_ptr<Planner> planner(PoolFit& pool) const override {
    const std::int64_t degree = pool.degree_of(cp);
    return std::make_unique<Verl>(pool.context(), degree, multiple, pool.micro_batch_limit(degree, max_tokens));
  }
};

}  // namespace

PolicyKind verl_policy() {
  KeyTable<VerlPolicy> keys("verl");
  add_cp(keys);
  add_max_tokens(keys);
  add_micro_batch_multiple(keys);
  return policy_kind(
      "verl",
      "dynamic batches of verl (RL training): sequences are divided among replicas of `cp` ranks, and those of "
      "a replica among micro-batches, by largest differencing on 24576 s + s^2 for s tokens; the ranks "
      "of a replica form a ring, where verl uses all-to-alls (Ulysses)",
      std::move(keys));
}

PolicyKind openrlhf_policy() {
  KeyTable<OpenRlhfPolicy> keys("openrlhf");
  add_cp(keys);
  add_max_tokens(keys);
  return policy_kind("openrlhf",
                     "OpenRLHF's dynamic batches: sequences are assigned to replicas in a zig-zag, longest first, and "
                     "divided among micro-batches by largest differencing on their lengths",
                     std::move(keys));
}

}  // namespace hdpsim
