#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"
#include "sim/tasks/task_comparison.h"

namespace hdpsim {

/// For a person at a terminal: a row a policy, case by case.
[[nodiscard]] std::string tasks_table(const std::string& name, const std::vector<TaskComparison>& comparisons);
/// The same as a page.
[[nodiscard]] std::string tasks_page(const std::string& name, const std::vector<TaskComparison>& comparisons);
[[nodiscard]] std::string tasks_csv(const std::vector<TaskComparison>& comparisons);
/// Schema `hdpsim.tasks/1`, with the waves of every plan; `file` is what was read, `version` that of the program.
[[nodiscard]] std::string tasks_json(const std::vector<TaskComparison>& comparisons, const Value& file,
                                     std::string_view version);

}  // namespace hdpsim
