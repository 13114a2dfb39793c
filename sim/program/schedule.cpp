#include "sim/program/schedule.h"

#include <algorithm>
#include <array>

#include "sim/base/check.h"
#include "sim/program/impl/schedules.h"

namespace hdpsim {

std::span<const PassKind> Schedule::kinds() const {
  static constexpr std::array two = {PassKind::forward, PassKind::backward};
  return two;
}

std::vector<SlotPass> Schedule::order_of_chains(std::int64_t /*stage*/, std::span<const std::int64_t> /*ends*/) const {
  HDPSIM_CHECK(false, "the schedule does not run chunks in order");
  return {};
}

std::span<const ScheduleEntry> pipeline_schedules() {
  return schedule_table;
}

const std::vector<std::string>& pipeline_schedule_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    all.reserve(std::size(schedule_table));
    for (const ScheduleEntry& entry : schedule_table) all.emplace_back(entry.name);
    return all;
  }();
  return names;
}

const ScheduleEntry* find_schedule(std::string_view name) {
  const auto* const found = std::find_if(schedule_table.begin(), schedule_table.end(),
                                         [&](const ScheduleEntry& entry) { return entry.name == name; });
  return found == schedule_table.end() ? nullptr : found;
}

std::shared_ptr<const Schedule> make_schedule(const PipelineOptions& options, std::int64_t stages) {
  const ScheduleEntry* const entry = find_schedule(options.schedule);
  HDPSIM_CHECK(entry != nullptr, "there is no schedule '{}'", options.schedule);
  const bool has_turns = options.virtual_stages > 1;
  HDPSIM_CHECK(stages >= 1 && options.virtual_stages >= 1 &&
                   (stages > 1 ? has_turns == entry->takes_virtual_stages : !has_turns),
               "{} stages of {} chunks each under {}", stages, options.virtual_stages, options.schedule);
  if (stages == 1) return make_one_stage();
  HDPSIM_CHECK(stages % entry->stages_multiple == 0, "{} stages under {}", stages, options.schedule);
  return entry->make(stages, options.virtual_stages);
}

std::shared_ptr<const Schedule> make_schedule_of_chains(const PipelineOptions& options, std::int64_t stages) {
  if (stages == 1) return schedule_table.front().make(1, 1);
  const ScheduleEntry* const entry = find_schedule(options.schedule);
  HDPSIM_CHECK(entry != nullptr && entry->runs_chunks_in_order, "chunks in order in a pipeline under {}",
               options.schedule);
  return make_schedule(options, stages);
}

}  // namespace hdpsim
