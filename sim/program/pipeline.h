#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/base/id.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/plan.h"
#include "sim/program/chunk_map.h"
#include "sim/program/schedule.h"

namespace hdpsim {

/// The tp devices that run one stage of one HDP rank; the index is rank x stages + stage.
using WorkerId = Id<struct WorkerTag>;
/// One pass of one micro-batch through one chunk.
using PassId = Id<struct StagePassTag>;

/// A pass that the ranks of a micro-batch's group run together on one stage. Their ring connects the devices of this
/// stage.
struct StagePass {
  MicroBatchId micro_batch;
  std::int64_t chunk = 0;  ///< Chunk of the model, in the order of the layers.
  std::int64_t stage = 0;  ///< The stage that has the chunk for this micro-batch.
  PassKind kind = PassKind::whole;
  friend bool operator==(const StagePass&, const StagePass&) = default;
};

/// The order of the passes of every worker, and the messages between passes.
///
/// Order rule. A plan orders the micro-batches of every rank, and rings make ranks wait for each other on every stage.
/// If each rank ran 1F1B by the positions in its own list, two rings that are close together on one rank and far apart
/// on another would deadlock: one rank runs the second forward before the first backward, the other the reverse.
/// Therefore every micro-batch has a slot, which is the same on all its ranks: one more than the latest slot of the
/// micro-batches directly before it on any of its ranks. The order is that of the schedule for a pipeline with one
/// micro-batch per slot, and each rank runs those micro-batches that it has, in this order. A part of an order without
/// cycles has no cycle, so that there is no deadlock unless the plan's own order has a cycle (sim/plan/plan_check.h
/// reports those). A rank without a micro-batch in some slot runs nothing in its place. The micro-batches of a wave
/// (sim/plan/expert_waves.h) share one slot.
///
/// The updates of a plan (sim/plan/updates.h) follow each other: the order is that of the first, then that of the
/// second, and so on.
///
/// Where micro-batches continue others (MicroBatch::continues), ranks have no group in common, and each has an order of
/// its own: that of Schedule::order_of_chains().
class Pipeline {
 public:
  /// The plan must have passed the checker and outlive the pipeline. With several stages, a cycle in its order throws a
  /// CheckFailure that says who waits for what. O(n log n) for n passes of all workers.
  Pipeline(const Plan& plan, std::int64_t stages, const PipelineOptions& options);

  [[nodiscard]] const Plan& plan() const { return plan_; }
  [[nodiscard]] const Schedule& schedule() const { return *schedule_; }
  [[nodiscard]] std::int64_t stages() const { return chunk_map_.stages(); }
  [[nodiscard]] std::int64_t chunks() const { return chunk_map_.chunks(); }
  [[nodiscard]] const ChunkMap& chunk_map() const { return chunk_map_; }
  [[nodiscard]] std::size_t workers() const { return orders_.size(); }
  /// Whether each micro-batch is one pass, forward and backward. So it is with one stage, unless it has chunks in
  /// order.
  [[nodiscard]] bool has_whole_passes() const { return kinds_.front() == PassKind::whole; }
  [[nodiscard]] std::size_t passes() const { return plan_.micro_batches.size() * passes_of_micro_batch(); }

  [[nodiscard]] WorkerId worker(HdpRank rank, std::int64_t stage) const {
    return WorkerId(rank.index() * static_cast<std::size_t>(stages()) + static_cast<std::size_t>(stage));
  }
  [[nodiscard]] HdpRank rank_of(WorkerId worker) const {
    return HdpRank(worker.index() / static_cast<std::size_t>(stages()));
  }
  [[nodiscard]] std::int64_t stage_of(WorkerId worker) const {
    return static_cast<std::int64_t>(worker.index()) % stages();
  }

  /// By worker: its passes in the order of execution.
  [[nodiscard]] const std::vector<std::vector<PassId>>& orders() const { return orders_; }
  [[nodiscard]] StagePass pass(PassId id) const;
  [[nodiscard]] PassId id_of(MicroBatchId micro_batch, std::int64_t chunk, PassKind kind) const;
  /// Whether a pass is the first one of its micro-batch on its stage.
  [[nodiscard]] bool begins_on_stage(PassId id) const;
  /// The micro-batch of a pass, whose group runs the pass.
  [[nodiscard]] const MicroBatch& micro_batch(PassId id) const {
    return plan_.micro_batches[id.index() / passes_of_micro_batch()];
  }
  /// Whether another micro-batch continues this one (MicroBatch::continues).
  [[nodiscard]] bool is_continued(MicroBatchId id) const { return !continued_.empty() && continued_[id.index()]; }
  /// The workers that run a pass, in ring order.
  [[nodiscard]] std::vector<WorkerId> group(PassId id) const;
  [[nodiscard]] MicroBatchId micro_batch_id(PassId id) const {
    return MicroBatchId(id.index() / passes_of_micro_batch());
  }
  /// The wave of a pass: the same passes of all micro-batches of its micro-batch's wave, itself included. Their number,
  /// and their ids.
  [[nodiscard]] std::size_t wave_size(PassId id) const {
    return waves_.members(waves_.wave(micro_batch_id(id))).size();
  }
  [[nodiscard]] std::vector<PassId> wave(PassId id) const;
  /// The index of that wave among the waves of all chunks and kinds; below passes().
  [[nodiscard]] std::size_t wave_index(PassId id) const {
    return waves_.wave(micro_batch_id(id)) * passes_of_micro_batch() + id.index() % passes_of_micro_batch();
  }

  /// The pass on another stage that needs the result of this one: the activations in forward, their gradients in
  /// backward. Every rank sends to itself: from its worker of this pass to its worker of the target.
  [[nodiscard]] std::optional<PassId> target(PassId id) const;
  /// The pass on another stage whose message this pass needs: the one whose target is this pass.
  [[nodiscard]] std::optional<PassId> source(PassId id) const;
  /// The pass that the schedule runs at the same time (SlotPass::beside_next): a backward pass, or the first of a split
  /// one, beside a forward pass. Where the ranks of a group have different ones, that of its first rank.
  [[nodiscard]] std::optional<PassId> overlap_partner(PassId id) const {
    return overlap_partners_.empty() ? std::nullopt : overlap_partners_[id.index()];
  }

 private:
  [[nodiscard]] std::size_t passes_of_micro_batch() const { return static_cast<std::size_t>(chunks()) * kinds_.size(); }
  [[nodiscard]] std::int64_t copy_of(MicroBatchId id) const { return copies_.empty() ? 0 : copies_[id.index()]; }
  [[nodiscard]] std::size_t offset_of(std::int64_t chunk, PassKind kind) const;
  [[nodiscard]] std::optional<PassId> neighbour(PassId id, std::int64_t step) const;
  void order_updates(const PipelineOptions& options);
  void order_passes();
  void order_chains();
  void order_stage(std::int64_t stage, const std::vector<std::int64_t>& slots, std::int64_t slot_count);
  void pair(PassId forward, PassId backward);

  const Plan& plan_;
  WaveTable waves_;
  std::shared_ptr<const Schedule> schedule_;
  ChunkMap chunk_map_;
  std::span<const PassKind> kinds_;   ///< Passes of a micro-batch through one chunk.
  std::vector<std::int64_t> copies_;  ///< Copy of the model by micro-batch; empty if there is one copy.
  std::vector<bool> continued_;       ///< By micro-batch; empty if none is.
  std::vector<std::vector<PassId>> orders_;
  std::vector<std::optional<PassId>> overlap_partners_;  ///< By pass; empty if no two passes run at the same time.
};

}  // namespace hdpsim
