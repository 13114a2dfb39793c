#include "sim/explore/session.h"

#include <atomic>
#include <thread>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

bool never() {
  return false;
}

TEST_CASE("a turn begins when the one before it has ended", "[one_at_a_time]") {
  OneAtATime work;
  std::atomic<int> at_work = 0;
  std::atomic<int> most = 0;
  const auto take_turns = [&] {
    for (int i = 0; i < 200; ++i) {
      const OneAtATime::Turn turn(work, never);
      const int now = ++at_work;
      if (now > most) most = now;
      --at_work;
    }
  };
  {
    const std::jthread one(take_turns);
    const std::jthread other(take_turns);
  }
  CHECK(most == 1);
}

TEST_CASE("who gives up has no turn, whether it was free or not", "[one_at_a_time]") {
  OneAtATime work;
  const auto at_once = [] { return true; };
  CHECK_FALSE(OneAtATime::Turn(work, at_once));
  {
    const OneAtATime::Turn first(work, never);
    CHECK(first);
    int asked = 0;
    CHECK_FALSE(OneAtATime::Turn(work, [&] { return ++asked > 3; }));
  }
  CHECK(OneAtATime::Turn(work, never));
}

}  // namespace
}  // namespace hdpsim
