#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/results/result_notes.h"
#include "sim/run/advice.h"

namespace hdpsim {

/// The result for a person at a terminal: a block per point, a row per plan, and below the evidence of the prices.
[[nodiscard]] std::string result_table(std::string_view study_name, const std::vector<Run>& runs,
                                       const RunAdvice& advice = {});

/// The cells of a line of a table.
using TextRow = std::vector<std::string>;
enum class FirstColumn { text, number };
/// Rows of a table for a terminal, a line each: as wide as their column, texts (the last column, and maybe the first)
/// to the left, numbers to the right.
[[nodiscard]] std::vector<std::string> aligned_lines(const std::vector<TextRow>& rows,
                                                     FirstColumn first = FirstColumn::text);

/// The largest activities with their shares, the small ones added up: "attention 61%, linear 20%, other 19%".
[[nodiscard]] std::string largest_shares(const Breakdown& breakdown);

}  // namespace hdpsim
