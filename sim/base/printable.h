#pragma once

#include <string>
#include <string_view>

namespace hdpsim {

/// Text from a file, a file name or an argument, made safe to show to a person on one line: control characters (C0, DEL
/// and C1), line and paragraph separators, and characters that change the direction of the text become spaces; bytes
/// that are not UTF-8 become '?'. A terminal interprets nothing in what is left.
[[nodiscard]] std::string printable(std::string_view text);

/// The same for text of several lines; the line ends stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

}  // namespace hdpsim
