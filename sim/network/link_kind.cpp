#include "sim/network/link_kind.h"

#include <cctype>

namespace hdpsim {

std::string link_kind(std::string_view name) {
  std::string kind;
  for (const char c : name) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit) kind += c;
    if (is_digit && !kind.ends_with('#')) kind += '#';
  }
  return kind;
}

}  // namespace hdpsim
