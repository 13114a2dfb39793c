#include "sim/validate/impl/set_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/text.h"
#include "sim/study/override.h"

namespace hdpsim {
namespace {

/// A column of jobs of sequences of one length, and where a study has what it says.
struct JobColumn {
  std::string_view name;
  std::string_view path;  ///< Empty: several values of a study follow from it, with those of other columns.
  bool of_plan;
};

constexpr auto job_columns = std::to_array<JobColumn>({{"model", "model.preset", false},
                                                       {"sequence", "data.lengths.fixed", false},
                                                       {"global_batch", "", false},
                                                       {"tp", "mesh.tp", true},
                                                       {"pp", "mesh.pp", true},
                                                       {"dp", "", true},
                                                       {"cp", "", true},
                                                       {"micro_batch", "", true},
                                                       {"virtual_stages", "mesh.virtual_stages", true},
                                                       {"recompute", "training.recompute", true},
                                                       {"sequence_parallel", "training.sequence_parallel", true},
                                                       {"gpus_per_node", "cluster.node.gpus", true}});
/// What frameworks call some of them.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> short_names = {
    {{"mbs", "micro_batch"}, {"gbs", "global_batch"}, {"vpp", "virtual_stages"}, {"seq", "sequence"}}};

std::vector<std::string_view> names_of(bool of_plan) {
  std::vector<std::string_view> names;
  for (const JobColumn& column : job_columns) {
    if (column.of_plan == of_plan) names.push_back(column.name);
  }
  return names;
}

std::vector<std::string> known_columns() {
  std::vector<std::string> known = quantity_names();
  known.emplace_back("case");
  for (const bool of_plan : {true, false}) {
    for (const std::string_view name : names_of(of_plan)) known.emplace_back(name);
  }
  return known;
}

// Whether a value of the study says how a job is spread: the mesh, the plans, and what short columns say.
bool is_of_plan(std::string_view path) {
  const auto spreads = [&](const JobColumn& column) { return column.of_plan && column.path == path; };
  return is_at_or_below(path, "mesh") || is_at_or_below(path, "training") || is_at_or_below(path, "plans") ||
         std::any_of(job_columns.begin(), job_columns.end(), spreads);
}

}  // namespace

Column column_of(const Value& title, Diagnostics& diagnostics) {
  Column column{title.text, title.position, quantity_of(title.text), {}, {}, false};
  if (column.figure) {
    const auto space = title.text.find(' ');
    if (space != std::string::npos) column.plan = title.text.substr(space + 1);
    return column;
  }
  for (const auto& [word, name] : short_names) {
    if (word == title.text) column.name = name;
  }
  for (const JobColumn& known : job_columns) {
    if (known.name != column.name) continue;
    column.path = known.path;
    column.of_plan = known.of_plan;
    return column;
  }
  if (column.name == "case") return column;
  if (column.name.find('.') != std::string::npos) {
    column.path = present_path(column.name);
    column.of_plan = is_of_plan(column.path);
    return column;
  }
  const bool has_other_separator = title.text.find_first_of(";\t|") != std::string::npos;
  diagnostics.error(title.position, fmt::format("there is no column '{}'", title.text),
                    has_other_separator ? "separate columns by commas" : suggestion(title.text, known_columns()));
  return column;
}

std::vector<std::string_view> job_column_names() {
  return names_of(false);
}

std::vector<std::string_view> plan_column_names() {
  return names_of(true);
}

bool have_all_cells(const Value& columns, const std::vector<Value>& rows, std::string_view what,
                    Diagnostics& diagnostics) {
  const std::size_t count = columns.items.size();
  const auto is_whole = [&](const Value& row) { return row.is_sequence() && row.items.size() == count; };
  if (std::all_of(rows.begin(), rows.end(), is_whole)) return true;
  const std::size_t first = rows.front().items.size();
  const auto is_as_first = [&](const Value& row) { return row.is_sequence() && row.items.size() == first; };
  if (rows.size() > 1 && first != count && std::all_of(rows.begin(), rows.end(), is_as_first)) {
    diagnostics.error(
        columns.position,
        fmt::format("{} columns are named here, and each of the {} {}s has {} cells", count, rows.size(), what, first),
        "name each column once, with a comma between two");
    return false;
  }
  for (const Value& row : rows) {
    if (is_whole(row)) continue;
    diagnostics.error(row.position,
                      fmt::format("a {} has {} cells, one a column; this one has {}", what, count, row.items.size()));
  }
  return false;
}

}  // namespace hdpsim
