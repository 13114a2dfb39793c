#include "sim/profiler/impl/range_trace.h"

#include <algorithm>
#include <utility>

#include "sim/profiler/impl/rank_trace.h"
#include "sim/profiler/kernel_class.h"

namespace hdpsim {
namespace {

DeviceActivity activity_of_attention(const TrainingRange& name) {
  return name.kind == TrainingRange::Kind::attention_forward ? DeviceActivity::attention_forward
                                                             : DeviceActivity::attention_backward;
}

DeviceActivity activity_of(const ProfilerEvent& event) {
  if (event.category != "kernel") return DeviceActivity::copy;
  const KernelClass own = kernel_kind(event.name).kind;
  if (own != KernelClass::collective) return activity_of_kernel(own, std::nullopt);
  const auto named = message_kind_of(event.name);
  return activity_of_message(named ? named : message_kind_of(event.collective));
}

template <class Ranges>
void sort_by_begin(Ranges& ranges) {
  std::stable_sort(ranges.begin(), ranges.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
}

void add_to(const std::vector<MarkedRange>& ranges, RangesOfThreads& passes, RangesOfThreads& attention) {
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].name.is_pass()) passes.add(ranges[i], i);
    if (ranges[i].name.is_attention()) attention.add(ranges[i], i);
  }
  passes.sort();
  attention.sort();
}

}  // namespace

void RangesOfThreads::sort() {
  for (auto& [thread, entries] : threads_) {
    std::stable_sort(entries.begin(), entries.end(),
                     [](const Entry& a, const Entry& b) { return a.range.begin < b.range.begin; });
  }
}

std::optional<std::size_t> RangesOfThreads::at(std::int64_t thread, double moment) const {
  const auto entries = threads_.find(thread);
  if (entries == threads_.end()) return std::nullopt;
  const auto behind = std::partition_point(entries->second.begin(), entries->second.end(),
                                           [&](const Entry& entry) { return entry.range.begin <= moment; });
  if (behind == entries->second.begin() || std::prev(behind)->range.end <= moment) return std::nullopt;
  return std::prev(behind)->index;
}

std::optional<std::size_t> RangesOfThreads::at(double moment) const {
  for (const auto& [thread, entries] : threads_) {
    if (const auto found = at(thread, moment)) return found;
  }
  return std::nullopt;
}

void RangeTrace::add(const ProfilerEvent& event) {
  if (event.category == "kernel" || event.category == "gpu_memcpy" || event.category == "gpu_memset") {
    return add_kernel(event);
  }
  if (event.category == "cuda_runtime" || event.category == "cuda_driver" || event.category == "hip_runtime") {
    if (event.correlation < 0) return;
    require_room(launches_.size(), event);
    launches_[event.correlation] = {event.begin_us, event.thread};
    return;
  }
  const bool is_on_device = event.category == "gpu_user_annotation";
  const bool is_operation = event.category == "cpu_op";
  if (!is_on_device && !is_operation && event.category != "user_annotation") return;
  const auto name = training_range(event.name);
  if (!name) return is_operation ? add_operation(event) : void();
  std::vector<MarkedRange>& ranges = is_on_device ? on_streams_ : ranges_;
  require_room(ranges.size(), event);
  const std::int64_t thread = is_on_device && event.stream >= 0 ? event.stream : event.thread;
  ranges.push_back({*name, event.begin_us, event.begin_us + event.duration_us, thread});
}

void RangeTrace::add_kernel(const ProfilerEvent& event) {
  require_room(kernels_.size(), event);
  kernels_.push_back({{event.begin_us, event.begin_us + event.duration_us, activity_of(event)},
                      event.correlation,
                      event.stream >= 0 ? event.stream : event.thread});
}

void RangeTrace::add_operation(const ProfilerEvent& event) {
  require_room(operations_.size(), event);
  operations_.push_back(host_event(event));
}

