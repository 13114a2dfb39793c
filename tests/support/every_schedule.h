#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/schedule.h"
#include "sim/program/streamed_schedule.h"

namespace hdpsim::test {

/// Every schedule that knows pipelines of so many stages, with two virtual stages where it takes them: what a new one
/// has to keep it is tested with all others. Those that are no Schedule are left out: their stand-in is 1f1b.
inline std::vector<PipelineOptions> every_schedule(std::int64_t stages) {
  std::vector<PipelineOptions> all;
  for (const ScheduleEntry& schedule : pipeline_schedules()) {
    if (stages % schedule.stages_multiple != 0 || is_streamed({schedule.name})) continue;
    all.push_back({schedule.name, schedule.takes_virtual_stages ? 2 : 1});
  }
  return all;
}

}  // namespace hdpsim::test
