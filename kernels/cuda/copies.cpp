#include "kernels/cuda/copies.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>

#include "kernels/cuda/cuda_backend.h"
#include "kernels/cuda/impl/gated_timer.h"
#include "kernels/cuda/impl/peer_copy.h"
#include "kernels/cuda/impl/runtime.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/peak.h"
#include "kernels/spec/error.h"

namespace hdpsim::kernels {
namespace {

using cuda::check;

constexpr std::chrono::seconds traffic_limit{5};
constexpr std::size_t traffic_bytes = std::size_t{32} << 20;  // of one copy: a millisecond or less
constexpr std::size_t peer_bytes = std::size_t{8} << 20;      // per thread block: together more than caches hold

cudaMemcpyKind kind_of(CopyDirection direction) {
  return direction == CopyDirection::to_host ? cudaMemcpyDeviceToHost : cudaMemcpyHostToDevice;
}

}  // namespace

/// The two ends of copies in one direction.
struct CopyEnds {
  CopyEnds(CopyDirection direction_, std::size_t bytes)
      : direction(direction_), host(cuda::allocate_pinned(bytes)), device(cuda::allocate_device(bytes)) {}

  void copy(std::size_t bytes, cudaStream_t stream) const {
    const bool out = direction == CopyDirection::to_host;
    check(cudaMemcpyAsync(out ? host.get() : device.get(), out ? device.get() : host.get(), bytes, kind_of(direction),
                          stream),
          out ? "cudaMemcpyAsync to pinned memory" : "cudaMemcpyAsync from pinned memory");
  }

  CopyDirection direction;
  cuda::PinnedMemory host;
  cuda::RawDeviceMemory device;
};

struct CopyTimer::State {
  State(Backend& backend_, std::size_t most_bytes_)
      : backend(backend_),
        most_bytes(most_bytes_),
        to_host(CopyDirection::to_host, most_bytes_),
        to_device(CopyDirection::to_device, most_bytes_) {}

