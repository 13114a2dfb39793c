#pragma once

#include <string>
#include <vector>

#include "sim/validate/validation_summary.h"

namespace hdpsim {

/// Predicted against published figures: one HTML file that opens without a network and has no script. It has the errors
/// of every set, then for each set and quantity a chart of one over the other, both axes logarithmic with a diagonal
/// where they are equal, and all of its rows. The same rows give the same bytes.
[[nodiscard]] std::string validation_page(const std::vector<ValidationRow>& rows);

}  // namespace hdpsim
