#pragma once

#include <string>

#include "sim/fit/step_fitting.h"
#include "sim/results/format.h"

namespace hdpsim {

/// The result of a fit to steps: for people, its rows as CSV, or all of it as JSON, schema `hdpsim.fit/1`.
[[nodiscard]] std::string formatted(const FitResult& result, Format format);

/// A line of warning where the fitted profile still predicts most rows at more than twice their time or less than half
/// of it, so that the rows are hardly of this training; otherwise empty.
[[nodiscard]] std::string misfit_warning(const FitResult& result);

}  // namespace hdpsim
