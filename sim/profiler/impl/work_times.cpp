#include "sim/profiler/impl/work_times.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "sim/profiler/impl/rank_trace.h"

namespace hdpsim {
namespace {

std::vector<LayeredStretch> stretches_of(const std::vector<Work>& work) {
  std::vector<LayeredStretch> stretches;
  stretches.reserve(work.size());
  for (const Work& each : work) stretches.push_back({each.begin, each.end, static_cast<std::size_t>(each.activity)});
  return stretches;
}

}  // namespace

DeviceActivity activity_of_message(std::optional<MessageKind> kind) {
  if (!kind) return DeviceActivity::other_collective;
  return static_cast<DeviceActivity>(static_cast<int>(DeviceActivity::send_recv) + static_cast<int>(*kind));
}

DeviceActivity activity_of_kernel(KernelClass kernel, std::optional<MessageKind> message) {
  switch (kernel) {
    case KernelClass::attention_forward:
      return DeviceActivity::attention_forward;
    case KernelClass::attention_backward:
      return DeviceActivity::attention_backward;
    case KernelClass::product:
      return DeviceActivity::product;
    case KernelClass::memory_bound:
      return DeviceActivity::memory_bound;
    case KernelClass::collective:
      return activity_of_message(message);
    case KernelClass::copy:
    case KernelClass::fill:
      return DeviceActivity::copy;
    case KernelClass::unknown:
      break;
  }
  return DeviceActivity::unknown;
}

WorkTimes::WorkTimes(const std::vector<Work>& work) : times_(stretches_of(work)) {}

ActivitySeconds WorkTimes::between(double begin, double end) const {
  ActivitySeconds seconds = times_.between(begin, end);
  const double busy = std::accumulate(seconds.begin(), seconds.end() - 1, 0.0);
  seconds.back() = std::max(0.0, end - begin - busy);
  for (double& each : seconds) each *= us;
  return seconds;
}

}  // namespace hdpsim
