#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/fit/step_fitting.h"

namespace hdpsim {

/// The errors of the rows that have a prediction; `jobs` are those of all rows (ValidationCase::job).
[[nodiscard]] FitErrors errors_of(const std::vector<FitRow>& rows, const std::vector<std::string>& jobs,
                                  const std::function<std::optional<double>(const FitRow&)>& prediction);

/// Fills in by how much the cross-validated errors of one fit are larger than those of the best fit of the same rows,
/// over the groups of the best.
void compare_errors(const FitResult& best, const FitResult& other, TriedValue& tried);

}  // namespace hdpsim
