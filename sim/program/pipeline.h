#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/id.h"
#include "sim/plan/expert_waves.h"
#include "sim/plan/plan.h"

namespace hdpsim {

/// The order in which the stages of a pipeline run the passes of its micro-batches. With one stage there is nothing to
/// order: each micro-batch goes forward and backward at once.
enum class PipelineSchedule : std::uint8_t {
  one_f_one_b,  ///< Narayanan et al. 2021 (PipeDream-Flush): p - 1 - s forward passes, then one forward, one backward.
  gpipe,        ///< Huang et al. 2019: all forward passes, then all backward passes.
  interleaved,  ///< Narayanan et al. 2021 (Megatron-LM): 1F1B over the chunks of virtual stages, p at a time.
  zb_h1,        ///< Qi et al. 2023: 1F1B with backward in two parts; stage s is s weight gradients behind.
};
/// `1f1b`, `gpipe`, `interleaved`, `zb-h1`, in the order of the enumeration.
[[nodiscard]] const std::vector<std::string>& pipeline_schedule_names();

struct PipelineOptions {
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  std::int64_t virtual_stages = 1;  ///< Chunks of layers on each stage; more than 1 if and only if interleaved.
};

/// The layers of a chunk. The first chunk has the embedding too, the last one the output head and the loss.
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};
/// Deals `layers` to `chunks` as evenly as possible: the layers that are left over go to the first chunks, one each,
/// because the last one has the output head besides. Requires 1 <= chunks <= layers (checked).
[[nodiscard]] LayerRange layers_of_chunk(std::int64_t layers, std::int64_t chunks, std::int64_t chunk);

/// The devices that run one stage of one HDP rank, tp of them: rank x stages + stage.
using WorkerId = Id<struct WorkerTag>;
/// One pass of one micro-batch through one chunk.
using PassId = Id<struct StagePassTag>;

enum class PassKind : std::uint8_t {
  whole,            ///< Forward and backward: of a pipeline of one stage, the only kind.
  forward,          ///< F
  backward,         ///< B: all of backward.
  input_gradient,   ///< B of a backward in two parts: what the stage before waits for.
  weight_gradient,  ///< W: the other part, which nobody waits for before the end of the step.
};
inline constexpr std::size_t pass_kinds = 5;
/// `whole`, `forward`, `backward`, `input gradient`, `weight gradient`.
[[nodiscard]] std::string_view pass_kind_name(PassKind kind);

/// Whether activations of the pass's chunk are in memory from it on: forward's are.
[[nodiscard]] bool keeps_activations(PassKind kind);
/// Whether it is (or ends in) a pass that reads the activations and makes gradients of hidden states: the fullest moment.
[[nodiscard]] bool goes_backward(PassKind kind);
/// Whether nobody needs the activations of the chunk behind it. A weight gradient needs what backward needed.
[[nodiscard]] bool releases_activations(PassKind kind);

/// What the ranks of a micro-batch's group run together on one of their stages. A ring of theirs joins the devices of
/// this stage.
struct StagePass {
  MicroBatchId micro_batch;
  std::int64_t chunk = 0;  ///< 0 ... stages x virtual stages - 1, in the order of the layers.
  std::int64_t stage = 0;  ///< chunk mod stages.
  PassKind kind = PassKind::whole;
  friend bool operator==(const StagePass&, const StagePass&) = default;
};

/// Who runs which pass when, and which pass waits for a message of which other.
///
/// Order rule. A plan orders the micro-batches of every rank, and rings make ranks wait for each other on every stage.
/// If each rank ran its own 1F1B by the positions in its own list, two rings that stand close together on one rank and
/// far apart on another would wait for each other for ever: one rank wants the second forward before the first
/// backward, the other the reverse. So micro-batches get slots that all their ranks have in common: one more than the
/// latest slot of those that stand right before it on any of its ranks. The schedule is that of a pipeline with
/// endlessly many micro-batches, one a slot, of which each rank runs those that it has, in that order. A part of an
/// order without circles has none; so there is no deadlock wherever the plan's own order has none
/// (sim/plan/plan_check.h tells of those). A rank without a micro-batch in some slot runs nothing in its place.
/// Micro-batches of a wave (sim/plan/expert_waves.h) have one slot.
class Pipeline {
 public:
  /// The plan must have passed the checker and outlive the pipeline; a circle in its order is a CheckFailure that says
  /// who waits for what. O(passes of all workers, times their logarithm).
  Pipeline(const Plan& plan, std::int64_t stages, const PipelineOptions& options);

