#pragma once

#include <string>
#include <vector>

#include "sim/analysis/explanation.h"
#include "sim/report/format.h"

namespace hdpsim {

/// For people (table) or as JSON, schema `hdpsim.explanation/1`: each plan, then what the others do better or worse
/// than the first. `title` says which point of which study.
[[nodiscard]] std::string formatted(const std::string& title, const std::vector<Explanation>& plans, Format format);

}  // namespace hdpsim
