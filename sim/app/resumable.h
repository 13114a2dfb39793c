#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/app/command.h"
#include "sim/app/progress.h"
#include "sim/app/signals.h"
#include "sim/document/journal.h"

namespace hdpsim::app {

/// Prints notes about damaged parts of kept results, the first of them one by one. `remedy` says what happens to each:
/// "simulated again".
[[nodiscard]] TellDamage damage_notes(const std::string& remedy);

/// Options of a command that keeps what it has finished in a folder, and continues from there.
struct ResumeOptions {
  std::string out;  ///< Empty: nothing is written.
  bool resume = false;
};
/// InputError if there is nothing to resume from.
void require_folder(const ResumeOptions& options);

/// Says that the work on `subject` was stopped before `aim`, and what continues it. Returns the exit code.
int stopped_before(const ResumeOptions& options, std::string_view subject, std::string_view aim);

/// What such a command writes into its folder besides the journal.
struct ResumableFiles {
  std::string kind;                    ///< OutputUse::kind.
  std::vector<std::string> results;    ///< OutputUse::names.
  std::vector<std::string> growing{};  ///< Files that grow while it works.
};

/// An execution of such a command: its claim on the folder, what it keeps there, and its progress. From here on the
/// first signal only asks to stop (is_stopped).
class Resumable {
 public:
  /// InputError and MachineError as for OutputFolder.
  Resumable(const ResumeOptions& options, const Session& session, ResumableFiles files);

  /// Where the journal is; damaged records are noted.
  [[nodiscard]] JournalFolder kept() const;
  /// Null without a folder.
  [[nodiscard]] OutputFolder* folder() { return folder_ ? &*folder_ : nullptr; }

  /// The result of `work`, which is given a display of its progress. If the machine refuses, the MachineError says that
  /// --resume continues, where it can.
  template <class Work>
  auto run(const Work& work) const {
    ProgressDisplay display;
    try {
      return work(display);
    } catch (const MachineError& error) {
      refuse(error);
    }
  }

  /// Removes what earlier executions have left in the folder, if there is one, writes the results by `write(folder)`,
  /// and says what was removed and not written again.
  template <class Write>
  void write(const Write& write) {
    if (!folder_) return;
    folder_->remove_earlier();
    write(*folder_);
    tell_removed(*folder_);
  }

 private:
  [[noreturn]] void refuse(const MachineError& error) const;

  ResumeOptions options_;
  std::optional<OutputFolder> folder_;
};

}  // namespace hdpsim::app
