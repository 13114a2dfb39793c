#pragma once

#include <string>

#include "sim/document/document.h"

namespace hdpsim {

/// Parses TOML: tables become maps, arrays lists, and all else scalars with their places. Reported are syntax errors,
/// and texts beyond the limits of sim/document. `file` is the name that positions carry.
[[nodiscard]] Value parse_toml(const std::string& file, const std::string& text, Diagnostics& diagnostics);

}  // namespace hdpsim
