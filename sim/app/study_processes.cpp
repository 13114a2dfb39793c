#include "sim/app/study_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "kernels/transport/mailbox.h"
#include "sim/app/command.h"
#include "sim/app/launch_watch.h"
#include "sim/app/signals.h"
#include "sim/app/terminal.h"
#include "sim/base/check.h"

namespace hdpsim::app {
namespace {

using std::chrono::milliseconds;

/// Letters over MPI.
class MpiMail final : public ProcessMail {
 public:
  explicit MpiMail(Duration patience)
      : mailbox_(kernels::make_mpi_mailbox(milliseconds(patience.picoseconds() / 1'000'000'000))) {}

  [[nodiscard]] int rank() const override { return mailbox_->rank(); }
  [[nodiscard]] int size() const override { return mailbox_->size(); }
  void post(int to, std::string text) override { mailbox_->post(to, std::move(text)); }
  [[nodiscard]] std::optional<Letter> take(milliseconds wait) override {
    std::optional<kernels::Mail> mail = mailbox_->take(wait);
    if (!mail) return std::nullopt;
    return Letter{mail->from, std::move(mail->text)};
  }
  [[nodiscard]] bool is_silent(int process) const override { return mailbox_->is_silent(process); }
  [[nodiscard]] bool is_closed() const override { return mailbox_->is_closed(); }

 private:
  std::unique_ptr<kernels::Mailbox> mailbox_;
};

}  // namespace

void add_sharing(Command command, SharingOptions& options) {
  add_count(command, "--jobs", options.jobs,
            "Threads, of each process where there are several (default: one a processor, of several processes one "
            "each); results do not depend on it");
  add_patience(command, options.patience,
               "Of several processes: when nothing is heard of one for so long, others do its part (default: 30 s)");
}

StudyProcesses::StudyProcesses(const SharingOptions& options)
    : launch_(find_mpi_launch()), patience_(options.patience) {
  const bool is_alone = !launch_ || launch_->processes == 1;
  const std::size_t unsaid = is_alone ? std::max(1U, std::thread::hardware_concurrency()) : 1;
  jobs_ = options.jobs == 0 ? unsaid : static_cast<std::size_t>(options.jobs);
  if (is_alone) return;
  {
    const LaunchWatch watch(*launch_, Together::start, patience_);
    mail_ = std::make_unique<MpiMail>(patience_);
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
  return serve_study(
             *mail_, study, version, jobs_, [] { return stop_signal() != 0; }, number) == Served::finished;
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
