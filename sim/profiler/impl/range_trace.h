#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/profiler/impl/host_work.h"
#include "sim/profiler/impl/work_times.h"
#include "sim/profiler/profiler_readers.h"
#include "sim/profiler/training_range.h"

namespace hdpsim {

/// A range that the training marked, in microseconds of the trace.
struct MarkedRange {
  TrainingRange name;
  double begin = 0;
  double end = 0;
  std::int64_t thread = 0;  ///< The stream of a range on a device.
};

/// Ranges none of which begins before the one before it on its thread has ended.
class RangesOfThreads {
 public:
  void add(const MarkedRange& range, std::size_t index) { threads_[range.thread].push_back({range, index}); }
  void sort();
  /// The range of a thread, or of any thread, at a moment: the index with which it was added.
  [[nodiscard]] std::optional<std::size_t> at(std::int64_t thread, double moment) const;
  [[nodiscard]] std::optional<std::size_t> at(double moment) const;

 private:
  struct Entry {
    MarkedRange range;
    std::size_t index;
  };
  std::map<std::int64_t, std::vector<Entry>> threads_;
};

/// A kernel, message or copy of a device.
struct DeviceWork {
  Work work;
  std::int64_t correlation = -1;
  std::int64_t stream = 0;
};

/// What counts of a trace with ranges, event by event.
class RangeTrace {
 public:
  void add(const ProfilerEvent& event);
  /// After the last event. Within ranges of attention all that computes becomes attention.
  void finish();

  [[nodiscard]] bool is_of_host() const { return kernels_.empty(); }
  /// Kernels, or operators where there are none.
  [[nodiscard]] std::int64_t work_count() const;
  /// Those of the host, by their begins.
  [[nodiscard]] const std::vector<MarkedRange>& ranges() const { return ranges_; }
  [[nodiscard]] const std::vector<DeviceWork>& kernels() const { return kernels_; }
  /// All that the rank does.
  [[nodiscard]] std::vector<Work> work() const;
  /// The rank that ranges of steps state.
  [[nodiscard]] std::optional<std::int64_t> rank() const;
  /// When the host launched it, in microseconds. Empty: the trace does not say.
  [[nodiscard]] std::optional<double> launch_of(const DeviceWork& kernel) const;
  /// The pass that it belongs to, as an index in ranges().
  [[nodiscard]] std::optional<std::size_t> pass_of(const DeviceWork& kernel) const;

 private:
  struct Launch {
    double at = 0;
    std::int64_t thread = 0;
  };
  void add_kernel(const ProfilerEvent& event);
  void add_operation(const ProfilerEvent& event);
  [[nodiscard]] const Launch* found_launch(const DeviceWork& kernel) const;
  [[nodiscard]] std::optional<DeviceActivity> attention_of(const DeviceWork& kernel) const;
  [[nodiscard]] std::optional<std::size_t> pass_on_host(const MarkedRange& on_stream) const;

  std::vector<MarkedRange> ranges_;
  std::vector<MarkedRange> on_streams_;  ///< As the profiler lays them on the streams of the kernels.
  std::vector<std::optional<std::size_t>> pass_of_on_stream_;  ///< For each of them its pass, as an index in ranges_.
  std::vector<DeviceWork> kernels_;
  std::vector<HostEvent> operations_;
  std::unordered_map<std::int64_t, Launch> launches_;  ///< By correlation.
  RangesOfThreads passes_, attention_;                 ///< Of ranges_.
  RangesOfThreads stream_passes_, stream_attention_;   ///< Of on_streams_.
};

}  // namespace hdpsim
