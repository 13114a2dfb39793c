#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/tasks/module_prices.h"
#include "sim/tasks/slice_data.h"
#include "sim/tasks/task_file.h"
#include "sim/tasks/task_step.h"

namespace hdpsim {

/// A policy's step in a case.
struct TaskRow {
  std::string policy;
  TaskPlan plan;
  TaskStep step;
  double speedup = 1;                 ///< Over the step of `sequential`.
  double over_bound = 1;              ///< Time of forward and backward over the bound of the case.
  std::optional<double> published{};  ///< Its published speed-up.
};

/// What policies make of a case.
struct TaskComparison {
  std::string label;
  std::int64_t devices = 0;
  std::size_t tasks = 0;
  std::vector<MetaOp> runs;
  std::vector<std::string> names;  ///< By run: "caption/vision", with the layers where a module has several runs.
  std::size_t levels = 0;
  double bound = 0;           ///< bound_of() its work, seconds.
  std::vector<TaskRow> rows;  ///< In the order of task_policies().
};

/// The prices of a case's runs on all numbers of devices that divide their batch.
class CasePrices {
 public:
  /// The case must outlive it.
  explicit CasePrices(const TaskCase& of);

  [[nodiscard]] OperatorSeconds seconds(const MetaOp& run, std::int64_t devices);
  /// InputError if a module has more tp devices than there are.
  [[nodiscard]] TaskWork work();

 private:
  const TaskCase& case_;
  std::vector<ModulePrices> prices_;  // by module
};

/// InputError, where a case cannot be priced.
[[nodiscard]] TaskComparison compare_policies(const TaskCase& of);

}  // namespace hdpsim
