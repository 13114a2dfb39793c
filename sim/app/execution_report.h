#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/growing_file.h"
#include "sim/base/output_folder.h"
#include "sim/engine/timeline.h"
#include "sim/program/program.h"

namespace hdpsim::app {

/// One run of a step, and what was predicted for it.
struct ExecutedStep {
  std::int64_t step = 0;
  std::int64_t run = 1;  ///< Of this step, counted from 1.
  double loss = 0;
  std::int64_t tokens = 0;
  const Timeline& predicted;
  double core_share = 1;  ///< As in TimelineTitle.
  Timeline measured;
  std::vector<Breakdown> processor;  ///< By worker, as the executor's.
  Duration planning;                 ///< Of the plan, beside the step before.
  std::optional<Duration> at_pace;   ///< As in TimelineTitle.
};

/// Tells of real steps of one plan while they run: a line each, then what the time went to.
class ExecutionReport {
 public:
  /// Files go to `folder`, or to the one of this name in it; nowhere if it is null.
  explicit ExecutionReport(OutputFolder* folder, std::string inner = {}) : folder_(folder), inner_(std::move(inner)) {}

  [[nodiscard]] static std::string heading();
  /// The line of a run without a prediction, which counts for nothing else.
  [[nodiscard]] static std::string warm_up_line(std::int64_t step, double loss, std::int64_t tokens, Duration measured);
  /// Takes a run in and writes its plan (plan-STEP.json) and timelines (predicted-STEP.jsonl, measured-STEP.jsonl, from
  /// the second run on measured-STEP-RUN.jsonl; of the first both beside each other in trace-STEP.json.gz, for
  /// viewers). Its row goes to steps.csv, which has that name once it is finished: until then steps.csv.part holds the
  /// rows of all runs so far, whatever ends the process. Returns its line.
  [[nodiscard]] std::string add(const Program& program, const ExecutedStep& step);
  /// Predicted beside measured by activity: mean over ranks and runs. Where each step was run once, the first is left
  /// out if there are others, for it meets empty caches. Then what steps waited for their plans, and whether the machine
  /// was busy with others' work. Finishes steps.csv.
  [[nodiscard]] std::string finish();

 private:
  /// What is kept of a step.
  struct Row {
    std::int64_t step = 0;
    std::int64_t run = 1;
    double loss = 0;
    std::int64_t tokens = 0;
    double core_share = 1;                     ///< That was predicted.
    Breakdown predicted, measured, processor;  ///< Means over the ranks.
    Duration exposed;                          ///< What the rank that waited longest for its plan waited.
    Duration planning;
    std::optional<Duration> at_pace;
  };
  void write(const Program& program, const ExecutedStep& step) const;
  [[nodiscard]] std::vector<Row> counted() const;
  [[nodiscard]] GrowingFile& table();
  [[nodiscard]] static std::string csv_header();
  [[nodiscard]] static std::string csv_line(const Row& row);
  [[nodiscard]] std::filesystem::path file(const std::string& name) const;

  OutputFolder* folder_;
  std::string inner_;
  std::vector<Row> rows_;
  std::optional<GrowingFile> table_;
};

}  // namespace hdpsim::app
