#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// Text from a file, a file name or an argument, made safe to show to a person on one line: control characters (C0, DEL
/// and C1), line and paragraph separators, and characters that change the direction of the text become spaces; bytes
/// that are not UTF-8 become '?'. A terminal interprets nothing in what is left.
[[nodiscard]] std::string printable(std::string_view text);

/// The same for text of several lines; the line ends stay.
[[nodiscard]] std::string printable_lines(std::string_view text);

/// A text as a part of a file's name: letters, digits, '-' and '.' stay, whatever lies between them is one '_'.
/// At most 160 of them. Different texts may have the same: as_file_names() makes them differ.
[[nodiscard]] std::string as_file_name(std::string_view text);

/// The same for several texts: of those whose names are equal, all but the first get a number behind a '~', which no
/// other name has.
[[nodiscard]] std::vector<std::string> as_file_names(const std::vector<std::string>& texts);

}  // namespace hdpsim
