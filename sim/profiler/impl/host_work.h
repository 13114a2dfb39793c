#pragma once

#include <cstdint>
#include <vector>

#include "sim/profiler/impl/work_times.h"
#include "sim/profiler/profiler_readers.h"

namespace hdpsim {

/// Something that a thread of the host did. Times are in microseconds of the trace.
struct HostEvent {
  enum class Kind : std::uint8_t {
    operation,  ///< It works itself while it calls no other.
    frame,      ///< It works itself only if it calls no operation at all.
    range,      ///< It does nothing itself; what it calls is part of it.
    transfer,   ///< A message under way, whatever its thread does.
  };
  double begin = 0;
  double end = 0;
  std::int64_t thread = 0;
  DeviceActivity activity = DeviceActivity::idle;
  Kind kind = Kind::operation;
};

/// What a "cpu_op" does by its name (operator_class()).
[[nodiscard]] HostEvent host_event(const ProfilerEvent& operation);

/// What the operators of all threads do, moment by moment: of those that call each other the innermost one counts, and
/// within attention all that computes is attention.
[[nodiscard]] std::vector<Work> host_work(std::vector<HostEvent> events);

}  // namespace hdpsim
