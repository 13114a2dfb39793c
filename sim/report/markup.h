#pragma once

#include <string>
#include <string_view>

namespace hdpsim {

/// A text as it may stand in XML and HTML, between tags and between double quotes.
[[nodiscard]] std::string escaped_markup(std::string_view text);

}  // namespace hdpsim
