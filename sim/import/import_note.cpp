#include "sim/import/import_note.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "sim/base/printable.h"

namespace hdpsim {
namespace {

using NoteKind = ImportNote::Kind;

constexpr std::size_t widest_line = 110;

constexpr std::array<std::pair<NoteKind, std::string_view>, 4> headings = {
    {{NoteKind::unsaid, "not modelled, and what that likely means for the run:"},
     {NoteKind::unknown, "not known here, and left out:"},
     {NoteKind::repeated, "stated more than once, and the last one counts:"},
     {NoteKind::assumed, "assumed:"}}};

std::string place(const Position& position) {
  return position.line == 0 ? "" : fmt::format("{}:{}:{}: ", position.file, position.line, position.column);
}

// Names one after the other, in lines that are not too long.
std::string folded(const std::set<std::string>& names) {
  std::string text;
  std::string line = " ";
  for (const std::string& name : names) {
    if (line.size() + name.size() + 2 > widest_line) text += std::exchange(line, " ") + '\n';
    line += ' ' + name;
  }
  return text + line + '\n';
}

}  // namespace

std::string text_of(const ImportNotes& notes) {
  std::string text;
  for (const auto& [kind, heading] : headings) {
    std::string lines;
    for (const ImportNote& note : notes) {
      if (note.kind == kind) lines += fmt::format("  {}{}\n", place(note.position), printable(note.text));
    }
    if (!lines.empty()) text += fmt::format("{}\n{}", heading, lines);
  }
  std::set<std::string> ignored;
  for (const ImportNote& note : notes) {
    if (note.kind == NoteKind::ignored) ignored.insert(printable(note.text));
  }
  if (!ignored.empty()) text += "without effect on the time and the memory of a step:\n" + folded(ignored);
  return text;
}

}  // namespace hdpsim
