#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "sim/document/document.h"
#include "sim/document/json.h"

namespace hdpsim {

/// A value as JSON: counts (`256Ki`), numbers and true / false as such, everything else as text.
[[nodiscard]] Json json_of(const Value& value);

/// The same in one line.
[[nodiscard]] std::string json_line_of(const Value& value);

/// A value in one line: `256Ki`, `github`, `{cp: 32}`, `[a, b]`.
[[nodiscard]] std::string line_of(const Value& value);

}  // namespace hdpsim
