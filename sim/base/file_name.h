#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// A text as a part of a file's name: letters, digits, '-' and '.' stay, whatever lies between them is one '_'.
/// At most 160 of them. Different texts may have the same: as_file_names() tells them apart.
[[nodiscard]] std::string as_file_name(std::string_view text);

/// The same for several texts: of those whose names are equal, all but the first get a number behind a '~', which no
/// other name has.
[[nodiscard]] std::vector<std::string> as_file_names(const std::vector<std::string>& texts);

}  // namespace hdpsim
