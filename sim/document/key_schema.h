#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// The JSON schemas of maps by their names, `{"mesh": {"type": "object", ...}, ...}`, indented by two. Counts and
/// quantities refer to `#/$defs/count`, `time`, `bytes` and `bandwidth` of the document that they become part of.
[[nodiscard]] std::string schema_definitions(const std::vector<std::pair<std::string, std::vector<KeyText>>>& maps);

}  // namespace hdpsim
