#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/cost/coverage.h"
#include "sim/run/run_record.h"
#include "sim/run/run_workers.h"
#include "sim/study/study.h"

namespace hdpsim {

/// The progress of a study.
struct Progress {
  std::size_t steps_done = 0;
  std::size_t steps = 0;  ///< Steps of all runs that have to be simulated.
  std::size_t runs_done = 0;
  std::size_t runs = 0;
  const RunInfo* finished = nullptr;  ///< The run that has just been finished, or null.
};

struct RunnerOptions {
  std::size_t jobs = 1;                               ///< Threads; each has its own simulated cluster.
  Journal* journal = nullptr;                         ///< Where finished runs are kept, by run_identity().
  std::string version{};                              ///< Runs of another version are not taken.
  std::function<bool()> stop = [] { return false; };  ///< Asked before every step, from any thread.
  std::function<void(const Progress&)> report = [](const Progress&) {};  ///< Called by one thread at a time.
  /// Called with what a simulated run asked of its point's profile. Called by one thread at a time.
  std::function<void(const std::shared_ptr<const DeviceProfile>&, const Coverage&)> cover =
      [](const std::shared_ptr<const DeviceProfile>&, const Coverage&) {};
  /// Helpers of the threads, or null. Must outlive the study, as what follows.
  RunWorkers* helpers = nullptr;
  KnownSteps* known = nullptr;     ///< Of this study with more or fewer steps, and without its intervals.
  StepWatcher* watcher = nullptr;  ///< Does not see steps that are known, and those of helpers.
};

/// Simulates all runs of a study, step by step on `jobs` threads. Results depend neither on their number nor on
/// helpers. A run whose policy refuses a batch is an answer without figures, as others may run; if every run is
/// refused, that is an InputError. Empty if it was stopped: runs that were finished until then are in the journal. The
/// first exception of a thread is thrown on.
[[nodiscard]] std::optional<std::vector<Run>> run_study(const Study& study, const RunnerOptions& options);

}  // namespace hdpsim
