#include "sim/app/study_processes.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "sim/app/command.h"
#include "sim/app/launch_watch.h"
#include "sim/app/signals.h"
#include "sim/app/study_parts.h"
#include "sim/app/terminal.h"
#include "sim/base/check.h"
#include "sim/run/ordered_work.h"

namespace hdpsim::app {
namespace {

using std::chrono::milliseconds;

}  // namespace

void add_sharing(Command command, SharingOptions& options) {
  add_count(command, "--jobs", options.jobs,
            "Threads, of each process where there are several (default: one a processor, of several processes one "
            "each); results do not depend on it");
  add_patience(command, options.patience,
               "With several processes: one that has not reported for this long is taken as dead, and others do its "
               "part (default: 30 s)");
}

StudyProcesses::StudyProcesses(const SharingOptions& options)
    : launch_(find_mpi_launch()), patience_(options.patience) {
  const bool is_alone = !launch_ || launch_->processes == 1;
  const std::size_t unsaid = is_alone ? one_a_processor() : 1;
  jobs_ = options.jobs == 0 ? unsaid : static_cast<std::size_t>(options.jobs);
  if (is_alone) return;
  {
    const LaunchWatch watch(*launch_, Together::start, patience_);
    mail_ = make_mpi_mail(patience_);
  }
  if (mail_->size() == launch_->processes) return;
  throw MachineError(fmt::format("{} processes have been started, but MPI joins {}{}{}", launch_->processes,
                                 mail_->size(), launch_->advice.empty() ? "" : ": ", launch_->advice));
}

StudyProcesses::~StudyProcesses() {
  if (mail_ == nullptr) return;
  const LaunchWatch watch(*launch_, Together::end, patience_);
  mail_.reset();
}

std::unique_ptr<RunWorkers> StudyProcesses::helpers(const Study& study, int number) const {
  if (mail_ == nullptr) return nullptr;
  return make_process_workers(*mail_, study, version, number);
}

bool StudyProcesses::serve(const Study& study, int number) const {
  return serve_study(*mail_, study, version, jobs_, is_stopped, number) == Served::finished;
}

bool StudyProcesses::is_reported(const InputError& error) const {
  if (mail_ == nullptr) return false;
  if (!is_first()) return first_has_left();
  complain(error.what());
  return true;
}

bool StudyProcesses::first_has_left() const {
  constexpr auto moment = std::chrono::seconds(10);  // on a busy machine process 0 is that late
  for (const auto begin = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() < begin + moment;) {
    if (mail_->is_closed()) return true;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return false;
}

}  // namespace hdpsim::app
