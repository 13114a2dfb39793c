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
  std::size_t warm_up = 0;   ///< Steps before them that are left out.
  std::string mean_of = {};  ///< Not empty: the only figure is a mean over this, for people.
};

/// The steps that a framework has logged:
///
///   Megatron-LM   "iteration  57/ 100 | ... | elapsed time per iteration (ms): 5450.5 |"   step_time_s
///   torchtitan    "step: 200  loss: ...  tps: 5,856" ("wps" in 2024)                      tokens_per_s_per_gpu
///   nanotron      "iteration: 5 / 100 | ... | elapsed_time_per_iteration_ms: 1.2K |"       step_time_s
///   NeMo          "iteration 5/100 | ... | train_step_timing in s: 5.45"                   step_time_s
///   HuggingFace   "{'train_runtime': 123.4, 'train_steps_per_second': 0.081, ...}", also in trainer_state.json: the
///                 mean of the run                                                          step_time_s
///
/// Warm-up is left out: step 1, which compiles and allocates, and those behind it that take a tenth longer than the
/// median step, but not half of all. Where the global batch grows, it is a column, too. Empty: the text is none of
/// these.
[[nodiscard]] std::optional<LoggedSteps> steps_of_log(const std::string& file, std::string_view text);

}  // namespace hdpsim
