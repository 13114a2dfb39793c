#include "sim/profiler/impl/host_recording.h"

#include <algorithm>
#include <vector>

#include "sim/profiler/impl/host_work.h"
#include "sim/profiler/impl/rank_trace.h"
#include "sim/profiler/impl/work_times.h"

namespace hdpsim {

std::optional<RankRecording> recording_of_host(const std::filesystem::path& file) {
  RankRecording rank;
  rank.file = file.string();
  std::vector<HostEvent> events;
  const auto take = [&](const ProfilerEvent& event) {
    const bool is_operation = event.category == "cpu_op";
    if (!is_operation && event.category != "user_annotation") return;
    if (event.name.starts_with("ProfilerStep#")) {
      rank.steps_s.push_back(us * event.duration_us);
    } else if (is_operation) {
      require_room(events.size(), event);
      events.push_back(host_event(event));
    }
  };
  static_cast<void>(read_kineto(file, take));
  rank.kernels = std::ssize(events);
  const std::vector<Work> work = host_work(std::move(events));
  if (work.empty()) return std::nullopt;
  double begin = work.front().begin;
  double end = work.front().end;
  for (const Work& each : work) {
    begin = std::min(begin, each.begin);
    end = std::max(end, each.end);
  }
  rank.span_s = us * (end - begin);
  rank.seconds = WorkTimes(work).between(begin, end);
  return rank;
}

}  // namespace hdpsim
