#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/engine/timeline.h"
#include "sim/plan/plan.h"

namespace hdpsim::app {

/// One step that was run and simulated.
struct ExecutedStep {
  std::int64_t step = 0;
  double loss = 0;
  std::int64_t tokens = 0;
  Timeline predicted;
  Timeline measured;
  std::vector<Breakdown> processor;  ///< By rank, as the executor's.
};

/// Tells of real steps while they run: a line each, then what the time went to.
class ExecutionReport {
 public:
  /// Files go to `folder`, which exists; nowhere if it is empty.
  explicit ExecutionReport(std::filesystem::path folder) : folder_(std::move(folder)) {}

  [[nodiscard]] static std::string heading();
  /// Takes a step in and writes its plan (plan-STEP.json) and timelines (predicted-STEP.jsonl, measured-STEP.jsonl).
  /// Returns its line.
  [[nodiscard]] std::string add(const Plan& plan, const ExecutedStep& step);
  /// Predicted beside measured by activity: mean over ranks and steps, the first step left out if there are others, for
  /// it meets empty caches. Writes steps.csv.
  [[nodiscard]] std::string finish() const;

 private:
  /// What is kept of a step.
  struct Row {
    std::int64_t step = 0;
    double loss = 0;
    std::int64_t tokens = 0;
    Breakdown predicted, measured, processor;  ///< Means over the ranks.
  };
  [[nodiscard]] std::string csv() const;

  std::filesystem::path folder_;
  std::vector<Row> rows_;
};

}  // namespace hdpsim::app
