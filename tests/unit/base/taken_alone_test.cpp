#include "sim/base/taken_alone.h"

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("what one thread does alone is done when the others go on, each time", "[alone]") {
  TakenAlone alone;
  std::atomic<std::int64_t> done = 0;
  std::atomic<int> early = 0;
  const auto others = [&] {
    for (std::int64_t time = 0; time < 100; ++time) {
      alone.await(time);
      if (done <= time) ++early;
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(others);
  for (int time = 0; time < 100; ++time) alone.run([&] { ++done; });
  threads.clear();
  CHECK(early == 0);
}

TEST_CASE("the others go on, too, if what one thread does alone throws", "[alone]") {
  TakenAlone alone;
  std::jthread other([&] { alone.await(0); });
  CHECK_THROWS_AS(alone.run([] { throw std::runtime_error("no kernels"); }), std::runtime_error);
  other.join();
}

}  // namespace
}  // namespace hdpsim
