#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "sim/engine/timeline.h"
#include "sim/program/instruction.h"

namespace hdpsim {

// What a device's compute stream is booked as while it is idle, in every fidelity that interprets instructions.
// `Time` is an Instant, or a Duration since a loop began.

/// When an instruction starts, and what its stream waits for until then.
template <class Time>
struct Start {
  Time at;
  Activity waited_for;  ///< The instruction's own activity if it starts as soon as its stream is free.
};

/// An instruction starts when its stream is free and all its dependencies have ended. The stream waits for the one that
/// ends last; if several do, for the first of these. `end_of(dependency)` is when a dependency ended, Time{} for one
/// that no iteration of the loop has run.
template <class Time, class EndOf>
[[nodiscard]] Start<Time> start_of(const Instruction& instruction, const Block& block, Time stream_free, EndOf end_of) {
  Start<Time> start{stream_free, activity_of(instruction.opcode)};
  for (const Dependency& dependency : instruction.needed()) {
    const Time end = end_of(dependency);
    if (end > start.at) start = {end, activity_of(block.body[dependency.instruction].opcode)};
  }
  return start;
}

/// The number of iterations to the earliest one that an instruction of a loop waits for.
[[nodiscard]] inline std::int64_t farthest_back(const Block& block) {
  std::uint32_t farthest = 0;
  for (const Instruction& instruction : block.body) {
    for (const Dependency& needed : instruction.needed()) farthest = std::max(farthest, needed.iterations_back);
  }
  return farthest;
}

/// The activity that the stream of an instruction waits for whenever it waits, if all dependencies on other streams
/// have the same one. Saves start_of() for every rank.
[[nodiscard]] inline std::optional<Activity> only_wait_of(const Instruction& instruction, const Block& block) {
  std::optional<Activity> only;
  for (const Dependency& dependency : instruction.needed()) {
    const Instruction& needed = block.body[dependency.instruction];
    if (needed.stream == instruction.stream) continue;
    const Activity activity = activity_of(needed.opcode);
    if (only.value_or(activity) != activity) return std::nullopt;
    only = activity;
  }
  return only;
}

/// A block ends when all streams have. Until then the compute stream waits for the one that ends last; if several do,
/// for the first of these. `ends`: by Stream.
template <class Time>
[[nodiscard]] Start<Time> end_of_block(const std::array<Time, stream_count>& ends) {
  constexpr auto compute = static_cast<std::size_t>(Stream::compute);
  Start<Time> end{ends[compute], Activity::overhead};
  for (std::size_t stream = 0; stream < stream_count; ++stream) {
    if (ends[stream] > end.at) end = {ends[stream], activity_of(static_cast<Stream>(stream))};
  }
  return end;
}

}  // namespace hdpsim
