#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "sim/run/process_mail.h"
#include "sim/run/run_queue.h"
#include "sim/study/study.h"

namespace hdpsim {

/// Who simulates the runs of a study: several kinds may do so side by side, as all take from one queue. None of them
/// can change a result.
class RunWorkers {
 public:
  virtual ~RunWorkers() = default;
  /// Works until the queue is over. What goes wrong, the queue is told.
  virtual void work(RunQueue& queue) = 0;
};

/// Threads of this process, each with a simulated cluster of its own. The study outlives them.
[[nodiscard]] std::unique_ptr<RunWorkers> make_thread_workers(const Study& study, std::size_t jobs);

/// The processes beyond process 0, which this one is: each gets as many runs as it has threads, and another as soon as
/// one is finished. The runs of a process that falls silent are given to others. They must be in serve_study() with
/// the same study, version of the program and number: work() tells the queue of an InputError if one has not. `mail` and the
/// study outlive them.
[[nodiscard]] std::unique_ptr<RunWorkers> make_process_workers(ProcessMail& mail, const Study& study,
                                                               std::string_view version, int number = 0);

/// How serving a study has ended.
enum class Served { finished, stopped, left_alone };

/// The other end of make_process_workers(): simulates the runs that process 0 hands out, on `jobs` threads, until it
/// says that the study is over (finished) or has left, or `stop` says so (stopped). `number` tells the studies of one
/// command apart. MachineError if process 0 is lost.
[[nodiscard]] Served serve_study(ProcessMail& mail, const Study& study, std::string_view version, std::size_t jobs,
                                 const std::function<bool()>& stop, int number = 0);

}  // namespace hdpsim
