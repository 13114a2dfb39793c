#include "calib/measure/repeat.h"

#include <limits>

#include "tests/support/catch.h"

namespace hdpsim::calib {
namespace {

/// Work of which run i (from 0) takes seconds_of(i).
struct Script {
  std::function<double(int)> seconds_of;
  int runs = 0;
  int batches = 0;

  Repeatable repeatable(double least_possible_s = 0) {
    return {.time =
                [this](int count) {
                  ++batches;
                  std::vector<double> seconds;
                  seconds.reserve(static_cast<std::size_t>(count));
                  for (int i = 0; i < count; ++i) seconds.push_back(seconds_of(runs++));
                  return seconds;
                },
            .state = [] { return kernels::DeviceState{}; },
            .least_possible_s = least_possible_s};
  }
};

bool never() {
  return false;
}

constexpr StoppingLimits hundred = {.least_runs = 100, .most_runs = 100};

TEST_CASE("what warms up is not measured", "[repeat]") {
  Script script{[](int run) { return run < 3 ? 9.0e-3 : 1.0e-3; }};
  const Repetition result = repeat(script.repeatable(), {.noise = 0.01}, never);
  REQUIRE(result.timing);
  CHECK(result.timing->p90_s == 1.0e-3);
}

TEST_CASE("long work warms up once", "[repeat]") {
  Script script{[](int run) { return run < 1 ? 9.0 : 1.0; }};
  const Repetition result = repeat(script.repeatable(), {.noise = 0.01}, never);
  REQUIRE(result.timing);
  CHECK(result.timing->median_s == 1.0);
  CHECK(script.runs == 1 + 3);
}

TEST_CASE("runs above the physical peak are thrown away and counted", "[repeat]") {
  Script script{[](int run) { return run % 10 == 0 ? 1e-9 : 1e-3; }};
  const Repetition result = repeat(script.repeatable(0.9e-3), {.noise = 0.01, .limits = hundred}, never);
  REQUIRE(result.timing);
  CHECK(result.timing->p10_s == 1e-3);
  CHECK(result.impossible > 5);
}

TEST_CASE("work that is mostly faster than the physical peak is refused, not recorded", "[repeat]") {
  Script script{[](int) { return 0.8e-3; }};
  const Repetition result = repeat(script.repeatable(0.9e-3), {.noise = 0.01}, never);
  CHECK_FALSE(result.timing);
  CHECK(result.refusal.find("faster than the physical peak") != std::string::npos);
}

TEST_CASE("times that are zero or no numbers are refused", "[repeat]") {
  const double bad = GENERATE(0.0, std::numeric_limits<double>::quiet_NaN());
  Script script{[bad](int) { return bad; }};
  const Repetition result = repeat(script.repeatable(), {.noise = 0.01}, never);
  CHECK_FALSE(result.timing);
  CHECK_FALSE(result.refusal.empty());
}

TEST_CASE("batches during which the device throttles are thrown away", "[repeat]") {
  Script script{[](int) { return 1e-3; }};
  Repeatable work = script.repeatable();
  int looks = 0;
  work.state = [&] {
    kernels::DeviceState state;
    state.throttled = ++looks <= 2;
    return state;
  };
  // What the first two batches measured while throttled is slow.
  script.seconds_of = [&](int run) { return looks < 2 && run >= 3 ? 5e-3 : 1e-3; };
  const Repetition result = repeat(work, {.noise = 0.01}, never);
  REQUIRE(result.timing);
  CHECK(result.timing->p90_s == 1e-3);
  CHECK(result.throttled > 0);
}

TEST_CASE("what emptying the caches took is the median over the batches that were kept", "[repeat]") {
  Script script{[](int) { return 1e-3; }};
  Repeatable work = script.repeatable();
  CHECK_FALSE(repeat(work, {.noise = 0.01, .limits = hundred}, never).emptying_s);
  int looks = 0;
  work.state = [&] {
    kernels::DeviceState state;
    state.throttled = ++looks == 1;
    state.emptying_s = state.throttled ? 9e-3 : looks * 1e-3;
    return state;
  };
  // 100 runs in batches of 20: the second to the sixth look.
  CHECK(repeat(work, {.noise = 0.01, .limits = hundred}, never).emptying_s.value_or(0) == Approx(4e-3));
  CHECK(looks == 6);
}

TEST_CASE("a device that never stops throttling is refused", "[repeat]") {
  Script script{[](int) { return 1e-3; }};
  Repeatable work = script.repeatable();
  work.state = [] {
    kernels::DeviceState state;
    state.throttled = true;
    return state;
  };
  const Repetition result = repeat(work, {.noise = 0.01}, never);
  CHECK_FALSE(result.timing);
  CHECK(result.refusal.find("throttled") != std::string::npos);
}

TEST_CASE("a stop ends the repetition within a batch and keeps nothing of it", "[repeat]") {
  Script script{[](int) { return 1e-3; }};
  const Repetition result =
      repeat(script.repeatable(), {.noise = 0, .limits = hundred}, [&] { return script.batches >= 5; });
  CHECK_FALSE(result.timing);
  CHECK(result.refusal.empty());
  CHECK(script.batches == 5);
}

}  // namespace
}  // namespace hdpsim::calib
