#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/analysis/metrics.h"

namespace hdpsim {

/// The result for a person at a terminal: a block per point, a row per plan, and below the evidence of the prices.
[[nodiscard]] std::string result_table(std::string_view study_name, const std::vector<Run>& runs);

/// What a reader of results has to know: runs that do not fit the memory, a baseline that was not tuned or cannot run,
/// and ranks with too few micro-batches. Lines without a full stop, for which see result_table().
[[nodiscard]] std::vector<std::string> result_notes(const std::vector<Run>& runs);

/// By how much a run exceeds the memory: "88.8 GB of 80.0 GB on a device". Empty if it fits.
[[nodiscard]] std::string memory_excess(const Run& run);

/// The largest activities with their shares, the small ones added up: "attention 61%, linear 20%, other 19%".
[[nodiscard]] std::string largest_shares(const Breakdown& breakdown);

}  // namespace hdpsim
