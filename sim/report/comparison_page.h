#pragma once

#include <string>
#include <vector>

#include "sim/report/comparison.h"

namespace hdpsim {

/// The comparison of one or several plans as one HTML page that needs nothing beside itself: tables, and bars of what
/// was predicted over what was measured. No scripts; prints on paper. Every text of a file is escaped.
[[nodiscard]] std::string comparison_page(const std::string& title, const std::vector<Comparison>& plans);

/// Text as HTML wants it between tags and in attributes.
[[nodiscard]] std::string html_escaped(std::string_view text);

}  // namespace hdpsim
