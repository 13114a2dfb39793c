#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/analysis/link_use.h"
#include "sim/report/trace_events.h"

namespace hdpsim {

/// Threads of a process: for each stage the micro-batches, then the streams.
constexpr std::uint32_t threads_of_stage = 1 + stream_count;
constexpr std::uint32_t micro_batch_thread(std::int64_t stage) {
  return 1 + static_cast<std::uint32_t>(stage) * threads_of_stage;
}
constexpr std::uint32_t thread_of(std::int64_t stage, Stream stream) {
  return micro_batch_thread(stage) + 1 + static_cast<std::uint32_t>(stream);
}
constexpr bool shows_micro_batches(std::uint32_t thread) {
  return thread % threads_of_stage == 1;
}

/// One event of a trace before it is text.
struct TraceEvent {
  char phase = 'X';  ///< The letter of the format.
  Instant at;
  Duration lasts{};
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
  /// X: index of the record or pass. s, f: number of the arrow. C: index of the load or sample.
  std::size_t source = 0;
};

/// Orders events by time. At one time viewers want events of zero duration first, because they ended before the next
/// began; then enclosing events before enclosed ones; then arrows, which attach to events that have begun.
[[nodiscard]] bool in_order(const TraceEvent& a, const TraceEvent& b);

/// The events that a trace shows of one step, and the data that they refer to.
struct StepEvents {
  std::uint32_t first_process = 0;  ///< Process of rank 0; the process of the links follows that of the last rank.
  std::uint32_t links_process = 0;
  std::uint32_t every = 1;  ///< Every how many turns of a loop are shown.
  std::vector<TraceEvent> events;
  std::map<PassId, MicroBatchProgram> programs;  ///< Programs of the shown instructions.
  std::vector<MemorySample> samples;
  std::vector<LinkLoad> loads;

  [[nodiscard]] std::uint32_t process_of(HdpRank rank) const {
    return first_process + static_cast<std::uint32_t>(rank.index());
  }
};

/// The events of a step, unordered: O(shown instructions + samples).
[[nodiscard]] StepEvents events_of(const TracedStep& step, const TraceSelection& selection,
                                   std::uint32_t first_process);

}  // namespace hdpsim
