#include "kernels/cuda/impl/stream_queues.h"

#include <mutex>
#include <utility>
#include <vector>

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

/// Unused events are recorded again: a training step records thousands.
class StreamQueues::EventPool {
 public:
  [[nodiscard]] EventHandle take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return make_event();
    EventHandle event = std::move(free_.back());
    free_.pop_back();
    return event;
  }
  void give_back(EventHandle event) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(event));
  }

 private:
  std::mutex mutex_;
  std::vector<EventHandle> free_;
};

StreamQueues::StreamQueues(const Launch& launch)
    : device_(launch.device()),
      clock_(launch.clock()),
      compute_(launch.stream()),
      events_(std::make_shared<EventPool>()) {
  use_device(device_);
  out_ = make_stream();
  in_ = make_stream();
}

void StreamQueues::finish() const {
  cudaSetDevice(device_);
  cudaStreamSynchronize(out_.get());
  cudaStreamSynchronize(in_.get());
}

cudaStream_t StreamQueues::stream(Queue queue) const {
  switch (queue) {
    case Queue::compute:
      return compute_;
    case Queue::out:
      return out_.get();
    case Queue::in:
      return in_.get();
  }
  return nullptr;
}

cudaEvent_t StreamQueues::handle(const Event& event) {
  // The pool keeps the pointer for CUDA; only the interface makes it const.
  return static_cast<cudaEvent_t>(const_cast<void*>(event.get()));
}

Event StreamQueues::record(Queue queue) {
  use_device(device_);
  EventHandle event = events_->take();
  check(cudaEventRecord(event.get(), stream(queue)), "cudaEventRecord");
  // A wait on the event refers to the work recorded when the wait was queued, so that the event may be recorded again
  // while such waits last.
  const cudaEvent_t handle = event.release();
  return {static_cast<const void*>(handle),
          [pool = events_, handle](const void*) { pool->give_back(EventHandle(handle)); }};
}

Mark StreamQueues::mark(Queue queue) {
  use_device(device_);
  return clock_.mark(stream(queue));
}

void StreamQueues::wait(Queue queue, const Event& event) {
  if (!event) return;
  use_device(device_);
  check(cudaStreamWaitEvent(stream(queue), handle(event), 0), "cudaStreamWaitEvent");
}

bool StreamQueues::happened(const Event& event) {
  if (!event) return true;
  const cudaError_t status = cudaEventQuery(handle(event));
  if (status == cudaErrorNotReady) {
    cudaGetLastError();  // no error
    return false;
  }
  check(status, "cudaEventQuery");
  return true;
}

void StreamQueues::copy(Queue queue, void* to, const void* from, std::size_t bytes) {
  use_device(device_);
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream(queue)), "cudaMemcpyAsync");
}

}  // namespace hdpsim::kernels::cuda
