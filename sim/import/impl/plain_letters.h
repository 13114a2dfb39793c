#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace hdpsim {

/// The letters and digits of a name, in small letters: `lm-head`, `lm_head` and `LMHead` are one name.
[[nodiscard]] inline std::string plain_letters(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return letters;
}

}  // namespace hdpsim
