#pragma once

#include <string>
#include <vector>

#include "sim/analysis/comparison.h"

namespace hdpsim {

/// The comparison of one or several plans as one HTML page that needs nothing beside itself: tables, and bars of what
/// was predicted over what was measured. No scripts; prints on paper. Every text of a file is escaped.
[[nodiscard]] std::string comparison_page(const std::string& title, const std::vector<Comparison>& plans);

}  // namespace hdpsim
