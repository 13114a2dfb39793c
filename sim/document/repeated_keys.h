#pragma once

#include <string>

#include "sim/document/document.h"

namespace hdpsim {

/// Parses as parse_document() does, but a map may have a key several times: it then has an entry for each, in their
/// order, for those who know what a repetition means.
[[nodiscard]] Value parse_repeating_document(const std::string& file, const std::string& text,
                                             Diagnostics& diagnostics);

}  // namespace hdpsim
