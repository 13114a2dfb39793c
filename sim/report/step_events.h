#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/analysis/link_load.h"
#include "sim/report/trace_events.h"

namespace hdpsim {

/// Threads of a process: stage by stage the micro-batches, then the streams.
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
  char phase = 'X';  ///< As in the file.
  Instant at;
  Duration lasts{};
  std::uint32_t process = 0;
  std::uint32_t thread = 0;
  std::size_t source = 0;  ///< X: which record or pass. s, f: the number of the arrow. C: which load or sample.
};

/// In the order of time. At one time viewers want what lasts no time first, for it ended before the next began; then
/// what encloses before what is enclosed; then what is tied to all that has begun.
[[nodiscard]] bool in_order(const TraceEvent& a, const TraceEvent& b);

/// What a trace shows of one step, and what its events speak of.
struct StepEvents {
  std::uint32_t first_process = 0;  ///< Of rank 0; the process of the links follows that of the last rank.
  std::uint32_t links_process = 0;
  std::uint32_t every = 1;  ///< Turn of a loop that is shown.
  std::vector<TraceEvent> events;
  std::map<PassId, MicroBatchProgram> programs;  ///< Of the instructions that are shown.
  std::vector<MemorySample> samples;
  std::vector<LinkLoad> loads;

  [[nodiscard]] std::uint32_t process_of(HdpRank rank) const {
    return first_process + static_cast<std::uint32_t>(rank.index());
  }
};

/// The events of a step in no order: O(shown instructions + samples).
[[nodiscard]] StepEvents events_of(const TracedStep& step, const TraceSelection& selection,
                                   std::uint32_t first_process);

}  // namespace hdpsim
