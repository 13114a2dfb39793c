#pragma once

#include <string>
#include <string_view>

namespace hdpsim {

/// Text of a file, of the name of a file or of an argument, as it may be shown to a person on one line: control
/// characters (C0, DEL and C1), line and paragraph separators, and the characters that change the direction of what
/// follows become spaces; what is no UTF-8 becomes '?'. A terminal obeys none of what is left.
[[nodiscard]] std::string printable(std::string_view text);

/// The same for text of several lines, whose ends stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

}  // namespace hdpsim
