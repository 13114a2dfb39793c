#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/impl/bin_exchange.h"
#include "sim/plan/impl/mini_batches.h"
#include "sim/plan/impl/plan_builder.h"

namespace hdpsim {

/// The sequences of each replica.
using Replicas = std::vector<SequenceList>;

/// Sequences are divided among the replicas, and those of every replica, of one optimizer step after another, among the
/// same number of micro-batches by largest differencing, whatever a rank holds.
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

  /// The sequences of every replica in every update.
  [[nodiscard]] virtual std::vector<Replicas> updates_of(const Batch& batch, std::size_t count) const = 0;
  /// Micro-batches of a replica in an update; some may stay empty.
  [[nodiscard]] virtual std::size_t micro_batches_of(const Batch& batch, const Replicas& replicas) const = 0;
  /// What a sequence costs.
  [[nodiscard]] virtual ExactWork cost(std::int64_t tokens) const = 0;
  /// The order in which a replica runs its micro-batches, each a list of places in `costs`; none is empty.
  [[nodiscard]] virtual Replicas in_order(Replicas micro_batches, const std::vector<ExactWork>& costs) const = 0;
  /// Consecutive sequences of a replica that stay in one micro-batch.
  [[nodiscard]] virtual std::size_t together() const { return 1; }
  /// The length to which a sequence is padded.
  [[nodiscard]] virtual std::int64_t rounded(std::int64_t tokens) const { return tokens; }

 private:
  void add_to(PlanBuilder& builder, const Batch& batch) const override;
  void add_replica(PlanBuilder& builder, const Batch& batch, std::size_t replica, const SequenceList& sequences,
                   std::size_t count) const;

  std::int64_t cp_;
};

/// How verl deals a batch to its replicas.
enum class VerlBalance : std::uint8_t { batch, v1, keep_minibatch, groups, none };

struct VerlRules {
  VerlBalance balance = VerlBalance::batch;
  std::size_t group = 1;        ///< Consecutive sequences that stay on one replica under `groups`.
  std::size_t together = 1;     ///< Consecutive sequences of a replica that stay in one micro-batch.
  std::int64_t multiple = 1;    ///< The number of micro-batches is a multiple of this.
  std::int64_t limit = 1;       ///< Tokens that a micro-batch should have.
  std::int64_t rounded_to = 1;  ///< Lengths are padded to a multiple of this where micro-batches are made.
};

/// verl's step with dynamic batch sizes, whatever the policy is called (verl.cpp). `cp`: the ranks of a replica.
[[nodiscard]] std::unique_ptr<Planner> make_verl(const std::string& policy, const PlanningContext& context,
                                                 std::int64_t cp, const VerlRules& rules, UpdateRule updates);

}  // namespace hdpsim
