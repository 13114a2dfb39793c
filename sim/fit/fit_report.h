#pragma once

#include <string>

#include "sim/fit/step_fitting.h"
#include "sim/report/format.h"

namespace hdpsim {

/// The result of a fit to steps: for people, its rows as CSV, or all of it as JSON, schema `hdpsim.fit/1`.
[[nodiscard]] std::string formatted(const FitResult& result, Format format);

}  // namespace hdpsim