  Backend& backend;
  std::size_t most_bytes;
  CopyEnds to_host, to_device;
  cuda::StreamHandle stream = cuda::make_stream();
  cuda::GatedTimer timer{stream.get()};
};

CopyTimer::CopyTimer(Backend& backend, std::size_t most_bytes) {
  cuda::use_device(launch_of(backend).device());
  state_ = std::make_unique<State>(backend, most_bytes);
}
CopyTimer::~CopyTimer() = default;

std::vector<double> CopyTimer::time(CopyDirection direction, std::size_t bytes, bool both_ways, int runs) {
  if (bytes > state_->most_bytes) {
    throw UnsupportedInput(fmt::format("a copy of {} bytes, where {} are allocated", bytes, state_->most_bytes));
  }
  cuda::use_device(launch_of(state_->backend).device());
  const bool out = direction == CopyDirection::to_host;
  std::unique_ptr<const Traffic> other;
  if (both_ways) {
    other = std::make_unique<const Traffic>(state_->backend, out ? TrafficKind::to_device : TrafficKind::to_host);
  }
  const CopyEnds& ends = out ? state_->to_host : state_->to_device;
  return state_->timer.time(
      runs, [] {}, [&] { ends.copy(bytes, state_->stream.get()); });
}

/// Copies in one direction; a host thread keeps a few of them queued.
class Traffic::Copies {
 public:
  Copies(int device, CopyDirection direction) : device_(device), ends_(direction, traffic_bytes) {
    for (cuda::EventHandle& event : events_) event = cuda::make_event();
    for (std::size_t i = 0; i < events_.size(); ++i) queue();
    wait_for_oldest();
    thread_ = std::thread([this] { feed(); });
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;
  ~Copies() {
    stopped_ = true;
    thread_.join();
    cudaStreamSynchronize(stream_.get());
  }

 private:
  void queue() {
    ends_.copy(traffic_bytes, stream_.get());
    check(cudaEventRecord(events_[oldest_].get(), stream_.get()), "cudaEventRecord");
    oldest_ = (oldest_ + 1) % events_.size();
  }
  void wait_for_oldest() const { check(cudaEventSynchronize(events_[oldest_].get()), "cudaEventSynchronize"); }
  void feed() {
    const auto end = std::chrono::steady_clock::now() + traffic_limit;
    try {
      cuda::use_device(device_);
      while (!stopped_ && std::chrono::steady_clock::now() < end) {
        wait_for_oldest();
        queue();
      }
    } catch (const std::exception&) {
      // The device is lost, and the caller that measures during this traffic meets the same error.
      stopped_ = true;
    }
  }

  int device_;
  CopyEnds ends_;
  cuda::StreamHandle stream_ = cuda::make_stream();
  std::array<cuda::EventHandle, 4> events_;
  std::size_t oldest_ = 0;  ///< Index of the event of the oldest copy; reused for the next one.
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

class Traffic::PeerCopies {
 public:
  PeerCopies(int device, int thread_blocks)
      : flags_(cuda::allocate_pinned(2 * sizeof(int))),
        from_(cuda::allocate_device(static_cast<std::size_t>(thread_blocks) * peer_bytes)),
        to_(cuda::allocate_device(static_cast<std::size_t>(thread_blocks) * peer_bytes)) {
    flag(0) = 0;
    flag(1) = 0;
    const double rate = cuda_device_peak(device).peer_bandwidth;
    if (rate <= 0) throw UnsupportedInput("traffic to peers: the links of this device are unknown");
    cuda::launch({.from = from_.get(),
                  .to = to_.get(),
                  .bytes_per_block = peer_bytes,
                  .bytes_per_second = rate / thread_blocks,
                  .stop = &flag(0),
                  .started = &flag(1),
                  .time_limit_ns = static_cast<unsigned long long>(std::chrono::nanoseconds(traffic_limit).count())},
                 thread_blocks, stream_.get());
    wait_until_started();
  }
  PeerCopies(const PeerCopies&) = delete;
  PeerCopies& operator=(const PeerCopies&) = delete;
  ~PeerCopies() {
    flag(0) = 1;
    cudaStreamSynchronize(stream_.get());
  }

 private:
  [[nodiscard]] volatile int& flag(int index) { return static_cast<volatile int*>(flags_.get())[index]; }
  void wait_until_started() {
    const auto end = std::chrono::steady_clock::now() + traffic_limit;
    while (flag(1) == 0) {
      if (std::chrono::steady_clock::now() > end) throw DeviceError("a copy kernel did not start: the device is busy");
      std::this_thread::yield();
    }
  }

  cuda::PinnedMemory flags_;  ///< The flags stop and started.
  cuda::RawDeviceMemory from_, to_;
  cuda::StreamHandle stream_ = cuda::make_stream(true);
};

Traffic::Traffic(Backend& backend, TrafficKind kind, int thread_blocks) {
  const cuda::Launch& launch = launch_of(backend);
  cuda::use_device(launch.device());
  if (kind == TrafficKind::to_host || kind == TrafficKind::both_ways) {
    copies_.push_back(std::make_unique<Copies>(launch.device(), CopyDirection::to_host));
  }
  if (kind == TrafficKind::to_device || kind == TrafficKind::both_ways) {
    copies_.push_back(std::make_unique<Copies>(launch.device(), CopyDirection::to_device));
  }
  if (kind != TrafficKind::peer) return;
  if (thread_blocks < 1 || thread_blocks >= launch.multiprocessors()) {
    throw UnsupportedInput(fmt::format("traffic by {} thread blocks on a device of {} multiprocessors", thread_blocks,
                                       launch.multiprocessors()));
  }
  peer_copies_ = std::make_unique<PeerCopies>(launch.device(), thread_blocks);
}
Traffic::~Traffic() = default;

}  // namespace hdpsim::kernels
