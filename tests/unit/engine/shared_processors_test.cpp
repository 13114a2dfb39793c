#include "sim/engine/impl/shared_processors.h"

#include <map>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

/// When each of some kernels ends that begin at given times, in seconds.
struct Kernel {
  std::size_t worker;
  std::int64_t begins;
  std::int64_t takes;
};

std::map<std::size_t, double> ends_of(const std::vector<Kernel>& kernels, double processors) {
  constexpr std::uint32_t ended = 1;
  constexpr std::uint32_t begins = 2;
  EventQueue events;
  JobQueue queue(events, 0);
  SharedProcessors shared(processors, queue, ended);
  for (std::uint32_t i = 0; i < kernels.size(); ++i) {
    queue.schedule_after(Duration::seconds(static_cast<double>(kernels[i].begins)), i, begins);
  }
  std::map<std::size_t, double> ends;
  while (!events.empty()) {
    const Event event = queue.take(events.pop());
    if (event.tag == begins) {
      const Kernel& kernel = kernels[event.actor];
      shared.begin(kernel.worker, Duration::seconds(static_cast<double>(kernel.takes)));
      continue;
    }
    for (const std::size_t worker : shared.ended(event.actor)) ends[worker] = events.now().since_start().seconds();
  }
  return ends;
}

TEST_CASE("as many kernels as processors go at full speed", "[processors]") {
  const auto ends = ends_of({{0, 0, 3}, {1, 1, 5}}, 2);
  CHECK(ends.at(0) == Approx(3));
  CHECK(ends.at(1) == Approx(6));
}

TEST_CASE("more kernels than processors share them evenly, and one that is alone again goes at full speed",
          "[processors]") {
  // Until 2 the first is alone (2 of 4 done); then both go at half speed until the first has done its other 2, at 6;
  // the second has done 2 of 5 by then and ends 3 later.
  const auto ends = ends_of({{0, 0, 4}, {1, 2, 5}}, 1);
  CHECK(ends.at(0) == Approx(6));
  CHECK(ends.at(1) == Approx(9));
}

TEST_CASE("processors are never idle while there is work, whoever has it", "[processors]") {
  const double processors = GENERATE(1.0, 1.5, 2.0, 3.0);
  // All begin at once, and there are always more of them than processors until the last three are left.
  const auto ends = ends_of({{0, 0, 4}, {1, 0, 4}, {2, 0, 4}, {3, 0, 4}}, processors);
  for (const auto& [worker, end] : ends) CHECK(end == Approx(4 * 4 / processors));
}

TEST_CASE("work of no length ends at once", "[processors]") {
  CHECK(ends_of({{0, 1, 0}, {1, 0, 2}}, 1).at(0) == Approx(1));
}

}  // namespace
}  // namespace hdpsim
