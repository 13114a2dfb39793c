#pragma once

#include <string>
#include <vector>

#include "sim/compare/comparison.h"

namespace hdpsim {

/// The comparison of one or several plans as one self-contained HTML page: tables, and bars of predicted over measured
/// figures. No scripts; prints on paper. Every text of a file is escaped.
[[nodiscard]] std::string comparison_page(const std::string& title, const std::vector<Comparison>& plans);

}  // namespace hdpsim
