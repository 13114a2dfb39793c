#include "sim/app/study_parts.h"

#include <chrono>
#include <optional>
#include <utility>

#include "kernels/transport/mailbox.h"
#include "sim/app/command.h"

namespace hdpsim::app {
namespace {

/// Letters over MPI.
class MpiMail final : public ProcessMail {
 public:
  explicit MpiMail(std::chrono::milliseconds patience) : mailbox_(kernels::make_mpi_mailbox(patience)) {}

  [[nodiscard]] int rank() const override { return mailbox_->rank(); }
  [[nodiscard]] int size() const override { return mailbox_->size(); }
  void post(int to, std::string text) override { mailbox_->post(to, std::move(text)); }
  [[nodiscard]] std::optional<Letter> take(std::chrono::milliseconds wait) override {
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

std::unique_ptr<ProcessMail> make_mpi_mail(Duration patience) {
  return std::make_unique<MpiMail>(std::chrono::milliseconds(patience.picoseconds() / 1'000'000'000));
}

bool compare_with_baselines(const Study& study, const StudySource& source, Catalog& catalog, const BaselineRun& run,
                            std::vector<Run>& runs) {
  Diagnostics none;
  const Value root = tuning_root(load_document(source.file, none), source.overrides, source.without);
  return compare_with_tuned(study, root, catalog, run, runs);
}

std::shared_ptr<ShownSteps> watcher_for_report(const Study& study) {
  return study.output.html ? std::make_shared<ShownSteps>() : nullptr;
}

bool write_study_report(OutputFolder& folder, const Study& study, const std::vector<Run>& runs,
                        const StudyReportOptions& options) {
  return write_report(folder, study, runs, version, options);
}

}  // namespace hdpsim::app
