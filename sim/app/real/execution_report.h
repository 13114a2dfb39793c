#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/growing_file.h"
#include "sim/base/output_folder.h"
#include "sim/compare/comparison_figures.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim::app {

/// One run of a step, and its prediction.
struct ExecutedStep {
  std::int64_t step = 0;
  std::int64_t run = 1;  ///< Number of the run of this step, counted from 1.
  double loss = 0;
  std::int64_t tokens = 0;
  const Timeline& predicted;
  double core_share = 1;  ///< As in TimelineTitle.
  Timeline measured;
  std::vector<Breakdown> processor;  ///< By worker, from the executor.
  Duration planning;                 ///< Time of planning it, which overlaps with the step before.
  std::optional<Duration> at_pace;   ///< As in TimelineTitle.
};

/// Reports real steps of one plan while they run: a line each, then where the time went.
class ExecutionReport {
 public:
  /// Files go to `folder`, or to its subfolder `inner`; none are written if it is null.
  explicit ExecutionReport(OutputFolder* folder, std::string inner = {}) : folder_(folder), inner_(std::move(inner)) {}

  [[nodiscard]] static std::string heading();
  /// The line of a warm-up run without a prediction, which is not counted.
  [[nodiscard]] static std::string warm_up_line(std::int64_t step, double loss, std::int64_t tokens, Duration measured);
  /// Adds a run and writes its plan (plan-STEP.json) and timelines (predicted-STEP.jsonl, measured-STEP.jsonl, from the
  /// second run on measured-STEP-RUN.jsonl; for the first run both together in trace-STEP.json.gz, for viewers). Its
  /// row goes to steps.csv, which has that name once it is finished: until then steps.csv.part holds the rows of all
  /// runs so far, however the process ends. Returns its line.
  [[nodiscard]] std::string add(const Program& program, const ExecutedStep& step);
  /// Predicted and measured times by activity: mean over ranks and runs. If each step was run once, the first step is
  /// left out if there are others, because its caches are empty. Then how long steps waited for their plans, and
  /// whether the machine was busy with others' work. Finishes steps.csv.
  [[nodiscard]] std::string finish();

 private:
  using Row = ExecutedRun;
  void write(const Program& program, const ExecutedStep& step) const;
  [[nodiscard]] std::vector<Row> counted() const;
  [[nodiscard]] GrowingFile& table();
  [[nodiscard]] std::filesystem::path file(const std::string& name) const;

  OutputFolder* folder_;
  std::string inner_;
  std::vector<Row> rows_;
  std::optional<GrowingFile> table_;
};

}  // namespace hdpsim::app
