#pragma once

#include "sim/results/figure_page.h"
#include "sim/results/figure_table.h"
#include "sim/tasks/task_comparison.h"

namespace hdpsim {

/// A policy in a case.
struct TaskFigureRow {
  const TaskComparison* comparison = nullptr;
  const TaskRow* row = nullptr;
};

/// The figures of a row, in tasks.csv and tasks.json.
[[nodiscard]] const FigureTable<TaskFigureRow>& task_row_figures();

/// The figures of the results of `hdpsim tasks`.
[[nodiscard]] FigureSection task_figures();

}  // namespace hdpsim
