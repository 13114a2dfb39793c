#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/compare/comparison.h"
#include "sim/compare/instruction_records.h"
#include "sim/compare/timeline_file.h"

namespace hdpsim {

/// One step: a prediction to which measurements are added. O(n log n) time and O(n) memory in the instructions of one
/// timeline, whatever the number of runs.
class StepComparison {
 public:
  /// `file` names the prediction in messages.
  StepComparison(std::string file, TimelineFile predicted);
  /// Adds a measurement. InputError, with all differences, if `measured` is not a run of the same instructions on the
  /// same ranks.
  void add(const std::string& file, TimelineFile measured);
  /// The comparison so far. At least one run has been added (checked).
  [[nodiscard]] Comparison result() const;

 private:
  struct RankTimes {
    double busy_s = 0, exchange_s = 0, hidden_s = 0;
  };
  /// The figures that are kept of a timeline.
  struct Summary {
    double step_time_s = 0;
    std::optional<double> on_core_s;
    std::optional<double> at_pace_s;  ///< For a measurement only.
    std::array<double, instruction_families> family_s{};
    std::vector<RankTimes> ranks;
    std::array<double, activity_count> activity_s{};
  };
  [[nodiscard]] Summary summary(const TimelineFile& file) const;
  /// A figure of every run, in their order.
  template <class Figure>
  [[nodiscard]] std::vector<double> measured(const Figure& figure) const;
  /// A figure as predicted, and its median over the runs.
  template <class Figure>
  [[nodiscard]] Pair pair(const Figure& figure) const;
  [[nodiscard]] bool every_run_knows(std::optional<double> Summary::*figure) const;
  [[nodiscard]] std::optional<double> noise_floor() const;
  [[nodiscard]] std::vector<FamilyComparison> families() const;
  [[nodiscard]] std::vector<RankComparison> ranks() const;

  std::string file_;
  TimelineTitle title_;
  std::vector<InstructionRecord> instructions_;  ///< The predicted ones, by id.
  std::array<std::int64_t, instruction_families> family_instructions_{};
  Summary predicted_;
  std::vector<Summary> measured_;  ///< In the order in which they were added.
};

}  // namespace hdpsim
