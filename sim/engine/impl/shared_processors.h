#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <queue>
#include <utility>
#include <vector>

#include "sim/base/check.h"
#include "sim/engine/impl/job_port.h"

namespace hdpsim {

/// Processors that workers share evenly (processor sharing, Kleinrock 1967): with k processors and n computing workers,
/// each worker runs at min(1, k / n) of its speed. A virtual clock runs at that rate: a kernel ends when the clock has
/// advanced by the kernel's time without sharing, so that only the first kernel to end has to be known. O(log n) per
/// kernel.
class SharedProcessors {
 public:
  SharedProcessors(double processors, JobQueue& queue, std::uint32_t tag)
      : processors_(processors), queue_(queue), tag_(tag) {
    HDPSIM_CHECK(processors > 0, "{} processors", processors);
  }

  void begin(std::size_t worker, Duration alone) {
    advance();
    running_.emplace(virtual_ps_ + static_cast<double>(alone.picoseconds()), worker);
    schedule();
  }

  /// The workers whose kernels end with an event of this actor and the object's tag, in the order of their ends; none
  /// if the event is outdated.
  [[nodiscard]] std::vector<std::size_t> ended(std::uint32_t actor) {
    std::vector<std::size_t> workers;
    if (actor != version_) return workers;
    advance();
    while (!running_.empty() && running_.top().first <= virtual_ps_ + half_ps) {
      workers.push_back(running_.top().second);
      running_.pop();
    }
    schedule();
    return workers;
  }

 private:
  static constexpr double half_ps = 0.5;  // events are at whole picoseconds

  [[nodiscard]] double rate() const { return std::min(1.0, processors_ / static_cast<double>(running_.size())); }

  void advance() {
    const Duration passed = queue_.now() - since_;
    if (!running_.empty()) virtual_ps_ += rate() * static_cast<double>(passed.picoseconds());
    since_ = queue_.now();
  }

  void schedule() {
    version_ = queue_.fresh_version() & (JobQueue::most_actors - 1);
    if (running_.empty()) return;
    const double left_ps = std::max(0.0, running_.top().first - virtual_ps_) / rate();
    queue_.schedule_after(Duration::picoseconds(std::llround(std::ceil(left_ps))), version_, tag_);
  }

  using Running = std::pair<double, std::size_t>;  // end on the virtual clock, worker

  double processors_;
  JobQueue& queue_;
  std::uint32_t tag_;
  std::uint32_t version_ = 0;
  std::priority_queue<Running, std::vector<Running>, std::greater<>> running_;
  double virtual_ps_ = 0;
  Instant since_;  // the time at which virtual_ps_ was set
};

}  // namespace hdpsim