void RangeTrace::finish() {
  sort_by_begin(ranges_);
  sort_by_begin(on_streams_);
  add_to(ranges_, passes_, attention_);
  add_to(on_streams_, stream_passes_, stream_attention_);
  for (const MarkedRange& range : on_streams_) {
    pass_of_on_stream_.push_back(range.name.is_pass() ? pass_on_host(range) : std::nullopt);
  }
  for (DeviceWork& kernel : kernels_) {
    if (kernel.work.activity >= DeviceActivity::send_recv) continue;
    if (const auto attention = attention_of(kernel)) kernel.work.activity = *attention;
  }
}

std::int64_t RangeTrace::work_count() const {
  return is_of_host() ? std::ssize(operations_) : std::ssize(kernels_);
}

std::vector<Work> RangeTrace::work() const {
  std::vector<Work> work;
  if (is_of_host()) {
    std::vector<HostEvent> events = operations_;
    for (const MarkedRange& range : ranges_) {
      if (!range.name.is_attention()) continue;
      events.push_back({.begin = range.begin,
                        .end = range.end,
                        .thread = range.thread,
                        .activity = activity_of_attention(range.name),
                        .kind = HostEvent::Kind::range});
    }
    work = host_work(std::move(events));
  } else {
    for (const DeviceWork& kernel : kernels_) work.push_back(kernel.work);
  }
  for (const MarkedRange& range : ranges_) {
    if (range.name.kind == TrainingRange::Kind::exchange)
      work.push_back({range.begin, range.end, DeviceActivity::send_recv});
  }
  return work;
}

std::optional<std::int64_t> RangeTrace::rank() const {
  for (const MarkedRange& range : ranges_) {
    if (range.name.rank >= 0) return range.name.rank;
  }
  return std::nullopt;
}

const RangeTrace::Launch* RangeTrace::found_launch(const DeviceWork& kernel) const {
  const auto found = launches_.find(kernel.correlation);
  return found == launches_.end() ? nullptr : &found->second;
}

std::optional<double> RangeTrace::launch_of(const DeviceWork& kernel) const {
  const Launch* launch = found_launch(kernel);
  return launch == nullptr ? std::nullopt : std::optional(launch->at);
}

std::optional<std::size_t> RangeTrace::pass_of(const DeviceWork& kernel) const {
  if (const auto range = stream_passes_.at(kernel.stream, kernel.work.begin)) {
    if (pass_of_on_stream_[*range]) return pass_of_on_stream_[*range];
  }
  const Launch* launch = found_launch(kernel);
  return launch == nullptr ? std::nullopt : passes_.at(launch->at);
}

std::optional<DeviceActivity> RangeTrace::attention_of(const DeviceWork& kernel) const {
  if (const auto range = stream_attention_.at(kernel.stream, kernel.work.begin)) {
    return activity_of_attention(on_streams_[*range].name);
  }
  const Launch* launch = found_launch(kernel);
  if (launch == nullptr) return std::nullopt;
  const auto range = attention_.at(launch->thread, launch->at);
  return range ? std::optional(activity_of_attention(ranges_[*range].name)) : std::nullopt;
}

// The last one of its name that began before it: the host is ahead of the device.
std::optional<std::size_t> RangeTrace::pass_on_host(const MarkedRange& on_stream) const {
  const TrainingRange& name = on_stream.name;
  const auto behind = std::partition_point(ranges_.begin(), ranges_.end(),
                                           [&](const MarkedRange& range) { return range.begin <= on_stream.begin; });
  const auto found = std::find_if(std::make_reverse_iterator(behind), ranges_.rend(), [&](const MarkedRange& range) {
    return range.name.kind == name.kind && range.name.step == name.step && range.name.micro_batch == name.micro_batch;
  });
  if (found == ranges_.rend()) return std::nullopt;
  return static_cast<std::size_t>(std::prev(found.base()) - ranges_.begin());
}

}  // namespace hdpsim
