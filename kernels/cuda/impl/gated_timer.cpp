#include "kernels/cuda/impl/gated_timer.h"

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace hdpsim::kernels::cuda {
namespace {

// A stream takes about a thousand launches before the host has to wait, which it must not behind a closed gate. A run
// may consist of many launches, so the host's own time ends a batch, too: well before the gate opens by itself.
constexpr std::size_t longest_batch = 16;
constexpr auto longest_queueing = Gate::time_limit / 4;

class Opened {
 public:
  explicit Opened(Gate& gate) : gate_(gate) {}
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { gate_.open(); }

 private:
  Gate& gate_;
};

}  // namespace

std::vector<double> GatedTimer::time(int runs, const std::function<void()>& before, const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  if (intervals_.empty()) intervals_.resize(longest_batch);
  std::vector<double> seconds;
  while (static_cast<int>(seconds.size()) < runs) {
    std::size_t queued = 0;
    {
      const auto begin = Clock::now();
      const std::size_t most = std::min(longest_batch, static_cast<std::size_t>(runs) - seconds.size());
      gate_.close(stream_);
      const Opened opened(gate_);
      while (queued < most && (queued == 0 || Clock::now() - begin < longest_queueing)) {
        const Interval& interval = intervals_[queued++];
        before();
        check(cudaEventRecord(interval.begin.get(), stream_), "cudaEventRecord");
        work();
        check(cudaEventRecord(interval.end.get(), stream_), "cudaEventRecord");
      }
    }
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    for (std::size_t i = 0; i < queued; ++i) {
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, intervals_[i].begin.get(), intervals_[i].end.get()),
            "cudaEventElapsedTime");
      seconds.push_back(static_cast<double>(milliseconds) * 1e-3);
    }
  }
  return seconds;
}

}  // namespace hdpsim::kernels::cuda