  [[nodiscard]] std::int64_t stages() const { return stages_; }
  [[nodiscard]] std::int64_t chunks() const { return stages_ * options_.virtual_stages; }
  [[nodiscard]] std::size_t workers() const { return schedule_.size(); }
  [[nodiscard]] std::size_t passes() const { return plan_.micro_batches.size() * passes_of_micro_batch(); }

  [[nodiscard]] WorkerId worker(HdpRank rank, std::int64_t stage) const {
    return WorkerId(rank.index() * static_cast<std::size_t>(stages_) + static_cast<std::size_t>(stage));
  }
  [[nodiscard]] HdpRank rank_of(WorkerId worker) const {
    return HdpRank(worker.index() / static_cast<std::size_t>(stages_));
  }
  [[nodiscard]] std::int64_t stage_of(WorkerId worker) const {
    return static_cast<std::int64_t>(worker.index()) % stages_;
  }

  /// By worker: its passes in the order of execution.
  [[nodiscard]] const std::vector<std::vector<PassId>>& schedule() const { return schedule_; }
  [[nodiscard]] StagePass pass(PassId id) const;
  [[nodiscard]] PassId id_of(const StagePass& pass) const;
  /// The micro-batch whose pass it is: its group runs it.
  [[nodiscard]] const MicroBatch& micro_batch(PassId id) const {
    return plan_.micro_batches[id.index() / passes_of_micro_batch()];
  }
  /// The workers that run it, in ring order.
  [[nodiscard]] std::vector<WorkerId> group(PassId id) const;
  [[nodiscard]] MicroBatchId micro_batch_id(PassId id) const {
    return MicroBatchId(id.index() / passes_of_micro_batch());
  }
  /// The same passes of all micro-batches that run together with its own, which is one of them: how many, and which.
  [[nodiscard]] std::size_t wave_size(PassId id) const {
    return waves_.members(waves_.wave(micro_batch_id(id))).size();
  }
  [[nodiscard]] std::vector<PassId> wave(PassId id) const;
  /// Which wave that is, of all of a stage and kind: below passes().
  [[nodiscard]] std::size_t wave_index(PassId id) const {
    return waves_.wave(micro_batch_id(id)) * passes_of_micro_batch() + id.index() % passes_of_micro_batch();
  }

  /// The pass on another stage that needs what this one computes: forward the activations, backward their gradients.
  /// Every rank sends to itself: from its worker of this pass to its worker of that one.
  [[nodiscard]] std::optional<PassId> target(PassId id) const;
  /// The pass on another stage whose message this one needs: the one that has it as target.
  [[nodiscard]] std::optional<PassId> source(PassId id) const;

 private:
  [[nodiscard]] std::size_t passes_of_micro_batch() const {
    return static_cast<std::size_t>(chunks()) * static_cast<std::size_t>(kinds_);
  }
  [[nodiscard]] PassId neighbour(PassId id, std::int64_t chunk) const;
  void order_passes();

  const Plan& plan_;
  WaveTable waves_;
  std::int64_t stages_;
  PipelineOptions options_;
  std::int64_t kinds_;  ///< Passes of a micro-batch through one chunk.
  std::vector<std::vector<PassId>> schedule_;
};

/// The most model chunks, each 1 / (stages x virtual stages) of the layers, whose activations a stage holds at a time
/// when every rank runs so many micro-batches: counted along the order of its passes. 1F1B holds p - s micro-batches,
/// the interleaved schedule 2 (p - s - 1) + (v - 1) p + 1 chunks (Narayanan et al. 2021), GPipe all, ZB-H1 p on every
/// stage (Qi et al. 2023). O(p v log(p v)).
[[nodiscard]] std::int64_t most_chunks_in_flight(std::int64_t stages, std::int64_t stage,
                                                 const PipelineOptions& options, std::int64_t micro_batches);
/// Whether a stage holds ever more micro-batches as a rank has more of them.
[[nodiscard]] bool holds_all_micro_batches(std::int64_t stages, const PipelineOptions& options);

}  // namespace hdpsim
