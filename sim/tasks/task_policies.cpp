#include "sim/tasks/task_policies.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// The largest point with at most so many devices.
const ScalingPoint& best_on(const OperatorRun& run, std::int64_t devices) {
  const std::vector<ScalingPoint>& points = run.curve.points();
  const auto found = std::find_if(points.rbegin(), points.rend(),
                                  [devices](const ScalingPoint& point) { return point.devices <= devices; });
  HDPSIM_CHECK(found != points.rend(), "no point with {} devices", devices);
  return *found;
}

std::vector<std::size_t> runs_of(const TaskWork& work, std::size_t task) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < work.runs.size(); ++i) {
    if (work.runs[i].task == task) found.push_back(i);
  }
  return found;
}

// Run after run on devices of a lane.
TaskLane one_by_one(const TaskWork& work, const std::vector<std::size_t>& runs, std::int64_t devices) {
  TaskLane lane{devices, {}};
  for (const std::size_t run : runs) {
    const std::int64_t operators = work.costs[run].operators;
    lane.waves.push_back({{{run, 0, operators, best_on(work.costs[run], devices).devices, {}}}});
  }
  return lane;
}

// Some runs level by level.
TaskLane by_levels(const TaskWork& work, const std::vector<std::size_t>& runs) {
  TaskLane lane{work.devices, {}};
  std::vector<std::int64_t> done(work.runs.size());
  std::size_t levels = 0;
  for (const std::size_t run : runs) levels = std::max(levels, work.runs[run].level + 1);
  for (std::size_t level = 0; level < levels; ++level) {
    std::vector<std::size_t> members;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(members),
                 [&](std::size_t run) { return work.runs[run].level == level; });
    std::vector<OperatorRun> costs;
    for (const std::size_t run : members) costs.push_back(work.costs[run]);
    for (const Wave& wave : plan_level(costs, work.devices).waves) {
      TaskWave& added = lane.waves.emplace_back();
      for (const RunPart& part : wave.parts) {
        const std::size_t run = members[part.run];
        added.slices.push_back({run, done[run], part.operators, part.devices, {}});
        done[run] += part.operators;
      }
    }
  }
  return lane;
}

/// A task that gets devices by its marginal gain.
struct Bidder {
  std::size_t task = 0;
  std::vector<std::size_t> runs;
  std::int64_t devices = 0;

  [[nodiscard]] double seconds(const TaskWork& work, std::int64_t on) const {
    double sum = 0;
    for (const std::size_t run : runs) {
      sum += static_cast<double>(work.costs[run].operators) * best_on(work.costs[run], on).seconds;
    }
    return sum;
  }
  [[nodiscard]] std::int64_t fewest(const TaskWork& work) const {
    std::int64_t most = 1;
    for (const std::size_t run : runs) most = std::max(most, work.costs[run].curve.points().front().devices);
    return most;
  }
  // The next number of devices that makes one of its runs faster; 0: none does.
  [[nodiscard]] std::int64_t next(const TaskWork& work) const {
    std::int64_t least = 0;
    for (const std::size_t run : runs) {
      for (const ScalingPoint& point : work.costs[run].curve.points()) {
        if (point.devices > devices && (least == 0 || point.devices < least)) least = point.devices;
      }
    }
    return least;
  }
};

void give_devices(const TaskWork& work, std::int64_t left, std::vector<Bidder>& bidders) {
  while (true) {
    Bidder* best = nullptr;
    double best_gain = 0;
    for (Bidder& bidder : bidders) {
      const std::int64_t next = bidder.next(work);
      if (next == 0 || next - bidder.devices > left) continue;
      const double gain = (bidder.seconds(work, bidder.devices) - bidder.seconds(work, next)) /
                          static_cast<double>(next - bidder.devices);
      if (gain > best_gain) {
        best = &bidder;
        best_gain = gain;
      }
    }
    if (best == nullptr) return;
    const std::int64_t next = best->next(work);
    left -= next - best->devices;
    best->devices = next;
  }
}

}  // namespace

TaskPlan sequential_plan(const TaskWork& work) {
  TaskPlan plan;
  for (std::size_t task = 0; task < work.tasks; ++task) {
    plan.rounds.push_back({{one_by_one(work, runs_of(work, task), work.devices)}});
  }
  return plan;
}

TaskPlan within_tasks_plan(const TaskWork& work) {
  TaskPlan plan;
  for (std::size_t task = 0; task < work.tasks; ++task) {
    plan.rounds.push_back({{by_levels(work, runs_of(work, task))}});
  }
  return plan;
}

TaskPlan by_task_plan(const TaskWork& work) {
  std::vector<Bidder> waiting;
  for (std::size_t task = 0; task < work.tasks; ++task) {
    Bidder& bidder = waiting.emplace_back(Bidder{task, runs_of(work, task), 0});
    bidder.devices = bidder.fewest(work);
  }
  std::stable_sort(waiting.begin(), waiting.end(), [&](const Bidder& one, const Bidder& other) {
    return one.seconds(work, one.devices) > other.seconds(work, other.devices);
  });
  TaskPlan plan;
  while (!waiting.empty()) {
    std::vector<Bidder> together;
    std::int64_t left = work.devices;
    std::erase_if(waiting, [&](const Bidder& bidder) {
      if (bidder.devices > left) return false;
      left -= bidder.devices;
      together.push_back(bidder);
      return true;
    });
    give_devices(work, left, together);
    TaskRound& round = plan.rounds.emplace_back();
    for (const Bidder& bidder : together) round.lanes.push_back(one_by_one(work, bidder.runs, bidder.devices));
  }
  return plan;
}

TaskPlan wave_plan(const TaskWork& work) {
  std::vector<std::size_t> all(work.runs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return {{{{by_levels(work, all)}}}};
}

double bound_of(const TaskWork& work) {
  double sum = 0;
  for (const std::vector<std::size_t>& level : levels_of(work.runs)) {
    std::vector<OperatorRun> costs;
    for (const std::size_t run : level) costs.push_back({work.costs[run].operators, work.costs[run].curve.envelope()});
    sum += level_optimum(costs, work.devices).seconds;
  }
  return sum;
}

const std::vector<TaskPolicy>& task_policies() {
  static const std::vector<TaskPolicy> all = {{"sequential", sequential_plan},
                                              {"distmm", within_tasks_plan},
                                              {"optimus", by_task_plan},
                                              {"spindle", wave_plan},
                                              {"spindle-consecutive", wave_plan, SlicePlacing::consecutive}};
  return all;
}

const std::vector<std::string>& task_policy_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const TaskPolicy& policy : task_policies()) found.push_back(policy.name);
    return found;
  }();
  return names;
}

}  // namespace hdpsim
