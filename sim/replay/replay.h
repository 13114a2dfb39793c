#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/document/journal.h"
#include "sim/replay/best_static_share.h"
#include "sim/replay/replay_choice.h"
#include "sim/replay/replay_summary.h"
#include "sim/replay/step_cause.h"
#include "sim/study/study.h"

namespace hdpsim {

/// The progress of a replay.
struct ReplayProgress {
  std::int64_t kept = 0;  ///< Steps that the journal held.
  std::int64_t done = 0;  ///< Steps that are done, including those.
  std::int64_t steps = 0;
};

/// How a replay runs and where its parts go.
struct ReplayRun {
  std::int64_t steps = 0;
  std::size_t jobs = 1;                               ///< Threads; each has its own simulated cluster.
  JournalFolder kept{};                               ///< Where the journal, steps.csv and windows.csv are written.
  std::vector<RefusedPlan> refused{};                 ///< What leave_out_refused() has left out, for the result.
  std::string version{};                              ///< Steps of another version are refused.
  std::function<bool()> stop = [] { return false; };  ///< Asked before every step, from any thread.
  std::function<void(const ReplayProgress&)> report = [](const ReplayProgress&) {};
  std::function<void(const StepRow&)> row = [](const StepRow&) {};         ///< Gets the rows of steps.csv, ...
  std::function<void(const WindowRow&)> window = [](const WindowRow&) {};  ///< ... and the rows of windows.csv.
};

/// The result of a replay.
struct ReplayResult {
  std::string study;
  std::string setting;  ///< Model, cluster, mesh and batches, in a few words.
  std::string profile;
  std::vector<std::string> plans;
  ReplaySummary summary;
  std::vector<std::vector<StepCause>> worst;     ///< Slowest steps of each plan, slowest first.
  std::optional<TraceUse> trace{};               ///< Empty if lengths are drawn.
  std::vector<RefusedPlan> refused{};            ///< Plans of the study that it goes without.
  std::optional<BestStaticShare> best_static{};  ///< Of best_static_share(), which may be asked for afterwards.
};

/// The plan that a replay's speed-ups are over: that of `compare_to`, otherwise the first.
[[nodiscard]] std::size_t baseline_plan(const Study& study);
/// Names of the plans for tables, in the order of the study.
[[nodiscard]] std::vector<std::string> plan_names(const Study& study);

/// Runs `run.steps` steps of one point of a study with all of its plans. Step times are in the order of the steps;
/// results depend neither on the number of threads nor on how often the replay was interrupted. Memory does not grow
/// with the number of steps, but for a few dozen bytes where the journal keeps one. Empty if it was stopped: finished
/// steps are in the journal. InputError as for Journal::resume(), MachineError if a file cannot be written.
[[nodiscard]] std::optional<ReplayResult> replay(const Study& study, const StudyPoint& point, const ReplayRun& run);

}  // namespace hdpsim
