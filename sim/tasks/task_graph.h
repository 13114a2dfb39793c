#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace hdpsim {

/// What an operator computes: one layer of a module, or its embedding, final norm, head and loss.
enum class OperatorKind : std::uint8_t { layer, head };

/// The layers of a module on the tokens of one modality, in one task.
struct TaskNode {
  std::string name;
  std::size_t module = 0;  ///< Index into the modules that tasks share.
  std::int64_t batch = 1;  ///< Samples.
  std::int64_t tokens = 1;
  std::vector<std::size_t> after{};  ///< Nodes of the task whose outputs it reads.
};

/// A task as a graph of modules without a circle.
struct TaskGraph {
  std::string name;
  std::vector<TaskNode> nodes;
};

/// The operators of a module.
struct ModuleSize {
  std::int64_t layers = 1;
  bool has_head = false;
};

/// A run of identical operators, each of which reads the one before it and nothing else (Spindle, arXiv 2409.03365,
/// section 3): what is allocated as a whole.
struct MetaOp {
  std::size_t task = 0;
  std::size_t node = 0;
  OperatorKind kind = OperatorKind::layer;
  std::int64_t first = 0;  ///< Layer.
  std::int64_t operators = 0;
  std::vector<std::size_t> after{};  ///< The runs whose outputs it reads.
  std::size_t level = 0;             ///< Depth in the graph of runs: those of one level are independent.
};

/// The runs of all tasks, task by task, each behind those that it reads. An edge between operators joins a run if the
/// one has no other reader and the other no other input, and both are of the same kind.
[[nodiscard]] std::vector<MetaOp> meta_ops(const std::vector<TaskGraph>& tasks, const std::vector<ModuleSize>& modules);

/// The runs by level: indices into the list.
[[nodiscard]] std::vector<std::vector<std::size_t>> levels_of(const std::vector<MetaOp>& runs);

/// A node of a circle among the nodes of the task, or their number if there is none.
[[nodiscard]] std::size_t node_in_circle(const std::vector<TaskNode>& nodes);

}  // namespace hdpsim
