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
#include <string_view>
#include <thread>

namespace hdpsim::kernels {

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

}  // namespace hdpsim::kernels
