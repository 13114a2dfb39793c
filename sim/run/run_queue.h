#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/analysis/step_result.h"
#include "sim/cost/coverage.h"
#include "sim/run/step.h"
#include "sim/study/study.h"

namespace hdpsim {

/// One step of a run; runs are numbered as Study says.
struct StepTask {
  std::size_t run = 0;
  std::int64_t step = 0;
};

/// A run of which all steps are simulated, or a step is refused.
struct FinishedRun {
  std::size_t run = 0;
  RunResult result{};
  Coverage coverage{};  ///< What its steps asked of the profile.
};

/// The runs of a study that are to be simulated, shared by everyone who simulates them at the same time. Threads of
/// this process take steps, so that many of them can work on one run; other processes take whole runs. A run may be
/// simulated twice, as when a process that was given up comes back: the first result counts, and all results are the
/// same. Every function may be called from any thread.
class RunQueue {
 public:
  /// Gets the number of steps that have been simulated and, if they finish a run, that run, which it may move from.
  /// Called by one thread at a time.
  using Tell = std::function<void(std::int64_t steps, FinishedRun* finished)>;
  /// `stop` is asked before every step. All arguments must outlive the queue.
  RunQueue(const Study& study, std::function<bool()> stop, Tell tell);
  ~RunQueue();

  /// Adds a run to be simulated. A run that has been added before is not added again.
  void put(std::size_t run);
  /// Says that no more runs will be put.
  void close();
  /// Begins no more work.
  void end();
  /// The same after an error; rethrow() throws the first one.
  void fail(std::exception_ptr error);
  void rethrow() const;

  /// The next step for a thread of this process to simulate. Waits for one; empty if the queue is over.
  [[nodiscard]] std::optional<StepTask> next_step();
  /// Adds the result of a step that next_step() gave. `network` is that of the thread's world.
  void add(const StepTask& task, SimulatedStep step, const Coverage& coverage, const NetworkModel& network);

  /// Ends the run of a step that next_step() gave, because its plan was refused. Of several steps that are refused the
  /// first one counts, whatever their order here.
  void refuse(const StepTask& task, const Refusal& refusal);

  /// A whole run for another process; empty if there is none at the moment.
  [[nodiscard]] std::optional<std::size_t> next_run();
  /// Adds the result of a run that next_run() gave.
  void finish(FinishedRun finished);
  /// Returns the run of a lost process: whoever comes next takes it.
  void give_back(std::size_t run);
  /// Returns a run that another process could not simulate: threads of this process will, and report the error
  /// themselves.
  void keep(std::size_t run);

  /// The runs that were put and are not finished.
  [[nodiscard]] std::vector<std::size_t> unfinished() const;
  /// The number of runs that nobody has taken.
  [[nodiscard]] std::size_t waiting() const;
  /// Whether nothing is left to do, or no more work is to begin.
  [[nodiscard]] bool is_over() const;
  /// Whether all runs that were put are finished.
  [[nodiscard]] bool is_complete() const;

 private:
  class RunInProgress;
  enum class State { unknown, waiting, taken, done };
  [[nodiscard]] bool over() const { return ended_ || (closed_ && unfinished_ == 0); }
  [[nodiscard]] std::optional<std::size_t> pop(std::deque<std::size_t>& runs);
  bool open_next();
  [[nodiscard]] bool has_next_step() const;
  void after_step(const StepTask& task, RunInProgress& run);
  void tell_finished(FinishedRun finished, std::int64_t steps);
  [[nodiscard]] std::int64_t steps_of(std::size_t run) const;
  [[nodiscard]] const StudyPoint& point_of(std::size_t run) const;

  const Study& study_;
  const std::function<bool()> stop_;
  const Tell tell_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<State> states_;
  std::deque<std::size_t> waiting_;
  std::deque<std::size_t> kept_;                                // runs for threads of this process only
  std::map<std::size_t, std::unique_ptr<RunInProgress>> open_;  // runs that threads of this process simulate
  StepTask next_;                                               // in the run that was opened last
  std::size_t unfinished_ = 0;
  bool closed_ = false;
  bool ended_ = false;
  std::exception_ptr failure_;
};

}  // namespace hdpsim
