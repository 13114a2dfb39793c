#include "sim/tasks/task_step.h"

#include <algorithm>
#include <map>
#include <set>

#include "sim/tasks/parameter_groups.h"
#include "sim/tasks/slice_placement.h"
#include "sim/tasks/task_comparison.h"
#include "tests/unit/tasks/task_text.h"

namespace hdpsim {
namespace {

using test::TasksFile;

/// The good file of tasks with its work.
struct GoodCase {
  TaskFile file = TasksFile().load();
  const TaskCase& of = file.cases[0];
  CasePrices prices{of};
  TaskWork work = prices.work();
  SliceData data{of, work};

  [[nodiscard]] std::size_t run(std::size_t task, std::size_t node, OperatorKind kind = OperatorKind::layer) const {
    const auto found = std::find_if(work.runs.begin(), work.runs.end(), [&](const MetaOp& each) {
      return each.task == task && each.node == node && each.kind == kind;
    });
    return static_cast<std::size_t>(found - work.runs.begin());
  }
};

std::vector<DeviceId> devices(std::initializer_list<std::size_t> numbers) {
  std::vector<DeviceId> ids;
  for (const std::size_t number : numbers) ids.emplace_back(number);
  return ids;
}

double bytes_of(const std::vector<TaskMessage>& messages) {
  double sum = 0;
  for (const TaskMessage& message : messages) sum += message.bytes;
  return sum;
}

TEST_CASE("curves have the numbers of devices that divide the batch, times tp", "[tasks]") {
  const GoodCase good;
  for (const ScalingPoint& point : good.work.costs[good.run(0, 1)].curve.points()) CHECK(point.devices % 2 == 0);
  for (const ScalingPoint& point : good.work.costs[good.run(1, 0)].curve.points()) CHECK(8 % point.devices == 0);
}

TEST_CASE("full attention takes longer than causal, by less than the square of scores", "[tasks]") {
  GoodCase good;
  const TaskFile causal =
      TasksFile(test::changed(test::good_tasks, "heads: 8}", "heads: 8, attention: causal}")).load();
  CasePrices prices(causal.cases[0]);
  const MetaOp& run = good.work.runs[good.run(0, 0)];
  const double full = good.prices.seconds(run, 1).forward;
  CHECK(full > prices.seconds(run, 1).forward);
  CHECK(full < 2 * prices.seconds(run, 1).forward);
}

TEST_CASE("what a device has does not travel, and the rest is sent once", "[tasks]") {
  const GoodCase good;
  const std::size_t vision = good.run(0, 0);
  const double all = 16 * 256 * 512 * 2;  // samples, tokens, width, bytes of bf16
  const TaskSlice here{vision, 0, 2, 2, devices({0, 1})};
  std::vector<TaskMessage> none;
  good.data.append_messages(here, {vision, 2, 2, 2, devices({0, 1})}, none);
  CHECK(none.empty());
  std::vector<TaskMessage> away;
  good.data.append_messages(here, {vision, 2, 2, 2, devices({2, 3})}, away);
  CHECK(away.size() == 2);
  CHECK(bytes_of(away) == Approx(all));
  std::vector<TaskMessage> wider;  // each device keeps the first half of what it has
  good.data.append_messages(here, {vision, 2, 2, 4, devices({0, 1, 2, 3})}, wider);
  CHECK(bytes_of(wider) == Approx(all * 3 / 4));
  std::vector<TaskMessage> shards;  // two replicas of two devices: a half of the tokens each
  good.data.append_messages(here, {good.run(0, 1), 0, 3, 4, devices({4, 5, 6, 7})}, shards);
  CHECK(shards.size() == 4);
  CHECK(bytes_of(shards) == Approx(all));
}

TEST_CASE("messages that share a link take as long as its bytes", "[tasks]") {
  const GoodCase good;
  const TaskStepper stepper(good.data);
  const double gigabyte = 1e9;
  const double alone = stepper.message_seconds({{DeviceId(0), DeviceId(8), gigabyte}});
  const double apart =
      stepper.message_seconds({{DeviceId(0), DeviceId(8), gigabyte}, {DeviceId(1), DeviceId(9), gigabyte}});
  const double shared =
      stepper.message_seconds({{DeviceId(0), DeviceId(8), gigabyte}, {DeviceId(0), DeviceId(9), gigabyte}});
  CHECK(apart == Approx(alone));
  CHECK(shared == Approx(2 * alone).epsilon(0.01));
  CHECK(stepper.message_seconds({}) == 0);
  CHECK(stepper.message_seconds({{DeviceId(0), DeviceId(1), gigabyte}}) < alone);
}

TEST_CASE("a parameter's group has all devices that any task lets touch it", "[tasks]") {
  const GoodCase good;
  TaskPlan plan;
  const std::size_t caption = good.run(0, 0);
  const std::size_t pairs = good.run(1, 0);
  plan.rounds = {{{{16,
                    {{{{caption, 0, 2, 2, devices({0, 1})}, {pairs, 0, 4, 2, devices({2, 3})}}},
                     {{{caption, 2, 2, 1, devices({4})}}}}}}}};
  const ParameterGroups groups(good.data, plan);
  const std::int64_t layer = ModuleMemory(good.of.modules[0]).parameters(OperatorKind::layer);
  CHECK(layer == Approx(12 * 512 * 512).epsilon(0.01));
  REQUIRE(groups.groups().size() == 2);
  CHECK(groups.groups().at(devices({0, 1, 2, 3})) == 2 * layer);
  CHECK(groups.groups().at(devices({2, 3, 4})) == 2 * layer);
}

TEST_CASE("plans of all policies use a device once at a time, and run every operator once", "[tasks]") {
  const TaskFile file = TasksFile().load();
  const TaskComparison comparison = compare_policies(file.cases[0]);
  REQUIRE(comparison.rows.size() == task_policies().size());
  for (const TaskRow& row : comparison.rows) {
    CAPTURE(row.policy);
    std::map<std::size_t, std::int64_t> done;
    for (const TaskRound& round : row.plan.rounds) {
      std::map<DeviceId, std::size_t> lane_of;
      for (std::size_t lane = 0; lane < round.lanes.size(); ++lane) {
        for (const TaskWave& wave : round.lanes[lane].waves) {
          std::set<DeviceId> used;
          for (const TaskSlice& slice : wave.slices) {
            done[slice.run] += slice.operators;
            CHECK(std::ssize(slice.placed) == slice.devices);
            for (const DeviceId device : slice.placed) {
              CHECK(used.insert(device).second);
              CHECK(lane_of.emplace(device, lane).first->second == lane);
            }
          }
        }
      }
    }
    for (std::size_t run = 0; run < comparison.runs.size(); ++run) {
      CHECK(done[run] == comparison.runs[run].operators);
    }
    if (row.policy != "optimus") CHECK(row.over_bound >= 1 - 1e-9);  // which does not keep levels apart
    CHECK(row.step.idle >= 0);
    CHECK(row.step.idle < 1);
  }
  CHECK(comparison.rows[0].speedup == 1);
}

TEST_CASE("a slice that fits an island is in one, where its input is", "[tasks]") {
  const GoodCase good;
  TaskPlan plan;
  const std::size_t caption = good.run(0, 0);
  const std::size_t pairs = good.run(1, 0);
  const std::size_t lm = good.run(0, 1);
  plan.rounds = {{{{16, {{{{caption, 0, 4, 8, {}}, {pairs, 0, 4, 8, {}}}}, {{{lm, 0, 3, 8, {}}}}}}}}};
  place_slices(good.data, SlicePlacing::local, plan);
  const auto& waves = plan.rounds[0].lanes[0].waves;
  CHECK(waves[1].slices[0].placed == waves[0].slices[0].placed);
  place_slices(good.data, SlicePlacing::consecutive, plan);
  CHECK(waves[1].slices[0].placed == devices({0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST_CASE("a slower link between nodes makes no policy faster", "[tasks]") {
  const TaskFile fast = TasksFile().load();
  const TaskFile slow = TasksFile().load({"cluster.node.nics={count: 8, bandwidth: 10 Gbit/s}"});
  const TaskComparison with_fast = compare_policies(fast.cases[0]);
  const TaskComparison with_slow = compare_policies(slow.cases[0]);
  for (std::size_t i = 0; i < with_fast.rows.size(); ++i) {
    CHECK(with_slow.rows[i].step.total() >= with_fast.rows[i].step.total());
    CHECK(with_slow.rows[i].step.passes() == Approx(with_fast.rows[i].step.passes()));
  }
}

}  // namespace
}  // namespace hdpsim
