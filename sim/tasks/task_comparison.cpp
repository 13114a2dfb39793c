#include "sim/tasks/task_comparison.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/tasks/slice_placement.h"
#include "sim/tasks/task_policies.h"

namespace hdpsim {
namespace {

std::vector<std::string> names_of(const TaskCase& of, const std::vector<MetaOp>& runs) {
  std::vector<std::string> names;
  for (const MetaOp& run : runs) {
    const TaskGraph& task = of.tasks[run.task];
    const std::string node = fmt::format("{}/{}", task.name, task.nodes[run.node].name);
    const bool is_whole = run.operators == of.modules[task.nodes[run.node].module].model().layers;
    if (run.kind == OperatorKind::head) {
      names.push_back(node + " head");
    } else if (is_whole) {
      names.push_back(node);
    } else {
      names.push_back(fmt::format("{} layers {}-{}", node, run.first, run.first + run.operators - 1));
    }
  }
  return names;
}

std::optional<double> published_of(const TaskCase& of, const std::string& policy) {
  for (const auto& [name, speedup] : of.published) {
    if (name == policy) return speedup;
  }
  return std::nullopt;
}

}  // namespace

CasePrices::CasePrices(const TaskCase& of) : case_(of) {
  for (const TaskModule& module : of.modules) prices_.emplace_back(module);
}

OperatorSeconds CasePrices::seconds(const MetaOp& run, std::int64_t devices) {
  const TaskNode& node = case_.tasks[run.task].nodes[run.node];
  const std::int64_t tp = case_.modules[node.module].tp;
  return prices_[node.module].seconds(run.kind, node.batch * tp / devices, node.tokens);
}

TaskWork CasePrices::work() {
  TaskWork work{meta_ops(case_.tasks, case_.sizes()), {}, case_.tasks.size(), case_.cluster().devices};
  for (const MetaOp& run : work.runs) {
    const TaskNode& node = case_.tasks[run.task].nodes[run.node];
    const std::int64_t tp = case_.modules[node.module].tp;
    std::vector<ScalingPoint> points;
    for (std::int64_t replicas = 1; replicas <= node.batch && replicas * tp <= work.devices; ++replicas) {
      if (node.batch % replicas == 0) points.push_back({replicas * tp, seconds(run, replicas * tp).both()});
    }
    if (points.empty()) {
      throw InputError(
          fmt::format("the module '{}' needs {} devices, of {}", case_.modules[node.module].name, tp, work.devices));
    }
    work.costs.push_back({run.operators, ScalingCurve(points)});
  }
  return work;
}

TaskComparison compare_policies(const TaskCase& of) {
  CasePrices prices(of);
  const TaskWork work = prices.work();
  const SliceData data(of, work);
  const TaskStepper stepper(data);
  TaskComparison comparison{of.label,
                            work.devices,
                            of.tasks.size(),
                            work.runs,
                            names_of(of, work.runs),
                            levels_of(work.runs).size(),
                            bound_of(work),
                            {}};
  for (const TaskPolicy& policy : task_policies()) {
    TaskRow& row = comparison.rows.emplace_back();
    row.policy = policy.name;
    row.plan = policy.plan(work);
    place_slices(data, policy.placing, row.plan);
    row.step = stepper.step(
        row.plan, [&](const TaskSlice& slice) { return prices.seconds(work.runs[slice.run], slice.devices); });
    row.speedup = comparison.rows.front().step.total() / row.step.total();
    row.over_bound = row.step.passes() / comparison.bound;
    row.published = published_of(of, policy.name);
  }
  return comparison;
}

}  // namespace hdpsim
