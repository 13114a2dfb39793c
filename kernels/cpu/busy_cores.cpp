#include "kernels/cpu/busy_cores.h"

#include <algorithm>
#include <array>
#include <memory>

#include "kernels/cpu/cores.h"
#include "kernels/cpu/cpu_backend.h"

namespace hdpsim::kernels {
namespace {

// Sizes of a layer of a small model: 1,024 tokens, an inner width of four times the hidden size. Such a product takes a
// millisecond or two.
constexpr std::int64_t tokens = 1024;
constexpr std::int64_t width = 256;
constexpr std::int64_t inner = 4 * width;
// Inputs and results are used in turn, more than a core's share of any cache.
constexpr std::size_t turns = 8;

/// The products of one thread, over and over.
class Labour {
 public:
  Labour() {
    weights_ = filled(inner * width);
    for (auto& input : inputs_) input = filled(tokens * width);
    for (auto& result : results_) result = filled(tokens * inner);
  }

  void next() {
    turn_ = (turn_ + 1) % turns;
    backend_->run(MatrixProduct{.m = tokens,
                                .n = inner,
                                .k = width,
                                .a = inputs_[turn_].get(),
                                .b = weights_.get(),
                                .c = results_[turn_].get(),
                                .b_transposed = true});
  }

 private:
  // Random numbers, because a core takes less power with zeros.
  [[nodiscard]] DeviceMemory filled(std::int64_t elements) {
    DeviceMemory memory = backend_->allocate(static_cast<std::size_t>(elements) * sizeof(float));
    auto* values = static_cast<float*>(memory.get());
    for (std::int64_t i = 0; i < elements; ++i) values[i] = 1 / static_cast<float>(1 + i % 977);
    return memory;
  }

  std::unique_ptr<Backend> backend_ = make_cpu_backend();
  DeviceMemory weights_;
  std::array<DeviceMemory, turns> inputs_;
  std::array<DeviceMemory, turns> results_;
  std::size_t turn_ = 0;
};

}  // namespace

BusyCores::BusyCores(int cores) : working_(std::max(0, cores - 1)) {
  for (int core = 1; core < cores; ++core) threads_.emplace_back([this, core] { serve(core); });
  rest();
}

BusyCores::~BusyCores() {
  give(Order::end);
}

void BusyCores::work() {
  give(Order::work);
}

void BusyCores::rest() {
  give(Order::rest);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return working_ == 0; });
}

void BusyCores::give(Order order) {
  const std::lock_guard lock(mutex_);
  order_ = order;
  changed_.notify_all();
}

void BusyCores::serve(int core) {
  stay_on_core(core);
  Labour labour;
  std::unique_lock lock(mutex_);
  while (true) {
    --working_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return order_ != Order::rest; });
    if (order_ == Order::end) return;
    ++working_;
    while (order_ == Order::work) {
      lock.unlock();
      labour.next();
      lock.lock();
    }
  }
}

}  // namespace hdpsim::kernels
