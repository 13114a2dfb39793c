#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/plan/impl/packs.h"
#include "sim/plan/impl/ring_sizing.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// Collects the micro-batches of a plan. A rank executes its micro-batches in the order in which they were added, so
/// that no order of additions can deadlock.
class PlanBuilder {
 public:
  /// Checks that every sequence has 1 to `context` tokens. The batch must outlive the builder.
  PlanBuilder(std::string policy, const PlanningContext& context, const Batch& batch, std::int64_t step);

  /// Makes room for so many more micro-batches, so that none moves while they are added.
  void reserve_more(std::size_t micro_batches) {
    plan_.micro_batches.reserve(plan_.micro_batches.size() + micro_batches);
  }
  /// Adds whole sequences as one micro-batch of the group, offloaded as `size` says.
  void add(std::vector<HdpRank> group, std::span<const std::size_t> sequences, const RingSize& size = {});
  void add(std::vector<HdpRank> group, std::span<const SizedSequence> sequences, const RingSize& size);
  /// The same on `size.degree` consecutive ranks.
  void add_consecutive(std::size_t first_rank, const RingSize& size, std::span<const std::size_t> sequences);
  void add_consecutive(std::size_t first_rank, const RingSize& size, std::span<const SizedSequence> sequences);
  /// The same with lengths to which the sequences are padded (MicroBatch::padded).
  void add_padded(std::size_t first_rank, const RingSize& size, std::span<const SizedSequence> rows);
  /// Adds packs to the replicas of `cp` consecutive ranks in turn, offloaded as `sizing` says. A pack without sequences
  /// leaves its replica out.
  void add_in_turn(const std::vector<SequencePack>& packs, std::int64_t cp, const RingSizing& sizing);
  void add_in_turn(const PackList& packs, std::int64_t cp, const RingSizing& sizing);
  /// What add_consecutive() would add.
  [[nodiscard]] MicroBatch consecutive(std::size_t first_rank, const RingSize& size,
                                       std::span<const SizedSequence> sequences) const;
  /// Adds one of `local.size()` consecutive ranks that share sequences, the i-th of which holds those of local[i]
  /// alone. Where nothing is shared, every rank that holds some has a micro-batch of its own.
  void add_with_local(std::size_t first_rank, std::span<const std::size_t> shared,
                      const std::vector<SequenceList>& local);

  /// Adds a sequence to one rank in chunks in order, each but the last with `tokens` tokens. The last `kept` keep their
  /// activations, of which `offload` is the share that goes to the host; the others repeat their forward pass.
  void add_chunks(HdpRank rank, std::size_t sequence, std::int64_t tokens, std::int64_t kept,
                  const std::function<double(const MicroBatch&)>& offload);

  /// Adds sequences to consecutive ranks that attend for each other (TokenCut::served), in this order; with less than
  /// two tokens a rank, or on one rank, as an ordinary micro-batch.
  void add_served(std::size_t first_rank, std::int64_t ranks, std::span<const std::size_t> sequences,
                  std::vector<ServedQueries> moved);

  /// What is added from now on belongs to the next update of the plan, unless nothing was added to the last one.
  void begin_update() {
    if (!plan_.micro_batches.empty()) update_ = plan_.micro_batches.back().update + 1;
  }

  /// The plan, once. The lists of ranks are made here, each with the room that it needs. O(sequences + sum of group
  /// sizes).
  [[nodiscard]] Plan take();

 private:
  void add(MicroBatch micro_batch);
  [[nodiscard]] std::vector<Span> whole(std::span<const std::size_t> sequences) const;

  [[nodiscard]] std::int64_t length(std::size_t sequence) const { return batch_->sequences[sequence].tokens; }

  Plan plan_;                // without lengths and lists of ranks, which take() adds
  std::int64_t update_ = 0;  // of what is added
  const Batch* batch_;
};

/// A planner that adds the micro-batches of a batch to an empty plan.
class BuildingPlanner : public Planner {
 public:
  [[nodiscard]] Plan plan(const Batch& batch, std::int64_t step) const override {
    PlanBuilder builder(policy_, context_, batch, step);
    add_to(builder, batch);
    return builder.take();
  }
  [[nodiscard]] bool may_refuse() const final { return may_refuse_; }

 protected:
  BuildingPlanner(std::string policy, const PlanningContext& context, bool may_refuse = false)
      : context_(context), policy_(std::move(policy)), may_refuse_(may_refuse) {}
  virtual void add_to(PlanBuilder& builder, const Batch& batch) const = 0;

  PlanningContext context_;

 private:
  std::string policy_;
  bool may_refuse_;
};

}  // namespace hdpsim
