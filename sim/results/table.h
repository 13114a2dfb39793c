#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"
#include "sim/run/advice.h"

namespace hdpsim {

/// The result for a person at a terminal: a block per point, a row per plan, and below the evidence of the prices.
[[nodiscard]] std::string result_table(std::string_view study_name, const std::vector<Run>& runs,
                                       const RunAdvice& advice = {});

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

/// The largest activities with their shares, the small ones added up: "attention 61%, linear 20%, other 19%".
[[nodiscard]] std::string largest_shares(const Breakdown& breakdown);

}  // namespace hdpsim
