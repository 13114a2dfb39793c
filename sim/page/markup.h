#pragma once

#include <string>
#include <string_view>

namespace hdpsim {

/// A text escaped for XML and HTML, between tags and between double quotes.
[[nodiscard]] std::string escaped_markup(std::string_view text);

}  // namespace hdpsim
