#include "sim/tasks/scaling_curve.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TEST_CASE("between points the speed is linear, below the first from nothing", "[tasks]") {
  const ScalingCurve curve({{2, 0.5}, {4, 0.25}, {8, 0.2}});
  CHECK(curve.speed(1) == Approx(1));
  CHECK(curve.speed(2) == Approx(2));
  CHECK(curve.speed(3) == Approx(3));
  CHECK(curve.speed(6) == Approx(4.5));
  CHECK(curve.speed(100) == Approx(5));
  for (const double devices : {0.5, 2.0, 3.0, 7.0, 8.0})
    CHECK(curve.devices_for(curve.speed(devices)) == Approx(devices));
}

TEST_CASE("points that are no faster than one with fewer devices are left out", "[tasks]") {
  const ScalingCurve curve({{1, 1}, {2, 1}, {4, 0.5}, {8, 0.6}});
  REQUIRE(curve.points().size() == 2);
  CHECK(curve.points()[1].devices == 4);
  CHECK(curve.seconds(4) == 0.5);
  CHECK(curve.most_speed() == 2);
}

TEST_CASE("the envelope leaves out what a mixture of its neighbours beats", "[tasks]") {
  // Speeds 1, 1.25 and 4 on 1, 2 and 4 devices: half of the time on each of 1 and 4 gives 2.5 devices a speed of 2.5.
  const ScalingCurve curve({{1, 1}, {2, 0.8}, {4, 0.25}, {8, 0.2}});
  const ScalingCurve envelope = curve.envelope();
  REQUIRE(envelope.points().size() == 2);
  CHECK(envelope.points()[0].devices == 4);  // also a device alone is slower than a quarter of the time of four
  CHECK(envelope.points()[1].devices == 8);
  CHECK(envelope.speed(2) == Approx(2));
  for (const double devices : {1.0, 2.0, 3.0, 5.0, 8.0}) CHECK(envelope.speed(devices) >= curve.speed(devices));
}

}  // namespace
}  // namespace hdpsim
