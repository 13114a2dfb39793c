#include "kernels/cpu/cores.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string_view>
#include <thread>

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

void stay_on_core(int n) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed) || n-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    (void)sched_setaffinity(0, sizeof one, &one);  // for this thread
    return;
  }
}

double hand_over_seconds(int n, int m) {
  using Clock = std::chrono::steady_clock;
  constexpr int trips = 200;
  constexpr int rounds = 10;
  std::atomic<int> ball = 0;  // even: at the first thread
  std::jthread other([&] {
    stay_on_core(m);
    for (int trip = 0; trip < trips * rounds; ++trip) {
      while (ball.load(std::memory_order_acquire) != 2 * trip + 1) continue;
      ball.store(2 * trip + 2, std::memory_order_release);
    }
  });
  double fastest = std::numeric_limits<double>::infinity();
  std::jthread one([&] {
    stay_on_core(n);
    for (int round = 0; round < rounds; ++round) {
      const Clock::time_point begin = Clock::now();
      for (int trip = round * trips; trip < (round + 1) * trips; ++trip) {
        ball.store(2 * trip + 1, std::memory_order_release);
        while (ball.load(std::memory_order_acquire) != 2 * trip + 2) continue;
      }
      fastest = std::min(fastest, std::chrono::duration<double>(Clock::now() - begin).count() / trips);
    }
  });
  one.join();
  other.join();
  return fastest;
}

Seat own_seat() {
  Seat seat;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  seat.host = std::hash<std::string_view>{}(name.data());
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return seat;
  for (std::size_t core = 0; core < CPU_SETSIZE && core < seat.cores.size(); ++core) {
    seat.cores[core] = CPU_ISSET(core, &allowed);
  }
  return seat;
}

double least_core_share(const std::vector<Seat>& seats) {
  std::map<std::uint64_t, std::array<int, CoreSet{}.size()>> users;
  for (const auto& [host, cores] : seats) {
    for (std::size_t core = 0; core < cores.size(); ++core) users[host][core] += cores[core];
  }
  double least = 1;
  for (const auto& [host, cores] : seats) {
    double share = 0;
    for (std::size_t core = 0; core < cores.size(); ++core) share += cores[core] ? 1.0 / users[host][core] : 0;
    if (cores.any()) least = std::min(least, share);
  }
  return least;
}

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
