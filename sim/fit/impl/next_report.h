#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sim/document/json.h"
#include "sim/fit/next_runs.h"

namespace hdpsim {

/// Which runs to measure next, for people. `scale` is the robust standard deviation of the fit's residuals.
[[nodiscard]] std::string next_table(const NextRuns& next, double scale);

/// The object `next` of the schema `hdpsim.fit/1`.
[[nodiscard]] Json next_json(const NextRuns& next);

}  // namespace hdpsim
