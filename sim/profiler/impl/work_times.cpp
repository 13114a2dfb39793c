#include "sim/profiler/impl/work_times.h"

#include <algorithm>
#include <cstddef>

#include "sim/profiler/impl/rank_trace.h"

namespace hdpsim {
namespace {

struct Border {
  double at;
  int change;
  DeviceActivity activity;
};

}  // namespace

WorkTimes::WorkTimes(const std::vector<Work>& work) {
  std::vector<Border> borders;
  borders.reserve(2 * work.size());
  for (const Work& each : work) {
    if (each.end <= each.begin) continue;
    borders.push_back({each.begin, 1, each.activity});
    borders.push_back({each.end, -1, each.activity});
  }
  std::stable_sort(borders.begin(), borders.end(), [](const Border& a, const Border& b) { return a.at < b.at; });
  std::array<int, device_activities> running{};
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    running.at(static_cast<std::size_t>(borders[i].activity)) += borders[i].change;
    if (borders[i + 1].at == borders[i].at) continue;
    const auto first = std::find_if(running.begin(), running.end() - 1, [](int count) { return count > 0; });
    const auto activity = static_cast<DeviceActivity>(first - running.begin());
    if (activity != DeviceActivity::idle) stretches_.push_back({borders[i].at, borders[i + 1].at, activity});
  }
}

ActivitySeconds WorkTimes::between(double begin, double end) const {
  ActivitySeconds seconds{};
  double idle = us * std::max(0.0, end - begin);
  auto at = std::partition_point(stretches_.begin(), stretches_.end(), [&](const Work& w) { return w.end <= begin; });
  for (; at != stretches_.end() && at->begin < end; ++at) {
    const double time = us * (std::min(end, at->end) - std::max(begin, at->begin));
    seconds.at(static_cast<std::size_t>(at->activity)) += time;
    idle -= time;
  }
  seconds.back() = std::max(0.0, idle);
  return seconds;
}

}  // namespace hdpsim
