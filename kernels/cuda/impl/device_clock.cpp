#include "kernels/cuda/impl/device_clock.h"

namespace hdpsim::kernels::cuda {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void DeviceClock::set() {
  auto anchor = std::make_shared<Anchor>();
  anchor->event = make_event(true);
  const Clock::time_point before = Clock::now();
  check(cudaEventRecord(anchor->event.get(), stream_), "cudaEventRecord");
  check(cudaEventSynchronize(anchor->event.get()), "cudaEventSynchronize");
  anchor->time = before + (Clock::now() - before) / 2;
  anchor_ = std::move(anchor);
}

void DeviceClock::keep_right() {
  if (Clock::now() - anchor_->time > std::chrono::seconds(1)) set();
}

Mark DeviceClock::mark(cudaStream_t stream) const {
  auto point = std::make_shared<Point>(make_event(true), anchor_);
  check(cudaEventRecord(point->event.get(), stream), "cudaEventRecord");
  return {{}, std::move(point)};
}

Clock::time_point DeviceClock::time_of(const Mark& mark) {
  const auto* const point = static_cast<const Point*>(mark.event.get());
  check(cudaEventSynchronize(point->event.get()), "cudaEventSynchronize");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, point->anchor->event.get(), point->event.get()), "cudaEventElapsedTime");
  const std::chrono::duration<double, std::milli> since(milliseconds);
  return point->anchor->time + std::chrono::duration_cast<Clock::duration>(since);
}

}  // namespace hdpsim::kernels::cuda
