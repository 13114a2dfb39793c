#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/document/key.h"

namespace hdpsim {

/// The JSON schema of a file that is a map of these keys, indented by two. Counts, quantities and what has a name of
/// its own (KeyShape::definition) stand once, in `$defs`.
/// `partial`: of a file that others may complete, so that no key is required.
[[nodiscard]] std::string json_schema(std::string_view title, const std::vector<KeyText>& keys, bool partial = false);

}  // namespace hdpsim
