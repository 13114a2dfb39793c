#pragma once

#include <string>
#include <string_view>

namespace hdpsim {

/// A text as a part of a file's name: letters, digits, '-' and '.' stay, whatever lies between them is one '_'.
[[nodiscard]] std::string as_file_name(std::string_view text);

}  // namespace hdpsim
