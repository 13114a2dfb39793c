#pragma once

#include <string>
#include <vector>

#include "sim/results/format.h"
#include "sim/validate/validation_summary.h"

namespace hdpsim {

/// The rows and summaries: a table, CSV (rows alone) or JSON, schema `hdpsim.validation/1`.
[[nodiscard]] std::string formatted(const std::vector<ValidationRow>& rows, Format format);
/// CSV of the summaries, one row per set and kind of quantity.
[[nodiscard]] std::string summaries_csv(const std::vector<ValidationSummary>& summaries);

}  // namespace hdpsim
