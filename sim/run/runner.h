#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/cost/coverage.h"
#include "sim/run/run_store.h"
#include "sim/run/run_workers.h"
#include "sim/study/study.h"

namespace hdpsim {

/// How far a study is.
struct Progress {
  std::size_t steps_done = 0;
  std::size_t steps = 0;  ///< Of all runs that have to be simulated.
  std::size_t runs_done = 0;
  std::size_t runs = 0;
  const RunInfo* finished = nullptr;  ///< The run that has just been finished, if one has.
};

struct RunnerOptions {
  std::size_t jobs = 1;                               ///< Threads; each has its own simulated cluster.
  const RunStore* store = nullptr;                    ///< Where finished runs are kept.
  bool resume = false;                                ///< Take finished runs from the store.
  TellDamage damaged = [](const Diagnostic&) {};      ///< Of those that are damaged and simulated again.
  std::string version{};                              ///< Runs of another version are not taken.
  std::function<bool()> stop = [] { return false; };  ///< Asked before every step, from any thread.
  std::function<void(const Progress&)> report = [](const Progress&) {};  ///< Called by one thread at a time.
  /// What a run that was simulated asked of the profile of its point. Called by one thread at a time.
  std::function<void(const PointSpec&, const Coverage&)> cover = [](const PointSpec&, const Coverage&) {};
  /// Who helps the threads, if anybody does. Outlives the study.
  RunWorkers* helpers = nullptr;
};

/// Simulates all runs of a study, step by step on as many threads as wanted. Results do not depend on their number,
/// nor on helpers. Returns nothing if it was stopped: what was finished until then is in the store. The first exception
/// of a thread is thrown on.
[[nodiscard]] std::optional<std::vector<Run>> run_study(const Study& study, const RunnerOptions& options);

}  // namespace hdpsim
