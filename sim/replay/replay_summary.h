#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "sim/base/units.h"
#include "sim/replay/quantile_sketch.h"
#include "sim/replay/step_row.h"

namespace hdpsim {

/// Parameters of a replay's summary.
struct ReplayRules {
  std::int64_t steps = 0;    ///< Steps of the whole replay.
  std::size_t plans = 0;     ///< Number of plans, each of which runs every step.
  std::size_t baseline = 0;  ///< The plan against which speed-ups are stated.
  std::int64_t window = 10;  ///< Steps of a window; at most `steps`.
  double threshold = 1.1;    ///< A plan whose speed-up over a window is below this has lost its lead there.
  std::size_t worst = 3;     ///< Number of slowest steps to keep per plan.
  double device_gb = 0;      ///< Memory of one device; the next is its share of the host's.
  double host_gb = 0;
};

/// Figures of a plan over consecutive steps.
struct WindowRow {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::size_t plan = 0;
  double mean_s = 0;
  double max_s = 0;
  double speedup = 1;           ///< Ratio of the sums of the step times.
  double group_wait_share = 0;  ///< Share of the ranks' time.
  double mean_length = 0;
  double weighted_length = 0;  ///< As in BatchFigures, over all steps of the row.
  std::int64_t longest = 0;
};

/// Consecutive steps in which a plan has lost its lead: the union of windows that overlap or touch, each below the
/// threshold.
struct Stretch {
  WindowRow all;     ///< Over all of its steps.
  WindowRow lowest;  ///< Its window with the lowest speed-up.
};

/// One plan over all steps of a replay.
struct PlanSummary {
  double mean_s = 0;
  QuantileSketch time_s;
  double speedup = 1;       ///< Ratio of the mean step times.
  QuantileSketch speedups;  ///< Ratios step by step.
  std::array<double, activity_count> breakdown_s{};
  /// Steps in which this plan fits and is the fastest of all that fit; the first of several equally fast ones.
  std::int64_t fastest = 0;
  double device_gb = 0;  ///< Maximum over the steps, ...
  double host_gb = 0;
  std::int64_t does_not_fit = 0;     ///< ... and the number of steps that exceed the device or the host.
  double device_at_most_gb = 0;      ///< Maximum over the steps of StepRow::device_at_most_gb, ...
  std::int64_t at_risk = 0;          ///< ... and the number of steps that fit and exceed the device with that.
  std::vector<StepRow> worst;        ///< Slowest first.
  std::int64_t stretches = 0;        ///< Stretches in which it lost its lead, ...
  std::int64_t steps_in_them = 0;    ///< ... the number of steps in them, ...
  std::vector<Stretch> lowest{};     ///< ... and the ones with the lowest speed-ups, at most 5, in the order of steps.
  std::optional<WindowRow> least{};  ///< Its window with the lowest speed-up of all, the first; the baseline has none.
};

/// Step times for a chart: a fixed number of points, whatever the number of steps.
struct SeriesPoint {
  std::int64_t first = 0;
  std::int64_t last = 0;
  struct Band {
    double least_s = 0;
    double mean_s = 0;
    double most_s = 0;
  };
  std::vector<Band> plans;
  double weighted_length = 0;
};

struct ReplaySummary {
  ReplayRules rules;
  std::vector<PlanSummary> plans;
  double best_mean_s = 0;  ///< Mean step time if its fastest plan ran every step: the fastest that fits, if any does.
  BatchFigures lengths;    ///< Over all steps.
  /// The disjoint windows with the shortest and the longest weighted length: how far lengths drift.
  WindowRow shortest;
  WindowRow longest;
  std::vector<SeriesPoint> series;
};

/// Sums up the rows of a replay, step by step. Memory grows only with the window and the number of plans. The same rows
/// give the same summary, to the bit.
class ReplayFold {
 public:
  /// `window_done` gets every plan's row of each of the disjoint windows, the last of which may be shorter.
  ReplayFold(const ReplayRules& rules, std::function<void(const WindowRow&)> window_done);

  /// Adds the rows of all plans of the next step, in the order of the study.
  void add(const std::vector<StepRow>& rows);
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// The summary, after all steps of the rules (checked).
  [[nodiscard]] ReplaySummary finish();

 private:
  /// The figures of a step that windows need. Times are whole numbers, so that sums do not depend on their order.
  struct Kept {
    BatchFigures batch;
    std::vector<std::int64_t> time_ps;  ///< By plan.
    std::vector<double> group_wait_s;
  };
  /// Sums of a plan over some steps.
  struct Sums {
    std::int64_t steps = 0;
    Int128 time_ps = 0;
    Int128 baseline_ps = 0;
    std::int64_t most_ps = 0;
    double group_wait_s = 0;
    BatchFigures batch;  ///< Its weighted length is not set: ...
    double squares = 0;  ///< ... it follows from this sum.
    void add(const Kept& step, std::size_t plan, std::size_t baseline);
    [[nodiscard]] WindowRow row(std::int64_t last, std::size_t plan) const;
  };
  struct OpenStretch {
    Sums all;
    std::int64_t last = 0;
    WindowRow lowest;
  };
  struct PlanState {
    PlanSummary summary;
    Int128 sum_ps = 0;
    Int128 window_ps = 0;  ///< Sum over the latest steps, as many as a window has.
    std::optional<OpenStretch> open;
  };
  void add_plan(const StepRow& row, const StepRow& baseline);
  void keep(const std::vector<StepRow>& rows);
  void look_at_window(std::size_t plan);
  void close(PlanState& plan);
  void end_window(std::int64_t steps);
  void add_to_series(const std::vector<StepRow>& rows);
  /// Sums of a plan over the last `steps` steps.
  [[nodiscard]] Sums sums_of_last(std::int64_t steps, std::size_t plan) const;

  ReplayRules rules_;
  std::function<void(const WindowRow&)> window_done_;
  std::int64_t steps_ = 0;
  std::vector<PlanState> plans_;
  std::deque<Kept> window_;  ///< The latest steps.
  Int128 best_ps_ = 0;
  double squares_ = 0;
  ReplaySummary summary_;
};

}  // namespace hdpsim
