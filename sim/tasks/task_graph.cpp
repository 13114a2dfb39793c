#include "sim/tasks/task_graph.h"

#include <algorithm>
#include <tuple>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

struct Operator {
  std::size_t node = 0;
  OperatorKind kind = OperatorKind::layer;
  std::int64_t layer = 0;
  std::vector<std::size_t> inputs{};
  std::size_t readers = 0;
};

// Nodes behind those that they read; nodes of a circle, and behind one, are left out.
std::vector<std::size_t> in_order(const std::vector<TaskNode>& nodes) {
  std::vector<std::size_t> order;
  std::vector<bool> known(nodes.size());
  for (bool grows = true; grows;) {
    grows = false;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto is_known = [&](std::size_t input) { return known[input]; };
      if (known[i] || !std::all_of(nodes[i].after.begin(), nodes[i].after.end(), is_known)) continue;
      known[i] = grows = true;
      order.push_back(i);
    }
  }
  return order;
}

/// Makes the runs of one task.
class RunMaker {
 public:
  RunMaker(const TaskGraph& task, std::size_t index, const std::vector<ModuleSize>& modules)
      : task_(task), index_(index), modules_(modules), last_layer_(task.nodes.size()) {}

  void append_to(std::vector<MetaOp>& runs) {
    for (const std::size_t node : in_order(task_.nodes)) add_node(node);
    for (const Operator& each : operators_) {
      for (const std::size_t input : each.inputs) ++operators_[input].readers;
    }
    for (std::size_t i = 0; i < operators_.size(); ++i) add_to_run(i, runs);
  }

 private:
  void add_node(std::size_t node) {
    const ModuleSize& module = modules_[task_.nodes[node].module];
    Operator next{node, OperatorKind::layer, 0, {}, 0};
    for (const std::size_t input : task_.nodes[node].after) next.inputs.push_back(last_layer_[input]);
    for (; next.layer < module.layers; ++next.layer) {
      operators_.push_back(next);
      next.inputs = {operators_.size() - 1};
    }
    last_layer_[node] = operators_.size() - 1;
    if (!module.has_head) return;
    next.kind = OperatorKind::head;
    operators_.push_back(next);
  }

  [[nodiscard]] bool are_alike(const Operator& one, const Operator& other) const {
    const auto type = [this](const Operator& each) {
      const TaskNode& node = task_.nodes[each.node];
      return std::tuple(node.module, node.batch, node.tokens, each.kind);
    };
    return type(one) == type(other) && one.node == other.node;  // parameters of a run are those of one node's layers
  }

  void add_to_run(std::size_t index, std::vector<MetaOp>& runs) {
    const Operator& each = operators_[index];
    if (each.inputs.size() == 1) {
      const Operator& before = operators_[each.inputs[0]];
      if (before.readers == 1 && are_alike(before, each)) {
        run_of_.push_back(run_of_[each.inputs[0]]);
        ++runs[run_of_.back()].operators;
        return;
      }
    }
    MetaOp run{index_, each.node, each.kind, each.layer, 1, {}, 0};
    for (const std::size_t input : each.inputs) {
      run.after.push_back(run_of_[input]);
      run.level = std::max(run.level, runs[run_of_[input]].level + 1);
    }
    run_of_.push_back(runs.size());
    runs.push_back(std::move(run));
  }

  const TaskGraph& task_;
  std::size_t index_;
  const std::vector<ModuleSize>& modules_;
  std::vector<std::size_t> last_layer_;  // by node, its operator
  std::vector<Operator> operators_;
  std::vector<std::size_t> run_of_;  // by operator
};

}  // namespace

std::vector<MetaOp> meta_ops(const std::vector<TaskGraph>& tasks, const std::vector<ModuleSize>& modules) {
  std::vector<MetaOp> runs;
  for (std::size_t task = 0; task < tasks.size(); ++task) RunMaker(tasks[task], task, modules).append_to(runs);
  return runs;
}

std::vector<std::vector<std::size_t>> levels_of(const std::vector<MetaOp>& runs) {
  std::vector<std::vector<std::size_t>> levels;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    levels.resize(std::max(levels.size(), runs[i].level + 1));
    levels[runs[i].level].push_back(i);
  }
  return levels;
}

std::size_t node_in_circle(const std::vector<TaskNode>& nodes) {
  const std::vector<std::size_t> order = in_order(nodes);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (std::find(order.begin(), order.end(), i) == order.end()) return i;
  }
  return nodes.size();
}

}  // namespace hdpsim
