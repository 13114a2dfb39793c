#include "sim/engine/event_queue.h"

#include <algorithm>
#include <vector>

#include "sim/base/random.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

Instant at(std::int64_t ps) {
  return Instant::at(Duration::picoseconds(ps));
}

TEST_CASE("events run in the order of their times, whatever the order of scheduling", "[event_queue]") {
  EventQueue queue;
  queue.schedule(at(10), 0, 0);
  queue.schedule(at(5), 1, 0);
  queue.schedule(at(7), 2, 0);
  CHECK(queue.pop().actor == 1);
  CHECK(queue.now() == at(5));
  CHECK(queue.pop().actor == 2);
  CHECK(queue.pop().actor == 0);
  CHECK(queue.empty());
}

TEST_CASE("events of one time run in the order of scheduling, also those scheduled at that very time",
          "[event_queue]") {
  EventQueue queue;
  queue.schedule(at(3), 0, 0);
  queue.schedule(at(3), 1, 0);
  CHECK(queue.pop().actor == 0);
  queue.schedule(queue.now(), 2, 0);
  CHECK(queue.pop().actor == 1);
  CHECK(queue.pop().actor == 2);
}

TEST_CASE("an event at time zero is an ordinary event", "[event_queue]") {
  EventQueue queue;
  queue.schedule(at(0), 4, 9);
  const Event event = queue.pop();
  CHECK(event.actor == 4);
  CHECK(event.tag == 9);
}

TEST_CASE("time does not flow back: one picosecond before now is refused, now is allowed", "[event_queue]") {
  EventQueue queue;
  queue.schedule(at(100), 0, 0);
  (void)queue.pop();
  CHECK_THROWS_AS(queue.schedule(at(99), 0, 0), CheckFailure);
  CHECK_NOTHROW(queue.schedule(at(100), 0, 0));
}

TEST_CASE("an empty queue has no next event", "[event_queue]") {
  EventQueue queue;
  CHECK_THROWS_AS(queue.pop(), CheckFailure);
}

TEST_CASE("random schedules run as a stable sort of all events would", "[event_queue]") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    RandomStream random(seed, "event queue test");
    EventQueue queue;
    std::vector<std::pair<std::int64_t, std::uint32_t>> expected;
    std::vector<std::uint32_t> order;
    std::uint32_t next = 0;
    const auto schedule_some = [&](std::uint64_t most) {
      for (std::uint64_t n = random.below(most + 1); n > 0; --n) {
        // Few distinct times near now, and now and then one far away: ties and wide buckets both occur.
        const auto wide = random.below(4) == 0 ? std::uint64_t{1} << random.below(50) : std::uint64_t{4};
        const Instant when = queue.now() + Duration::picoseconds(static_cast<std::int64_t>(random.below(wide)));
        expected.emplace_back(when.since_start().picoseconds(), next);
        queue.schedule(when, next++, 0);
      }
    };
    schedule_some(200);
    while (!queue.empty()) {
      order.push_back(queue.pop().actor);
      if (next < 1000) schedule_some(3);
    }
    std::stable_sort(expected.begin(), expected.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    REQUIRE(order.size() == expected.size());
    CHECK(std::equal(order.begin(), order.end(), expected.begin(),
                     [](std::uint32_t actor, const auto& event) { return actor == event.second; }));
  }
}

}  // namespace
}  // namespace hdpsim
