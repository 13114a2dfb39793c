// What a step takes by the order of its passes: the bubbles of the literature, and who waits for whom.

#include "sim/program/schedule_time.h"

#include <algorithm>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/every_schedule.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::plan_of;
using Groups = std::vector<std::pair<std::vector<std::size_t>, std::int64_t>>;

constexpr PassSeconds one_and_two{.forward = 1, .backward = 2};

double seconds_of(const Plan& plan, std::int64_t stages, const PipelineOptions& options,
                  const std::vector<PassSeconds>& passes) {
  return schedule_seconds(Pipeline(plan, stages, options), passes);
}

double of_equal(std::int64_t micro_batches, std::int64_t stages, const PipelineOptions& options) {
  const auto count = static_cast<std::size_t>(micro_batches);
  return seconds_of(plan_of(1, 8, Groups(count, {{0}, 64})), stages, options, {count, one_and_two});
}

TEST_CASE("a pipeline takes its micro-batches and the bubble of its schedule", "[schedule time]") {
  const double all = 3.0 * 8;  // micro-batches of forward 1 and backward 2
  CHECK(of_equal(8, 1, {}) == all);
  // Narayanan et al. 2021: p - 1 micro-batches, interleaved a v-th of it.
  CHECK(of_equal(8, 4, {}) == all + 3.0 * 3);
  CHECK(of_equal(8, 4, {.schedule = "gpipe"}) == all + 3.0 * 3);
  CHECK(of_equal(8, 4, {.schedule = "interleaved", .virtual_stages = 2}) == all + 3.0 * 3 / 2);
  // Qi et al. 2024, table 1: (p - 1) (F + B - W), with a backward pass B + W of equal halves.
  CHECK(of_equal(8, 4, {.schedule = "zb-h1"}) == all + 3.0 * (1 + 1 - 1));
}

TEST_CASE("no step is shorter than the work of a rank", "[schedule time]") {
  for (const PipelineOptions& options : test::every_schedule(4)) {
    INFO(options.schedule);
    CHECK(of_equal(12, 4, options) >= 3.0 * 12);
  }
}

TEST_CASE("ranks wait for those that they share a micro-batch with, and for nobody else", "[schedule time]") {
  const Plan apart = plan_of(2, 8, {{{0}, 64}, {{1}, 64}});
  const PassSeconds ten_times{.forward = 10, .backward = 20};
  CHECK(seconds_of(apart, 1, {}, {ten_times, one_and_two}) == 30);
  const Plan shared = plan_of(2, 8, {{{0}, 64}, {{0, 1}, 64}});
  CHECK(seconds_of(shared, 1, {}, {ten_times, one_and_two}) == 33);
}

TEST_CASE("a long micro-batch is on one stage while others are on the next", "[schedule time]") {
  // Stages 0 and 1, forward 10 and 1, backward 20 and 2: the long one is the first, and its backward ends on stage 0
  // when it has passed both stages twice; of the short one, forward hides behind it and backward follows.
  const Plan plan = plan_of(1, 8, {{{0}, 640}, {{0}, 64}});
  const PassSeconds ten_times{.forward = 10, .backward = 20};
  CHECK(seconds_of(plan, 2, {}, {ten_times, one_and_two}) == 10 + 10 + 20 + 20 + 2);
}

TEST_CASE("a slow worker delays its own stage, and a pass of several ranks is as slow as the slowest",
          "[schedule time]") {
  // The last of four stages at half speed: it begins after three forward passes, works all the time, and three backward
  // passes follow it.
  const Plan plan = plan_of(1, 8, Groups(6, {{0}, 64}));
  const std::vector<PassSeconds> passes(6, one_and_two);
  CHECK(schedule_seconds(Pipeline(plan, 4, {}), passes, {}, std::vector<double>{1, 1, 1, 0.5}) ==
        Approx(3 * 1 + 6 * (2 + 4) + 3 * 2));
  const Plan shared = plan_of(2, 8, {{{0, 1}, 64}, {{0}, 64}});
  const std::vector<PassSeconds> two(2, one_and_two);
  CHECK(schedule_seconds(Pipeline(shared, 1, {}), two, {}, std::vector<double>{1, 0.25}) == Approx(3 * 4 + 3));
}

TEST_CASE("a heavier last chunk paces the pipeline, with what its tokens take more", "[schedule time]") {
  // Eight tokens a micro-batch on one rank: the last of four chunks takes 0.25 and 0.5 a token more than the mean, the
  // others a third of that less. It works all the time once the first forward has come to it and until its last
  // backward goes back through the others.
  const ChunkExcess less{.per_token = {-0.25 / 3, -0.5 / 3}, .fixed = {-0.1, -0.2}};
  const ChunkExcess more{.per_token = {0.25, 0.5}, .fixed = {0.3, 0.6}};
  const std::vector<ChunkExcess> excess = {less, less, less, more};
  const double light = 1 - 8 * 0.25 / 3 - 0.1;
  const double heavy = 1 + 8 * 0.25 + 0.3;
  const Plan plan = plan_of(1, 8, Groups(6, {{0}, 8}));
  const double step = schedule_seconds(Pipeline(plan, 4, {}), std::vector<PassSeconds>(6, one_and_two), excess);
  CHECK(step == Approx(3 * light + 6 * 3 * heavy + 3 * 2 * light));
  // A rank of two has half of the tokens.
  const Plan shared = plan_of(2, 8, Groups(6, {{0, 1}, 16}));
  CHECK(schedule_seconds(Pipeline(shared, 4, {}), std::vector<PassSeconds>(6, one_and_two), excess) == Approx(step));
}

TEST_CASE("the passes of a wave end together", "[schedule time]") {
  const Plan plan = in_expert_waves(plan_of(2, 8, {{{0}, 64}, {{1}, 64}, {{0}, 64}, {{1}, 64}}), 2, 0);
  const PassSeconds ten_times{.forward = 10, .backward = 20};
  CHECK(seconds_of(plan, 1, {}, {ten_times, one_and_two, one_and_two, ten_times}) == 60);
}

}  // namespace
}  // namespace hdpsim
