#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/document/document.h"

namespace hdpsim {

/// A value as JSON: counts (`256Ki`), numbers and true / false as such, everything else as text.
[[nodiscard]] nlohmann::ordered_json json_of(const Value& value);

/// A value in one line: `256Ki`, `github`, `{cp: 32}`, `[a, b]`.
[[nodiscard]] std::string line_of(const Value& value);

}  // namespace hdpsim
