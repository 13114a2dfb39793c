#include "sim/import/imported_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/document/document.h"

namespace hdpsim {
namespace {

bool is_behind(const Position& a, const Position& b) {
  return std::tie(a.line, a.column) > std::tie(b.line, b.column);
}

/// The key of a document that holds a place: the last that begins in front of it.
class KeyAt {
 public:
  explicit KeyAt(const Position& place) : place_(place) {}

  std::string in(const Value& value) {
    walk(value, "");
    return path_;
  }

 private:
  void walk(const Value& value, const std::string& path) {
    for (const Value::Entry& entry : value.entries) {
      take(entry.position, path.empty() ? entry.key : fmt::format("{}.{}", path, entry.key));
      walk(entry.value, path.empty() ? entry.key : fmt::format("{}.{}", path, entry.key));
    }
    for (const Value& item : value.items) walk(item, path);
  }

  void take(const Position& position, std::string path) {
    if (is_behind(position, place_) || !is_behind(position, found_)) return;
    found_ = position;
    path_ = std::move(path);
  }

  Position place_;
  Position found_;
  std::string path_;
};

// The place of a key, or of the nearest one that holds it; null if no argument states them.
const Position* place_of(const std::map<std::string, Position>& places, std::string path) {
  while (true) {
    const auto found = places.find(path);
    if (found != places.end()) return &found->second;
    const std::size_t dot = path.find_last_of('.');
    if (dot == std::string::npos) return nullptr;
    path.resize(dot);
  }
}

}  // namespace

Diagnostics at_source(const ImportedStudy& study, const std::string& name, const Diagnostics& problems) {
  const auto all = problems.sorted();
  const auto is_of_study = [&](const Diagnostic& problem) { return problem.position.file == name; };
  if (std::none_of(all.begin(), all.end(), is_of_study)) return problems;
  Diagnostics moved;
  for (const auto& [file, text] : study.sources) moved.add_source(file, text);
  Diagnostics none;
  const Value document = parse_document(name, study.text, none);
  for (Diagnostic problem : all) {
    if (is_of_study(problem)) {
      const std::string path = KeyAt(problem.position).in(document);
      const Position* place = place_of(study.places, path);
      problem.position = place == nullptr ? Position{study.file, 0, 0} : *place;
      if (!path.empty()) problem.message += fmt::format(" (the study's {})", path);
    }
    moved.add(std::move(problem));
  }
  return moved;
}

}  // namespace hdpsim
