#include "sim/tasks/task_report.h"

#include <fmt/format.h>

#include "sim/base/quantity_text.h"
#include "sim/base/text.h"
#include "sim/report/page/table_page.h"

namespace hdpsim {
namespace {

bool has_published(const std::vector<TaskComparison>& comparisons) {
  for (const TaskComparison& comparison : comparisons) {
    for (const TaskRow& row : comparison.rows) {
      if (row.published) return true;
    }
  }
  return false;
}

TextRow cells_of(const TaskRow& row, bool published) {
  const TaskStep& step = row.step;
  const auto percent = [&](double seconds) { return fmt::format("{:.1f}%", 100 * seconds / step.total()); };
  TextRow cells = {row.policy, seconds_text(step.total()), fmt::format("{:.2f}x", row.speedup)};
  if (published) cells.push_back(row.published ? fmt::format("{:.2f}x", *row.published) : "-");
  cells.insert(cells.end(), {fmt::format("{:.1f}%", 100 * step.idle), fmt::format("{:.2f}", row.over_bound),
                             percent(step.messages), percent(step.gradients), fmt::format("{}", step.waves),
                             bytes_text(step.memory), step.fits ? "" : "does not fit"});
  return cells;
}

std::string group_name(const TaskComparison& comparison) {
  const std::string size = fmt::format("{} tasks, {} runs of operators in {} levels, {} GPUs", comparison.tasks,
                                       comparison.runs.size(), comparison.levels, comparison.devices);
  return comparison.label.empty() ? size : fmt::format("{}: {}", comparison.label, size);
}

TablePage page_of(const std::string& name, const std::vector<TaskComparison>& comparisons) {
  const bool published = has_published(comparisons);
  ShownTable table{"Policies", {"policy", "step", "speed-up"}, {}};
  if (published) table.titles.emplace_back("published");
  table.titles.insert(table.titles.end(), {"idle", "over bound", "messages", "gradients", "waves", "memory", ""});
  for (const TaskComparison& comparison : comparisons) {
    ShownTable::Group& group = table.groups.emplace_back(ShownTable::Group{group_name(comparison), {}});
    for (const TaskRow& row : comparison.rows) group.rows.push_back(cells_of(row, published));
  }
  TablePage page;
  page.title = name;
  page.lead = "Steps of tasks that share modules; speed-ups are over sequential.";
  page.notes = {"over bound: forward and backward over the continuous optimum of the levels",
                "messages, gradients: shares of the step"};
  page.tables = {table};
  for (const TaskRow& row : comparisons.front().rows) page.plans.push_back(row.policy);
  return page;
}

}  // namespace

std::string tasks_table(const std::string& name, const std::vector<TaskComparison>& comparisons) {
  const TablePage page = page_of(name, comparisons);
  return fmt::format("{}\n{}\n\n{}\n{}\n", page.title, page.lead, table_text(page.tables.front()),
                     joined(page.notes, "\n"));
}

std::string tasks_page(const std::string& name, const std::vector<TaskComparison>& comparisons) {
  return table_page(page_of(name, comparisons));
}

}  // namespace hdpsim
