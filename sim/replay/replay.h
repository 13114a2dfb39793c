#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/seal.h"
#include "sim/replay/replay_summary.h"
#include "sim/replay/step_cause.h"
#include "sim/study/study.h"

namespace hdpsim {

/// How far a replay is.
struct ReplayProgress {
  std::int64_t first = 0;  ///< Steps that were there before.
  std::int64_t done = 0;   ///< With those.
  std::int64_t steps = 0;
};

/// How a replay runs and where its parts go.
struct ReplayRun {
  std::int64_t steps = 0;
  std::size_t jobs = 1;                               ///< Threads; each has its own simulated cluster.
  std::filesystem::path folder{};                     ///< Where Journal and windows.csv grow; empty: nowhere.
  bool resume = false;                                ///< Go on with the steps in the folder.
  TellDamage damaged = [](const Diagnostic&) {};      ///< Of those that are damaged and simulated again.
  std::string version{};                              ///< Steps of another version are refused.
  std::function<bool()> stop = [] { return false; };  ///< Asked before every step, from any thread.
  std::function<void(const ReplayProgress&)> report = [](const ReplayProgress&) {};
  std::function<void(const StepRow&)> row = [](const StepRow&) {};         ///< Gets those of steps.csv, ...
  std::function<void(const WindowRow&)> window = [](const WindowRow&) {};  ///< ... and those of windows.csv.
};

/// What a replay came to.
struct ReplayResult {
  std::string study;
  std::string setting;  ///< Model, cluster, mesh and batches, in a few words.
  std::string profile;
  std::vector<std::string> plans;
  ReplaySummary summary;
  std::vector<std::vector<StepCause>> worst;  ///< Of each plan, slowest first.
  std::optional<TraceUse> trace{};            ///< Nothing if lengths are drawn.
};

/// Of the plans, in the order of the study: what tables call them.
[[nodiscard]] std::vector<std::string> plan_names(const Study& study);

/// Runs `run.steps` steps of one point of a study with all of its plans. Step times are in the order of the steps;
/// results do not depend on the number of threads, nor on how often the replay was interrupted. Memory does not grow
/// with the number of steps. Nothing if it was stopped: what was finished is in the folder. InputError as
/// Journal::look(), MachineError if a file cannot be written.
[[nodiscard]] std::optional<ReplayResult> replay(const Study& study, const StudyPoint& point, const ReplayRun& run);

}  // namespace hdpsim
