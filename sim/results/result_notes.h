#pragma once

#include <string>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/run/advice.h"

namespace hdpsim {

/// What a reader of results has to know: runs that do not fit the memory, a baseline that was not tuned or cannot run,
/// and ranks with too few micro-batches. Lines without a full stop, for which see result_table().
[[nodiscard]] std::vector<std::string> result_notes(const std::vector<Run>& runs, const RunAdvice& advice = {});

/// The runs whose notes name what would help, where there is advice for them: of each plan that is refused, does not
/// fit or has too few micro-batches, the one that stands for it. In ascending order.
[[nodiscard]] std::vector<std::size_t> runs_in_need(const std::vector<Run>& runs);

/// Advice for all runs_in_need() if that is cheap (is_cheap_to_advise), else none.
[[nodiscard]] RunAdvice advice_in_need(const Study& study, const std::vector<Run>& runs, AdviceOptions options);

/// By how much a run exceeds the memory: "88.8 GB of 80.0 GB on a device". Empty if it fits.
[[nodiscard]] std::string memory_excess(const Run& run);

// Parts of the text below a table of results, a line each.

/// Of each plan that is refused, does not fit or may not fit: at how many points, why, and what helps; and what
/// speed-ups are over.
[[nodiscard]] std::string problem_lines(const std::vector<Run>& runs, const RunAdvice& advice);
/// Plans whose ranks wait for each other because they have too few micro-batches to balance, and what helps each.
[[nodiscard]] std::string starved_lines(const std::vector<Run>& runs, const RunAdvice& advice);

}  // namespace hdpsim
