#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/app/command_line.h"
#include "sim/app/launcher.h"
#include "sim/base/diagnostic.h"
#include "sim/base/units.h"
#include "sim/run/process_mail.h"
#include "sim/run/run_workers.h"
#include "sim/study/study.h"

namespace hdpsim::app {

/// How a command shares its studies among threads and processes.
struct SharingOptions {
  std::int64_t jobs = 0;                      ///< Threads of this process; 0: not given.
  Duration patience = Duration::seconds(30);  ///< Longest silence of a process before it counts as lost.
};

/// Adds `--jobs COUNT` and `--patience TIME`.
void add_sharing(Command command, SharingOptions& options);

/// This process and those that mpirun or srun has started with it: process 0 hands out the runs of studies and writes
/// the results, the others simulate. A process that was started alone has no others.
class StudyProcesses {
 public:
  /// Joins the processes. MachineError if they do not find each other; DeviceError if the program was built without
  /// MPI, but started as one of several. Ends this process if the others do not come (LaunchWatch), also in the
  /// destructor.
  explicit StudyProcesses(const SharingOptions& options);
  ~StudyProcesses();
  StudyProcesses(const StudyProcesses&) = delete;
  StudyProcesses& operator=(const StudyProcesses&) = delete;

  /// Whether this is process 0 of several, or the only one.
  [[nodiscard]] bool is_first() const { return mail_ == nullptr || mail_->rank() == 0; }
  /// Threads of this process.
  [[nodiscard]] std::size_t jobs() const { return jobs_; }
  /// For process 0: the helpers with a study, or null. `number` tells the studies of one command apart.
  [[nodiscard]] std::unique_ptr<RunWorkers> helpers(const Study& study, int number = 0) const;
  /// For the others: works for process 0 until the study is over. False if process 0 has left, or a signal asks to
  /// stop.
  [[nodiscard]] bool serve(const Study& study, int number = 0) const;
  /// The result of `work`, which reads the input. Throws what it throws; but of several processes that have met wrong
  /// input only process 0 reports it, here and now, as mpirun ends it as soon as another one has left. The InputError
  /// is then empty.
  template <class Work>
  [[nodiscard]] auto read(const Work& work) const {
    try {
      return work();
    } catch (const InputError& error) {
      if (is_reported(error)) throw InputError(Diagnostics());
      throw;
    }
  }

 private:
  // Reports wrong input if this is process 0. Whether process 0 has reported it, which the others wait for.
  [[nodiscard]] bool is_reported(const InputError& error) const;
  // Whether process 0 has left, or does so within a moment.
  [[nodiscard]] bool first_has_left() const;

  std::optional<Launch> launch_;
  Duration patience_;
  std::unique_ptr<ProcessMail> mail_;  // null if the process is alone
  std::size_t jobs_ = 1;
};

}  // namespace hdpsim::app
