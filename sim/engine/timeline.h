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
#include "sim/network/network_model.h"
#include "sim/program/instruction.h"
#include "sim/program/pipeline.h"

namespace hdpsim {

/// The categories of a rank's time. Every picosecond of every rank belongs to exactly one of them.
enum class Activity : std::uint8_t {
  attention,      ///< Attention launches and their merges.
  linear,         ///< Matrix products and the memory-bound kernels between them.
  cp_comm,        ///< Waiting for keys and values that are under way, and collectives within a group.
  tp_comm,        ///< Exposed tensor-parallel collectives and all-to-alls of expert groups.
  offload_stall,  ///< Waiting for a copy to or from host memory.
  bubble,         ///< Waiting for another pipeline stage: for its message, or at the end of the step.
  /// Imbalance: waiting for a rank that is not ready, at a ring or at the end of the step, or for the device that has
  /// the most popular experts.
  group_wait,
  grad_sync,  ///< Exposed gradient reduction and parameter all-gather over the data-parallel group.
  optimizer,
  data_wait,
  overhead,  ///< Fixed cost of a micro-batch and of a step; waiting for the host to issue kernels.
};
inline constexpr std::size_t activity_count = 11;
/// All activities in the order of their values.
inline constexpr std::array<Activity, activity_count> all_activities = [] {
  std::array<Activity, activity_count> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<Activity>(i);
  return all;
}();
/// The index of an activity in an array with one element per activity.
[[nodiscard]] constexpr std::size_t index_of(Activity activity) {
  return static_cast<std::size_t>(activity);
}
[[nodiscard]] std::string_view activity_name(Activity activity);
/// The activity of an instruction's exposed time. In the header, because simulations ask for every instruction.
[[nodiscard]] constexpr Activity activity_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::dense:
      return Activity::linear;
    case Opcode::attention:
    case Opcode::merge:
      return Activity::attention;
    case Opcode::exchange:
    case Opcode::share:
      return Activity::cp_comm;
    case Opcode::collective:
      return Activity::tp_comm;
    case Opcode::offload:
    case Opcode::prefetch:
      return Activity::offload_stall;
    case Opcode::gather:
    case Opcode::reduce:
      return Activity::grad_sync;
    case Opcode::overhead:
    case Opcode::issue:
      return Activity::overhead;
    case Opcode::rank_wait:
    case Opcode::expert_wait:
      return Activity::group_wait;
  }
  return Activity::overhead;
}
/// The activity of the time that the end of a block waits for this stream, which is not the compute stream.
[[nodiscard]] Activity activity_of(Stream stream);

/// Time by activity.
class Breakdown {
 public:
  [[nodiscard]] Duration operator[](Activity activity) const { return times_[index_of(activity)]; }
  Duration& operator[](Activity activity) { return times_[index_of(activity)]; }
  [[nodiscard]] Duration total() const;
  Breakdown& operator+=(const Breakdown& other);
  [[nodiscard]] Breakdown operator-(const Breakdown& other) const;
  /// The breakdown of a loop that runs its body `times` times.
  [[nodiscard]] Breakdown repeated(std::int64_t times) const;

 private:
  std::array<Duration, activity_count> times_{};
};

/// Priced time by evidence (index: Evidence), of one rank and of all ranks of a step together.
using EvidenceTimes = std::array<Duration, evidence_kinds>;
using EvidenceSums = std::array<DurationSum, evidence_kinds>;

/// When a micro-batch or one of its passes ran: from the begin of its first rank to the end of its last rank.
struct MicroBatchInterval {
  Instant begin;
  Instant end;
};

/// An instruction that a rank has executed, and its time. An exchange begins when the rank posts it.
struct InstructionRecord {
  HdpRank rank;
  MicroBatchId micro_batch;
  std::uint32_t block = 0;        ///< Block of the pass's program.
  std::uint32_t iteration = 0;    ///< Iteration of the block's loop.
  std::uint32_t instruction = 0;  ///< Index in the loop's body.
  Opcode opcode = Opcode::dense;
  Stream stream = Stream::compute;
  Instant begin;
  Instant end;
  /// In a pipeline: the chunk and kind of the pass that the instruction belongs to, and the stage that ran it.
  std::uint32_t chunk = 0;
  std::uint32_t stage = 0;
  PassKind kind = PassKind::whole;
  friend bool operator==(const InstructionRecord&, const InstructionRecord&) = default;
};

/// The pass that an instruction belongs to.
[[nodiscard]] PassId pass_of(const InstructionRecord& record, const Pipeline& pipeline);

/// The course of one step, simulated or measured. The ranks of a timeline are workers: the devices that run one stage
/// of one HDP rank. Without pipeline parallelism they are the HDP ranks.
struct Timeline {
  Duration step_time;
  std::vector<Breakdown> ranks;                   ///< One per worker: rank x stages + stage. Each sums to step_time.
  std::vector<MicroBatchInterval> micro_batches;  ///< In the order of the plan.
  std::vector<MicroBatchInterval> passes;         ///< By PassId; empty where every micro-batch is one pass.
  EvidenceSums evidence{};                        ///< Times of the kernels, summed over ranks.
  LinkTraffic links;                              ///< All that the job sends.
  LinkTraffic other_links;                        ///< All that other jobs send; empty without any.
  std::uint64_t events = 0;                       ///< Events of all jobs.
  std::vector<InstructionRecord> instructions;    ///< Empty unless they were asked for.

  /// When a pass ran.
  [[nodiscard]] const MicroBatchInterval& interval(PassId pass) const {
    return passes.empty() ? micro_batches.at(pass.index()) : passes.at(pass.index());
  }
  /// The mean over ranks, rounded so that the activities still sum to step_time.
  [[nodiscard]] Breakdown mean() const;
  /// The time that a rank did not wait for others: everything but group_wait and bubble.
  [[nodiscard]] Duration busy(std::size_t rank) const;
};

}  // namespace hdpsim
