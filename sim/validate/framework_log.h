#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"

namespace hdpsim {

/// Steps as the columns and rows of a validation set, at their places in a file.
struct LoggedSteps {
  Value columns;
  std::vector<Value> lines;
};

/// The steps that a framework has logged:
///
///   Megatron-LM   "iteration  57/ 100 | ... | elapsed time per iteration (ms): 5450.5 |"   step_time_s
///   torchtitan    "step: 200  loss: ...  tps: 5,856" ("wps" in 2024)                      tokens_per_s_per_gpu
///
/// Step 1, which compiles and allocates, is left out unless it is the only one. Where Megatron-LM's global batch grows,
/// it is a column, too. Empty: the text is neither.
[[nodiscard]] std::optional<LoggedSteps> steps_of_log(const std::string& file, std::string_view text);

}  // namespace hdpsim
