#include "sim/tune/tune_progress.h"

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

TuneProgress progress(const TuneWorks& work) {
  TuneProgress made;
  made.work = work;
  return made;
}

TEST_CASE("the time left of a tuning is the expected work at what such work has taken", "[tune]") {
  TuneProgress now = progress({TuneWork{10, 100, {5, 10}}, TuneWork{0, 30, {8, 4}}, TuneWork{0, 20}});
  // 0.5 s a plan and 2 s a closed form; a full step is not known, and counts as a closed form
  CHECK(*now.seconds_left() == Approx(90 * 0.5 + 30 * 2.0 + 20 * 2.0));
  CHECK(now.done() == 5000);
  CHECK(now.most() == 5000 + 145'000);
  now.work[2] = {4, 20, {12, 4}};
  CHECK(*now.seconds_left() == Approx(90 * 0.5 + 30 * 2.0 + 16 * 3.0));
}

TEST_CASE("what a journal has kept has no time, and steps are counted instead", "[tune]") {
  TuneProgress now = progress({TuneWork{50, 100}, TuneWork{0, 7}, TuneWork{0, 0}});
  CHECK_FALSE(now.seconds_left());
  CHECK(now.done() == 50);
  CHECK(now.most() == 107);
  now.work[0] = {51, 100, {1, 1}};
  CHECK(*now.seconds_left() == Approx(49 + 7));
}

TEST_CASE("done never exceeds the most, whatever was expected", "[tune]") {
  const TuneProgress now = progress({TuneWork{7, 3, {7, 7}}, TuneWork{2, 5, {9, 2}}, TuneWork{0, 0}});
  CHECK(now.done() <= now.most());
  CHECK(*now.seconds_left() == Approx(3 * 4.5));
}

}  // namespace
}  // namespace hdpsim
