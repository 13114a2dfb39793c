#pragma once

#include <string_view>

namespace hdpsim {

/// Whether a text is one of those for which a shell's pattern stands: `*`, `?` and `[a-z]`.
[[nodiscard]] bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace hdpsim
