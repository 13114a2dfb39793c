#include "sim/study/problems.h"

#include <filesystem>
#include <utility>

#include "sim/document/document.h"

namespace hdpsim {

void Problems::add(const Diagnostics& found, const Position& where) {
  const bool as_a_whole = !counted_ && found.count() > Diagnostics::most_kept;
  if (as_a_whole) diagnostics_.append(found);
  counted_ = counted_ || as_a_whole;
  for (Diagnostic& problem : found.sorted()) {
    if (problem.position.file.empty()) problem.position = where;
    const Position& at = problem.position;
    const bool is_new = seen_.emplace(at.file, at.line, at.column, problem.message).second;
    if (is_new && !as_a_whole) diagnostics_.add(std::move(problem));
  }
}

void Problems::throw_if_any(const std::map<std::string, std::string>& texts) const {
  if (empty()) return;
  Diagnostics complete = diagnostics_;
  for (const auto& [name, text] : texts) complete.add_source(name, text);
  std::set<std::string> files;
  for (const auto& [file, line, column, message] : seen_) {
    if (line > 0) files.insert(file);
  }
  Diagnostics ignored;
  for (const std::string& file : files) {
    if (!std::filesystem::is_regular_file(file)) continue;
    if (const auto text = read_text_file(file, ignored)) complete.add_source(file, *text);
  }
  complete.throw_if_any();
}

}  // namespace hdpsim
