#pragma once

#include <string>
#include <string_view>

namespace hdpsim {

/// A text escaped for XML and HTML, between tags and between double quotes.
[[nodiscard]] std::string escaped_markup(std::string_view text);

/// The beginning of an HTML page of tables up to its heading, which is its title: both are escaped here. `style` is CSS
/// that the page needs besides the common one.
[[nodiscard]] std::string page_beginning(std::string_view title, std::string_view style);

}  // namespace hdpsim
