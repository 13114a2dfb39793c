#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/schedule.h"

namespace hdpsim::test {

/// Every schedule that knows pipelines of so many stages, with two virtual stages where it takes them: what a new one
/// has to keep it is tested with all others.
inline std::vector<PipelineOptions> every_schedule(std::int64_t stages) {
  std::vector<PipelineOptions> all;
  for (const ScheduleEntry& schedule : pipeline_schedules()) {
    if (stages % schedule.stages_multiple != 0) continue;
    all.push_back({schedule.name, schedule.takes_virtual_stages ? 2 : 1});
  }
  return all;
}

}  // namespace hdpsim::test
