#pragma once

#include <string>
#include <string_view>

namespace hdpsim::app {

/// Whether standard error takes colours: it is a terminal that knows them, and NO_COLOR (https://no-color.org) is not
/// set.
[[nodiscard]] bool has_colors();

/// Problems as InputError tells them, with their kind and their caret in colour.
[[nodiscard]] std::string colored_problems(std::string_view text);

}  // namespace hdpsim::app
