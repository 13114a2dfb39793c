#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "sim/run/known_steps.h"
#include "sim/run/process_mail.h"
#include "sim/run/run_queue.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Those who simulate the runs of a study. Several kinds may do so at the same time, because all take from one queue.
/// None of them can change a result.
class RunWorkers {
 public:
  virtual ~RunWorkers() = default;
  /// Works until the queue is over. Errors are reported to the queue.
  virtual void work(RunQueue& queue) = 0;
};

/// Sees steps as they were simulated. Called from any thread, by several at a time.
class StepWatcher {
 public:
  virtual ~StepWatcher() = default;
  virtual void see(const StepTask& task, const Program& program, const Timeline& timeline, const Machine& machine) = 0;
};

/// How threads simulate. What it points at may be null, and must outlive them.
struct ThreadOptions {
  std::size_t jobs = 1;
  KnownSteps* known = nullptr;     ///< Steps that are taken; those that are simulated are added.
  StepWatcher* watcher = nullptr;  ///< Sees the steps that are simulated.
};

/// Threads of this process, each with a simulated cluster of its own. The study must outlive them.
[[nodiscard]] std::unique_ptr<RunWorkers> make_thread_workers(const Study& study, const ThreadOptions& options);

/// The processes other than process 0, for use in process 0: each gets as many runs as it has threads, and another one
/// as soon as one is finished. The runs of a process that falls silent are given to others. They must be in
/// serve_study() with the same study, version of the program and number; work() reports an InputError to the queue if
/// one is not. `mail` and the study must outlive them.
[[nodiscard]] std::unique_ptr<RunWorkers> make_process_workers(ProcessMail& mail, const Study& study,
                                                               std::string_view version, int number = 0);

/// How serving a study has ended.
enum class Served { finished, stopped, left_alone };

/// The other end of make_process_workers(): simulates the runs that process 0 hands out, on `jobs` threads, until
/// process 0 says that the study is over (finished) or has left (left_alone), or `stop` returns true (stopped).
/// `number` tells the studies of one command apart. MachineError if process 0 is lost.
[[nodiscard]] Served serve_study(ProcessMail& mail, const Study& study, std::string_view version, std::size_t jobs,
                                 const std::function<bool()>& stop, int number = 0);

}  // namespace hdpsim
