#include "sim/app/resumable.h"

#include <fmt/format.h>

#include <filesystem>

namespace hdpsim::app {

TellDamage damage_notes(const std::string& remedy) {
  constexpr int most_told = 20;
  return [remedy, told = 0](const Diagnostic& part) mutable {
    if (++told <= most_told) note(fmt::format("{}; it is {}", damage_text(part), remedy));
    if (told == most_told + 1) note(fmt::format("further damaged parts are not named; they are {}, too", remedy));
  };
}

void require_folder(const ResumeOptions& options) {
  if (options.resume && options.out.empty()) {
    throw InputError("--resume needs the folder of --out, where finished work is kept");
  }
}

int stopped_before(const ResumeOptions& options, std::string_view subject, std::string_view aim) {
  note(fmt::format("{}: stopped before {}{}", subject, aim,
                   options.out.empty() ? "" : fmt::format("; --resume goes on with what is kept in {}", options.out)));
  return stopped_exit();
}

Resumable::Resumable(const ResumeOptions& options, const Session& session, ResumableFiles files) : options_(options) {
  if (!options_.out.empty()) {
    files.results.emplace_back(journal_name);
    folder_.emplace(options_.out,
                    OutputUse{files.kind, session.command_line, std::move(files.results), options_.resume},
                    &session.inputs);
    (void)folder_->file(journal_name);
    for (const std::string& name : files.growing) (void)folder_->file(name);
  }
  catch_stop_signals();
}

JournalFolder Resumable::kept() const {
  return {options_.out, options_.resume, damage_notes("simulated again")};
}

void Resumable::refuse(const MachineError& error) const {
  std::error_code ignored;
  const std::filesystem::path journal = std::filesystem::path(options_.out) / journal_name;
  if (options_.out.empty() || std::filesystem::is_empty(journal, ignored) || ignored) throw;
  throw MachineError(std::string(error.what()) + "; --resume goes on with what is kept in " + options_.out);
}

}  // namespace hdpsim::app
