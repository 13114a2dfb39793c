#pragma once

#include <string>
#include <vector>

#include "sim/analysis/explanation.h"
#include "sim/report/format.h"

namespace hdpsim {

/// The explanations for people (table) or as JSON, schema `hdpsim.explanation/1`: each plan, then the differences of
/// the others to the first. `title` names the point and the study.
[[nodiscard]] std::string formatted(const std::string& title, const std::vector<Explanation>& plans, Format format);

}  // namespace hdpsim
