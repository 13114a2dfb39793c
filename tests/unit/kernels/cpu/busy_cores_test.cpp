#include "kernels/cpu/cores.h"

#include <chrono>
#include <ctime>
#include <thread>

#include "tests/support/catch.h"

namespace hdpsim::kernels {
namespace {

/// Of all threads of this process.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Each wait ends if they do as they are told, however long that takes.
TEST_CASE("busy cores compute from work to rest, and not before or after", "[cores]") {
  constexpr std::chrono::milliseconds a_while{20};
  constexpr double hardly_any_s = 1e-3;
  BusyCores cores(2);
  for (int turn = 0; turn < 3; ++turn) {
    cores.work();
    const double begin = processor_seconds();
    while (processor_seconds() < begin + 10 * hardly_any_s) std::this_thread::sleep_for(a_while);
    cores.rest();
    // A core that had no processor when it was told hears of it later.
    for (double rested = begin; processor_seconds() > rested + hardly_any_s;) {
      rested = processor_seconds();
      std::this_thread::sleep_for(a_while);
    }
  }
  cores.work();  // and may be told to end while they do
}

TEST_CASE("a single core has no others that could be busy", "[cores]") {
  BusyCores cores(1);
  cores.work();
  cores.rest();
}

}  // namespace
}  // namespace hdpsim::kernels
