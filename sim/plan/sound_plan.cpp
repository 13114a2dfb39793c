#include "sim/plan/plan_file.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/first_problems.h"
#include "sim/document/document.h"
#include "sim/document/json_stream.h"
#include "sim/document/limits.h"
#include "sim/plan/plan_check.h"

namespace hdpsim {
namespace {

std::string_view key_of(PlanEntry::List list) {
  switch (list) {
    case PlanEntry::List::sequences:
      return "sequences";
    case PlanEntry::List::micro_batches:
      return "micro_batches";
    case PlanEntry::List::schedule:
      return "schedule";
    case PlanEntry::List::whole_plan:
      break;
  }
  return "";
}

// The positions of some entries of a plan file, by key of the list and index. A file can have millions of others.
using Positions = std::map<std::pair<std::string_view, std::size_t>, Position>;

void find(const Value& item, std::string_view key, std::size_t index, Positions& positions) {
  const auto wanted = positions.find({key, index});
  if (wanted != positions.end()) wanted->second = item.position;
}

void find_all(const std::string& file, const std::string& text, Positions& positions) {
  std::map<std::string_view, std::size_t> counts;
  const TakeItem take = [&](const Value&, std::string_view key, const Value& item) {
    const auto list =
        std::find_if(positions.begin(), positions.end(), [&](const auto& wanted) { return wanted.first.first == key; });
    if (list == positions.end()) return true;
    find(item, key, counts[list->first.first]++, positions);
    return true;
  };
  Diagnostics ignored;  // the text was read before
  if (parse_json(file, text, take, ignored)) return;
  const Value document = parse_document(file, text, ignored);  // YAML
  for (auto& [place, position] : positions) {
    const Value* list = document.find(place.first);
    if (list != nullptr && place.second < list->items.size()) position = list->items[place.second].position;
  }
}

}  // namespace

void report_unsound(const Plan& plan, const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  const std::vector<PlanProblem> problems = plan_problems(plan);
  if (problems.empty()) return;
  const Position whole{file, 0, 0};
  Positions positions;
  const std::size_t reported = std::min(problems.size(), FirstProblems::most);
  for (std::size_t i = 0; i < reported; ++i) {
    positions.try_emplace({key_of(problems[i].entry.list), problems[i].entry.index}, whole);
  }
  find_all(file, text, positions);
  FirstProblems unsound(diagnostics);
  Position last = whole;  // of those reported: problems are shown by their places
  for (const PlanProblem& problem : problems) {
    const auto found = positions.find({key_of(problem.entry.list), problem.entry.index});
    const Position& position = found == positions.end() ? whole : found->second;
    if (unsound.count() < FirstProblems::most && last.line < position.line) last = position;
    unsound.error(position, problem.text);
  }
  unsound.finish(last, "problems of this plan");
  if (text.size() <= largest_shown_bytes) diagnostics.add_source(file, text);
}

std::optional<PlanDocument> sound_document(const std::string& file, const std::string& text, Diagnostics& diagnostics) {
  Diagnostics found;
  std::optional<PlanDocument> document = read_plan_document(file, text, found);
  if (document) report_unsound(document->plan, file, text, found);
  if (!found.empty()) document.reset();
  diagnostics.append(found);
  return document;
}

std::optional<PlanDocument> load_sound_document(const std::string& path, Diagnostics& diagnostics) {
  const auto text = read_text_file(path, diagnostics);
  return text ? sound_document(path, *text, diagnostics) : std::nullopt;
}

std::optional<Plan> load_sound_plan(const std::string& path, Diagnostics& diagnostics) {
  std::optional<PlanDocument> document = load_sound_document(path, diagnostics);
  return document ? std::optional(std::move(document->plan)) : std::nullopt;
}

}  // namespace hdpsim
