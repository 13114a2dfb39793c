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
  TuneTimeLeft left;
  CHECK_FALSE(left.seconds());
  TuneProgress now = progress({TuneWork{10, 100}, TuneWork{0, 30}, TuneWork{0, 20}});
  left.add(now, 5);  // 0.5 s a plan; a simulated step is assumed to take six times as long
  CHECK(*left.seconds() == Approx(90 * 0.5 + 50 * 3.0));
  now.work[1] = {10, 30};
  now.works_on = 1;
  left.add(now, 10);  // 1 s a closed form; a full step is assumed to take what 10 plans and 10 closed forms say
  CHECK(*left.seconds() == Approx(90 * 0.5 + 20 * 1.0 + 20 * 6 * 15.0 / (10 + 60)));
  now.work[2] = {4, 20};
  now.works_on = 2;
  left.add(now, 8);
  CHECK(*left.seconds() == Approx(90 * 0.5 + 20 * 1.0 + 16 * 2.0));
}

TEST_CASE("what a journal has kept does not make the rest look fast", "[tune]") {
  TuneTimeLeft left;
  TuneProgress now = progress({TuneWork{50, 100}, TuneWork{0, 0}, TuneWork{0, 0}});
  now.is_new = false;
  left.add(now, 0.001);
  CHECK_FALSE(left.seconds());
  now.work[0].done = 51;
  now.is_new = true;
  left.add(now, 1);
  CHECK(*left.seconds() == Approx(49));
}

TEST_CASE("done never exceeds the most, whatever was expected", "[tune]") {
  const TuneProgress now = progress({TuneWork{7, 3}, TuneWork{2, 5}, TuneWork{0, 0}});
  CHECK(now.done() <= now.most());
}

}  // namespace
}  // namespace hdpsim
