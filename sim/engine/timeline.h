#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/duration_sum.h"
#include "sim/base/id.h"
#include "sim/base/units.h"
#include "sim/cost/cost_model.h"
#include "sim/program/instruction.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// What a rank's time goes to. Every picosecond of every rank is exactly one of these.
enum class Activity : std::uint8_t {
  attention,      ///< Attention launches and their merges.
  linear,         ///< Matrix products and the memory-bound kernels between them.
  cp_comm,        ///< Waiting for keys and values that are on their way.
  tp_comm,        ///< Tensor-parallel collectives and all-to-alls of expert groups, which nothing hides.
  offload_stall,  ///< Waiting for a copy to or from host memory.
  bubble,         ///< Waiting for another pipeline stage: for its message, or at the end of the step.
  group_wait,     ///< Waiting for a rank that is not ready, at a ring or at the end of the step, or for the device that
                  ///< has the most popular experts: imbalance.
  grad_sync,      ///< Gradient reduction and parameter all-gather over the pool that nothing hides.
  optimizer,
  data_wait,
  overhead,  ///< Fixed cost of a micro-batch and of a step; waiting for the host to issue kernels.
};
inline constexpr std::size_t activity_count = 11;
/// In the order of their values.
inline constexpr std::array<Activity, activity_count> all_activities = [] {
  std::array<Activity, activity_count> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Activity>(i);
  return all;
}();
/// Where an array with a place for every activity has this one's.
[[nodiscard]] constexpr std::size_t index_of(Activity activity) {
  return static_cast<std::size_t>(activity);
}
[[nodiscard]] std::string_view activity_name(Activity activity);
/// What an instruction's time is booked as, where it is not hidden.
[[nodiscard]] Activity activity_of(Opcode opcode);
/// What the end of a block is booked as that waits for this stream, which is not the compute stream.
[[nodiscard]] Activity activity_of(Stream stream);

/// Time by activity.
class Breakdown {
 public:
  [[nodiscard]] Duration operator[](Activity activity) const { return times_[index_of(activity)]; }
  Duration& operator[](Activity activity) { return times_[index_of(activity)]; }
  [[nodiscard]] Duration total() const;
  Breakdown& operator+=(const Breakdown& other);
  /// The same loop body run `times` times.
  [[nodiscard]] Breakdown repeated(std::int64_t times) const;

 private:
  std::array<Duration, activity_count> times_{};
};

/// Priced time of one rank, and of all ranks of a step together, by what it rests on (index: Evidence).
using EvidenceTimes = std::array<Duration, evidence_kinds>;
using EvidenceSums = std::array<DurationSum, evidence_kinds>;

/// When a micro-batch or one of its passes ran: from the first of its ranks that began to the last that ended.
struct MicroBatchInterval {
  Instant begin;
  Instant end;
};

/// One instruction as one rank ran it: which one, and when. An exchange begins when the rank posts it.
struct InstructionRecord {
  HdpRank rank;
  MicroBatchId micro_batch;
  std::uint32_t block = 0;        ///< Of the micro-batch's program ...
  std::uint32_t iteration = 0;    ///< ... the turn of its loop ...
  std::uint32_t instruction = 0;  ///< ... and the place in its body.
  Opcode opcode = Opcode::dense;
  Stream stream = Stream::compute;
  Instant begin;
  Instant end;
  /// Of a pipeline, the pass that the instruction belongs to, and the rank's stage that ran it.
  std::uint32_t chunk = 0;
  std::uint32_t stage = 0;
  PassKind kind = PassKind::whole;
  friend bool operator==(const InstructionRecord&, const InstructionRecord&) = default;
};

/// The pass that an instruction belongs to.
[[nodiscard]] PassId pass_of(const InstructionRecord& record, const Pipeline& pipeline);

/// What one step was: simulated or measured. The ranks of a timeline are workers: the devices that run one stage of one
/// HDP rank. Without pipelines they are the HDP ranks.
struct Timeline {
  Duration step_time;
  std::vector<Breakdown> ranks;                   ///< One a worker: rank x stages + stage. Each sums to step_time.
  std::vector<MicroBatchInterval> micro_batches;  ///< In the order of the plan.
  std::vector<MicroBatchInterval> passes;         ///< Of a pipeline, by PassId; empty with one stage.
  EvidenceSums evidence{};                        ///< Of the kernels, summed over ranks.
  std::vector<Bytes> link_bytes;                  ///< What rings sent over each link, by LinkId.
  std::vector<Bytes> other_link_bytes;            ///< What other jobs sent meanwhile, all of it; empty without any.
  std::uint64_t events = 0;                       ///< Of all jobs.
  std::vector<InstructionRecord> instructions;    ///< Empty unless they were asked for.

  /// When a pass ran. With one stage a micro-batch is one pass.
  [[nodiscard]] const MicroBatchInterval& interval(PassId pass) const {
    return passes.empty() ? micro_batches.at(pass.index()) : passes.at(pass.index());
  }
  /// Mean over ranks, rounded so that the activities still sum to step_time.
  [[nodiscard]] Breakdown mean() const;
  /// Time that a rank did not wait for others: everything but group_wait and bubble.
  [[nodiscard]] Duration busy(std::size_t rank) const;
};

}  // namespace hdpsim
