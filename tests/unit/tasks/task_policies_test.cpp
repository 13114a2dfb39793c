#include "sim/tasks/task_policies.h"

#include <algorithm>
#include <map>

#include "tests/support/catch.h"

namespace hdpsim {
namespace {

const ScalingCurve linear({{1, 8}, {2, 4}, {4, 2}, {8, 1}});
const ScalingCurve light({{1, 2}, {2, 1}});

// Two tasks on 8 devices: the first of a heavy and a light run side by side, the second of a light one.
TaskWork two_tasks() {
  TaskWork work{{}, {{4, linear}, {4, light}, {4, light}}, 2, 8};
  for (const std::size_t task : {0, 0, 1}) work.runs.push_back({task, 0, OperatorKind::layer, 0, 4, {}, 0});
  return work;
}

std::map<std::size_t, std::int64_t> operators_of(const TaskPlan& plan) {
  std::map<std::size_t, std::int64_t> done;
  for (const TaskRound& round : plan.rounds) {
    for (const TaskLane& lane : round.lanes) {
      for (const TaskWave& wave : lane.waves) {
        for (const TaskSlice& slice : wave.slices) {
          CHECK(slice.first == done[slice.run]);  // in order, without a gap
          done[slice.run] += slice.operators;
        }
      }
    }
  }
  return done;
}

TEST_CASE("every policy runs every operator once, in order", "[tasks]") {
  for (const TaskPolicy& policy : task_policies()) {
    CAPTURE(policy.name);
    CHECK(operators_of(policy.plan(two_tasks())) == std::map<std::size_t, std::int64_t>{{0, 4}, {1, 4}, {2, 4}});
  }
}

TEST_CASE("in sequence each run has all devices that help it", "[tasks]") {
  const TaskPlan plan = sequential_plan(two_tasks());
  REQUIRE(plan.rounds.size() == 2);
  REQUIRE(plan.rounds[0].lanes[0].waves.size() == 2);
  CHECK(plan.rounds[0].lanes[0].waves[0].slices[0].devices == 8);
  CHECK(plan.rounds[0].lanes[0].waves[1].slices[0].devices == 2);
  CHECK(plan.rounds[1].lanes[0].waves[0].slices[0].devices == 2);
}

TEST_CASE("within a task runs are side by side, and all tasks together in waves", "[tasks]") {
  const TaskPlan within = within_tasks_plan(two_tasks());
  REQUIRE(within.rounds.size() == 2);
  const auto side_by_side = [](const TaskPlan& plan) {
    const std::vector<TaskWave>& waves = plan.rounds[0].lanes[0].waves;
    return std::max_element(
               waves.begin(), waves.end(),
               [](const TaskWave& one, const TaskWave& other) { return one.slices.size() < other.slices.size(); })
        ->slices.size();
  };
  CHECK(side_by_side(within) == 2);
  const TaskPlan waves = wave_plan(two_tasks());
  REQUIRE(waves.rounds.size() == 1);
  CHECK(side_by_side(waves) == 3);
}

TEST_CASE("devices go to the task that gains most by each", "[tasks]") {
  // With 1 device each, tasks take 32 + 8 and 8 s. A second saves 16 + 4 and 4, two more of the first task 8, four 4
  // more.
  const TaskPlan plan = by_task_plan(two_tasks());
  REQUIRE(plan.rounds.size() == 1);
  REQUIRE(plan.rounds[0].lanes.size() == 2);
  CHECK(plan.rounds[0].lanes[0].devices == 4);  // the next four are more than are left
  CHECK(plan.rounds[0].lanes[1].devices == 2);
}

TEST_CASE("tasks that find no device run in a further round", "[tasks]") {
  TaskWork work = two_tasks();
  work.devices = 1;
  CHECK(by_task_plan(work).rounds.size() == 2);
}

TEST_CASE("the bound is that of all levels, one after another", "[tasks]") {
  TaskWork work = two_tasks();
  // Linear to the last device: 32 + 8 + 8 device-seconds on 8 devices.
  CHECK(bound_of(work) == Approx(6));
  work.runs[1].level = 1;
  work.runs[2].level = 1;
  CHECK(bound_of(work) == Approx(32.0 / 8 + 4));  // light runs have no more than 2 devices each
}

}  // namespace
}  // namespace hdpsim
