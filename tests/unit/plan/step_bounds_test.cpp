#include "sim/plan/step_bounds.h"

#include "tests/unit/plan/plan_cases.h"

namespace hdpsim {

TEST_CASE("bounds: work is spread evenly, and the longest sequence over all ranks", "[plan][bounds]") {
  // A token takes a second, a pair a hundredth. 4 ranks of 100 tokens.
  WorkModel work;
  work.per_token = 1;
  work.per_area = 0.01;
  const StepBounds bounds = step_bounds(batch_of({300, 100}), {4, 100, 1}, test::with_plain_rings(work));
  const double first = 300 + 0.01 * 300 * 301 / 2;
  const double second = 100 + 0.01 * 100 * 101 / 2;
  CHECK(bounds.area == Approx((first + second) / 4));
  CHECK(bounds.longest == Approx(first / 4));
  CHECK(bounds.step() == Approx((first + second) / 4));
}

TEST_CASE("bounds: a batch takes as many micro-batches as hold its tokens", "[plan][bounds]") {
  WorkModel work;
  work.per_micro_batch = 6;
  // 900 tokens are 9 micro-batches of 100 on 4 ranks; no token or pair costs anything.
  CHECK(step_bounds(batch_of({100, 300, 300, 200}), {4, 100, 1}, test::with_plain_rings(work)).capacity ==
        Approx(9 * 6 / 4.0));
  // A micro-batch takes at least 20 seconds, and one of the ranks has three.
  work.least = 20;
  const StepBounds bounds = step_bounds(batch_of({100, 300, 300, 200}), {4, 100, 1}, test::with_plain_rings(work));
  CHECK(bounds.step() == Approx(60));
  CHECK(std::string(bounds.reason()) == "capacity");
}

TEST_CASE("bounds: a sequence pays for the steps of the least ring that holds it", "[plan][bounds]") {
  WorkModel work;
  work.per_token = 1;
  work.step_token = 0.5;
  // 250 tokens need 3 ranks: two steps of 0.5 seconds a token more.
  const StepBounds bounds = step_bounds(batch_of({250}), {8, 100, 1}, test::with_plain_rings(work));
  CHECK(bounds.area == Approx(250 / 8.0));
  CHECK(bounds.memory == Approx((250 + 2 * 0.5 * 250) / 8));
  // Where attention to other ranks' keys is the faster one, wider rings cost less: on all 8 ranks at most 7/8 of it.
  work.step_token = 0;
  work.per_area = 1;
  work.step_area = -0.5;
  CHECK(step_bounds(batch_of({250}), {8, 100, 1}, test::with_plain_rings(work)).area ==
        Approx((250 + 250 * 251 / 2.0 * (1 - 0.5 * 7 / 8)) / 8));
}

TEST_CASE("bounds: what a ring computes follows from its passes", "[plan][bounds]") {
  WorkModel work;
  work.per_token = 1;
  work.passes = RingPasses{
      .forward = {.own = {0, 0.1}, .step = {0, 0.2}, .last_step = {0, 0.3}}, .backward = {}, .per_token = 0.4};
  // 250 tokens on 3 ranks: the other work, a step with the own keys, one between and the last one.
  const StepBounds bounds = step_bounds(batch_of({250}), {3, 100, 1}, work);
  CHECK(bounds.memory == Approx((0.4 + 0.1 + 0.2 + 0.3) * 250 / 3));
  // A ring of two has no step between.
  CHECK(bounds.area == Approx((0.4 + 0.1 + 0.3) * 250 / 3));
}

TEST_CASE("bounds: a sequence that not even all ranks hold counts as one on all of them", "[plan][bounds]") {
  WorkModel work;
  work.per_token = 1;
  const StepBounds bounds = step_bounds(batch_of({5000}), {8, 256, 1}, test::with_plain_rings(work));
  CHECK(bounds.longest == Approx(5000 / 8.0));
  CHECK(bounds.memory == Approx(5000 / 8.0));
  CHECK(bounds.fill == 0);
}

TEST_CASE("bounds: stages of a pipeline wait for the longest sequence", "[plan][bounds]") {
  WorkModel work;
  work.per_token = 1;
  const StepBounds bounds = step_bounds(batch_of({100}), {4, 100, 3}, test::with_plain_rings(work));
  CHECK(bounds.step() == Approx(25 + 2 * 25));
  CHECK(step_bounds({}, {4, 100, 3}, test::with_plain_rings(work)).step() == 0);
}

}  // namespace hdpsim
