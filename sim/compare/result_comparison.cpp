#include "sim/compare/result_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>

#include "sim/analysis/glossary.h"
#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/document/json.h"
#include "sim/report/page/table_page.h"
#include "sim/results/figure_table.h"
#include "sim/results/result_files.h"

namespace hdpsim {
namespace {

namespace fs = std::filesystem;

/// A figure of a run that is compared: how result.json and CSV call it.
struct ComparedFigure {
  std::string column;
  std::string path;
  std::string unit;
  std::string sentence;
};

const std::vector<ComparedFigure>& compared_figures() {
  static const std::vector<ComparedFigure> figures = [] {
    std::vector<ComparedFigure> all = {
        {"step_time_s", "step_time_s.mean", "s", "mean of the step times"},
        {"tokens_per_s", "tokens_per_s", "tokens/s", "tokens of all steps over their time"},
        {"mfu", "mfu", "share", "model FLOPs utilization, as in `runs.csv`"},
        {"device_peak_gb", "memory_gb.device_peak", "GB", "memory of the fullest device at its fullest moment"}};
    for (const Activity activity : all_activities) {
      const std::string name(activity_name(activity));
      all.push_back({name + "_s", "breakdown_s." + name, "s", std::string(activity_meaning(activity))});
    }
    return all;
  }();
  return figures;
}
constexpr std::size_t first_activity = 4;  // of these figures

// The value at a dotted path; null if it is not there.
const Json* found_in(const Json* object, std::string_view path) {
  while (object != nullptr && !path.empty()) {
    const std::size_t dot = path.find('.');
    const auto next = object->is_object() ? object->find(std::string(path.substr(0, dot))) : object->end();
    object = object->is_object() && next != object->end() ? &*next : nullptr;
    path = dot == std::string_view::npos ? "" : path.substr(dot + 1);
  }
  return object;
}

std::optional<double> number_in(const Json* run, std::string_view path) {
  const Json* found = found_in(run, path);
  return found != nullptr && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::string text_in(const Json* run, std::string_view path) {
  const Json* found = found_in(run, path);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> change_of(const ComparedRun& row, const ComparedFigure& figure) {
  const auto here = number_in(row.run, figure.path);
  const auto first = number_in(row.first, figure.path);
  return here && first ? std::optional(*here - *first) : std::nullopt;
}

// "64Ki", "github", "[1, 2]".
std::string line_of(const Json& value) {
  if (value.is_number_integer()) return count_text(value.get<std::int64_t>());
  return value.is_string() ? value.get<std::string>() : json_line(value);
}

std::string point_text_of(const Json& run) {
  std::vector<std::string> parts;
  for (const auto& [path, value] : run.at("point").items()) {
    parts.push_back(fmt::format("{} {}", path, line_of(value)));
  }
  return joined(parts, ", ");
}

// What is wrong with the content of a result; empty if nothing is.
std::string problem_of(const Json& content) {
  if (content.is_discarded()) return "this is no JSON";
  if (text_in(&content, "schema") != result_schema_name) {
    const std::string schema = text_in(&content, "schema");
    return fmt::format("{}, and {} is read", schema.empty() ? "this has no schema" : "this has the schema " + schema,
                       result_schema_name);
  }
  const Json* runs = found_in(&content, "runs");
  const Json* study = found_in(&content, "study");
  if (runs == nullptr || !runs->is_array() || runs->empty()) return "this result has no runs";
  if (study == nullptr || !study->is_object()) return "this result has no study";
  for (std::size_t i = 0; i < runs->size(); ++i) {
    const Json* point = found_in(&runs->at(i), "point");
    if (point == nullptr || !point->is_object()) return fmt::format("run {} has no point", i);
    if (text_in(&runs->at(i), "plan").empty()) return fmt::format("run {} has no plan", i);
  }
  return "";
}

void add_changes(const std::string& path, const Json* first, const Json* here, std::vector<ChangedKey>& changes);

// The members of two objects, or the items of two lists of one length, those of the first in front.
void add_member_changes(const std::string& path, const Json& first, const Json& here,
                        std::vector<ChangedKey>& changes) {
  const auto below = [&](const std::string& name) { return path.empty() ? name : path + "." + name; };
  if (first.is_array()) {
    for (std::size_t i = 0; i < first.size(); ++i) add_changes(below(std::to_string(i)), &first[i], &here[i], changes);
    return;
  }
  for (const auto& [name, value] : first.items()) {
    const auto other = here.find(name);
    add_changes(below(name), &value, other == here.end() ? nullptr : &*other, changes);
  }
  for (const auto& [name, value] : here.items()) {
    if (!first.contains(name)) add_changes(below(name), nullptr, &value, changes);
  }
}

void add_changes(const std::string& path, const Json* first, const Json* here, std::vector<ChangedKey>& changes) {
  if (first != nullptr && here != nullptr) {
    if (*first == *here) return;
    const bool objects = first->is_object() && here->is_object();
    const bool lists = first->is_array() && here->is_array() && first->size() == here->size();
    if (objects || lists) return add_member_changes(path, *first, *here, changes);
  }
  changes.push_back({path, first == nullptr ? "" : line_of(*first), here == nullptr ? "" : line_of(*here)});
}

const FigureTable<ComparedRun>& compared_run_figures() {
  static const FigureTable<ComparedRun> figures([](FigureTable<ComparedRun>& all) {
    all.add({"result", "result", "", "the folder, as it was named"},
            [](const ComparedRun& row) { return row.result->name; });
    all.add({"point", "point", "", "the swept values of the run"}, at(&ComparedRun::point));
    all.add({"plan", "plan", "", "the plan"}, at(&ComparedRun::plan));
    all.add({"refusal", "refusal", "", "why the run has no figures"},
            [](const ComparedRun& row) { return text_in(row.run, "refusal"); });
    for (const ComparedFigure& figure : compared_figures()) {
      all.add({figure.column, figure.column, figure.unit, figure.sentence},
              [&figure](const ComparedRun& row) { return number_in(row.run, figure.path); });
      all.add({figure.column + "_change", figure.column + "_change", figure.unit,
               fmt::format("`{}` less that of the first result; empty where one of the two has none", figure.column)},
              [&figure](const ComparedRun& row) { return change_of(row, figure); });
    }
  });
  return figures;
}

std::vector<ComparedRun> rows_with_runs(const std::vector<WrittenResult>& results) {
  std::vector<ComparedRun> rows = compared_runs(results);
  std::erase_if(rows, [](const ComparedRun& row) { return row.run == nullptr; });
  return rows;
}

// The parts that changed, the largest changes first: "cp_comm -4.20 s, linear +1.02 s".
std::string changed_parts(const ComparedRun& row) {
  constexpr std::size_t most = 4;
  std::vector<std::pair<double, std::string>> parts;
  for (std::size_t i = first_activity; i < compared_figures().size(); ++i) {
    const double change = change_of(row, compared_figures()[i]).value_or(0);
    if (change != 0) parts.emplace_back(change, activity_name(all_activities.at(i - first_activity)));
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(most, parts.size()); ++i) {
    const auto& [change, name] = parts[i];
    texts.push_back(fmt::format("{} {}{}", name, change > 0 ? "+" : "-", seconds_text(std::abs(change))));
  }
  if (parts.size() > most) texts.push_back(fmt::format("{} more", parts.size() - most));
  return joined(texts, ", ");
}

std::string percent_change(const ComparedRun& row, const ComparedFigure& figure) {
  const auto change = change_of(row, figure);
  const double first = number_in(row.first, figure.path).value_or(0);
  if (!change || row.run == row.first || first == 0) return "";
  return fmt::format("{:+.2f}%", 100 * *change / first);
}

TextRow text_row(const ComparedRun& row) {
  const auto& figures = compared_figures();
  const auto number = [&](std::size_t index) { return number_in(row.run, figures[index].path); };
  TextRow cells = {row.result->name, "-", "", "-", "", "-", "-", ""};
  if (const std::string refusal = text_in(row.run, "refusal"); row.run == nullptr || !refusal.empty()) {
    cells.back() = row.run == nullptr ? "has no such run" : fmt::format("refused: {}", refusal);
    return cells;
  }
  if (const auto seconds = number(0)) cells[1] = seconds_text(*seconds);
  cells[2] = percent_change(row, figures[0]);
  if (const auto rate = number(1)) cells[3] = short_number(*rate);
  cells[4] = percent_change(row, figures[1]);
  if (const auto mfu = number(2)) cells[5] = fmt::format("{:.1f}%", 100 * *mfu);
  if (const auto peak = number(3)) cells[6] = fmt::format("{:.1f}", *peak);
  if (row.run == row.first || row.first == nullptr) return cells;
  const std::string parts = changed_parts(row);
  cells[7] = *row.run == *row.first ? "the same" : parts;
  if (const Json* fits = found_in(row.run, "memory_gb.fits"); fits != nullptr && *fits == false) {
    cells[7] = fmt::format("does not fit{}{}", parts.empty() ? "" : "; ", parts);
  }
  return cells;
}

std::string title_of_block(const ComparedRun& row) {
  return row.point.empty() ? row.plan : fmt::format("{}, {}", row.point, row.plan);
}

// "keys that four states otherwise than tiny: mesh.tp 2 -> 4"
std::string key_note(const WrittenResult& first, const WrittenResult& other) {
  const auto stated = [](const std::string& text) { return text.empty() ? std::string("not stated") : text; };
  std::vector<std::string> texts;
  for (const ChangedKey& key : changed_keys(first, other)) {
    texts.push_back(fmt::format("{}: {} -> {}", key.path, stated(key.first), stated(key.here)));
  }
  const std::string before = text_in(&first.content, "hdpsim");
  const std::string after = text_in(&other.content, "hdpsim");
  if (before != after) texts.push_back(fmt::format("made by hdpsim {} -> {}", before, after));
  return texts.empty() ? fmt::format("from {} to {} no key of the study differs", first.name, other.name)
                       : fmt::format("from {} to {}: {}", first.name, other.name, joined(texts, "; "));
}

// By how much steps change, over the runs that both have.
std::string lead_of_change(const std::vector<ComparedRun>& rows, const WrittenResult& first,
                           const WrittenResult& other) {
  std::vector<double> changes;
  for (const ComparedRun& row : rows) {
    const auto here = number_in(row.run, compared_figures()[0].path);
    const auto before = number_in(row.first, compared_figures()[0].path);
    if (row.result == &other && here && before && *before > 0) changes.push_back(*here / *before - 1);
  }
  if (changes.empty()) return fmt::format("{} and {} have no run of the same plan and point.", first.name, other.name);
  const auto [least, most] = std::minmax_element(changes.begin(), changes.end());
  const std::string range = *least == *most ? fmt::format("{:+.2f}%", 100 * *most)
                                            : fmt::format("{:+.2f}% to {:+.2f}%", 100 * *least, 100 * *most);
  return fmt::format("From {} to {} step times change by {}.", first.name, other.name, range);
}

/// What a table and a page say.
TablePage page_of_results(const std::vector<WrittenResult>& results) {
  const std::vector<ComparedRun> rows = compared_runs(results);
  TablePage page;
  page.title = "Results of studies";
  for (std::size_t i = 1; i < results.size(); ++i) {
    if (i > 1) page.lead += " ";
    page.lead += lead_of_change(rows, results[0], results[i]);
    page.notes.push_back(key_note(results[0], results[i]));
  }
  ShownTable table{
      "The same plan at the same point",
      {"result", "step time", "change", "tokens/s", "change", "MFU", "device GB", "change of where the time goes"},
      {}};
  std::vector<std::vector<std::string>> alone(results.size());
  for (std::size_t block = 0; block < rows.size(); block += results.size()) {
    const std::span<const ComparedRun> all(&rows[block], results.size());
    const auto has_run = [](const ComparedRun& row) { return row.run != nullptr; };
    if (std::count_if(all.begin(), all.end(), has_run) == 1) {
      const auto owner = std::find_if(all.begin(), all.end(), has_run) - all.begin();
      alone[static_cast<std::size_t>(owner)].push_back(title_of_block(all[0]));
      continue;
    }
    auto& group = table.groups.emplace_back(ShownTable::Group{title_of_block(all[0]), {}});
    for (const ComparedRun& row : all) group.rows.push_back(text_row(row));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!alone[i].empty()) page.notes.push_back(fmt::format("only in {}: {}", results[i].name, joined(alone[i], "; ")));
  }
  if (!table.groups.empty()) page.tables = {std::move(table)};
  return page;
}

}  // namespace

bool holds_result(const std::string& path) {
  const fs::path given = path;
  return given.filename() == result_file ? fs::is_regular_file(given) : fs::is_regular_file(given / result_file);
}

std::vector<WrittenResult> read_results(const std::vector<std::string>& paths) {
  std::vector<WrittenResult> results;
  Diagnostics problems;
  for (const std::string& path : paths) {
    const std::string file = fs::is_directory(path) ? (fs::path(path) / result_file).string() : path;
    const auto text = read_text_file(file, problems);
    if (!text) continue;
    results.push_back({path, parsed_json(*text)});
    const std::string problem = problem_of(results.back().content);
    if (!problem.empty()) problems.error({file, 0, 0}, problem, "hdpsim study STUDY --out FOLDER writes results");
  }
  problems.throw_if_any();
  return results;
}

std::vector<ComparedRun> compared_runs(const std::vector<WrittenResult>& results) {
  const auto key_of = [](const Json& run) { return json_line(run.at("point")) + run.at("plan").get<std::string>(); };
  std::vector<std::map<std::string, const Json*>> runs_of;
  for (const WrittenResult& result : results) {
    auto& runs = runs_of.emplace_back();
    for (const Json& run : result.content.at("runs")) runs.try_emplace(key_of(run), &run);
  }
  std::vector<ComparedRun> rows;
  std::set<std::string> done;
  for (const WrittenResult& owner : results) {
    for (const Json& run : owner.content.at("runs")) {
      const std::string key = key_of(run);
      if (!done.insert(key).second) continue;
      const auto run_in = [&](std::size_t result) {
        const auto found = runs_of[result].find(key);
        return found == runs_of[result].end() ? nullptr : found->second;
      };
      for (std::size_t i = 0; i < results.size(); ++i) {
        rows.push_back({&results[i], run_in(i), run_in(0), point_text_of(run), run.at("plan").get<std::string>()});
      }
    }
  }
  return rows;
}

std::vector<ChangedKey> changed_keys(const WrittenResult& first, const WrittenResult& other) {
  std::vector<ChangedKey> changes;
  add_changes("", &first.content.at("study"), &other.content.at("study"), changes);
  return changes;
}

std::string results_table(const std::vector<WrittenResult>& results) {
  const TablePage page = page_of_results(results);
  std::string text = fmt::format("{}\n{}\n", page.lead, joined(page.notes, "\n"));
  for (const ShownTable& table : page.tables) text += fmt::format("\n{}", table_text(table));
  return text;
}

std::string results_page(const std::vector<WrittenResult>& results) {
  return table_page(page_of_results(results));
}

void write_compared_runs(const std::vector<WrittenResult>& results, TableSink& sink) {
  compared_run_figures().write(rows_with_runs(results), sink);
}

std::string results_csv(const std::vector<WrittenResult>& results) {
  return compared_run_figures().csv(rows_with_runs(results));
}

std::string results_json(const std::vector<WrittenResult>& results) {
  Json of_results = Json::array();
  for (const WrittenResult& result : results) {
    Json changes = Json::array();
    for (const ChangedKey& key : changed_keys(results[0], result)) {
      changes.push_back({{"key", key.path}, {"first", key.first}, {"here", key.here}});
    }
    of_results.push_back({{"result", result.name},
                          {"hdpsim", text_in(&result.content, "hdpsim")},
                          {"study", text_in(&result.content, "study.name")},
                          {"changed_keys", changes}});
  }
  return json_page({{"schema", "hdpsim.result_comparison/1"},
                    {"results", of_results},
                    {"runs", compared_run_figures().json_list(rows_with_runs(results))}});
}

FigureSection result_comparison_figures() {
  return {.title = "A comparison of results",
          .note =
              "Rows are runs: those of the same plan and point stand one below the other, a row for each result. "
              "Places are those below a run: `runs[].mfu`.",
          .json = "results.json",
          .files = {{"results.csv", compared_run_figures().texts()}}};
}

}  // namespace hdpsim
