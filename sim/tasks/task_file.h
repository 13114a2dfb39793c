#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/document/document.h"
#include "sim/document/key.h"
#include "sim/study/study.h"
#include "sim/tasks/task_graph.h"

namespace hdpsim {

/// A transformer that tasks share.
struct TaskModule {
  std::string name;
  std::int64_t tp = 1;
  bool is_causal = false;
  bool has_head = false;
  std::shared_ptr<const Study> study;  ///< Of one point: this model alone on the cluster.

  [[nodiscard]] const StudyPoint& point() const { return study->points.front(); }
  [[nodiscard]] const Transformer& model() const { return point().spec.model; }
  [[nodiscard]] const Recipe& recipe() const { return point().spec.recipe; }
};

/// One job of several tasks on a cluster. It has at least one task, and every module at least one user.
struct TaskCase {
  std::string label;  ///< What is unlike in it; empty where the file has no cases.
  std::vector<TaskModule> modules;
  std::vector<TaskGraph> tasks;
  std::vector<std::pair<std::string, double>> published{};  ///< Speed-ups over `sequential`, by policy.

  [[nodiscard]] const PointSpec& spec() const { return modules.front().point().spec; }
  [[nodiscard]] const ClusterSpec& cluster() const { return spec().cluster; }
  [[nodiscard]] std::vector<ModuleSize> sizes() const;
};

/// A file of tasks:
///     name: clip
///     cluster: {preset: a800-rail, gpus: 32}     profile, framework, kernels, overheads, training, memory: as a
///     study's modules:
///       vision: {layers: 32, width: 1280, heads: 16}
///       text: {layers: 24, width: 1024, heads: 16}
///       lm: {model: {preset: llama-7b}, tp: 2}
///     tasks:
///       caption: {batch: 64, graph: {vision: {tokens: 257}, lm: {tokens: 512, after: [vision]}}}
///     train: [caption]                           these tasks alone
///     cases: [{label: small, set: {cluster.gpus: 8}, published: {spindle: 1.37}}]
struct TaskFile {
  std::string name;
  Value document;  ///< With overrides, without defaults.
  std::vector<TaskCase> cases;
};

/// The keys of such a file.
[[nodiscard]] const std::vector<KeyText>& task_file_keys();

/// Reads a file, with `key=value` overrides put in. InputError with every problem of the file and of its cases.
[[nodiscard]] TaskFile load_task_file(const std::string& path, const std::vector<std::string>& overrides,
                                      Catalog& catalog);

}  // namespace hdpsim
