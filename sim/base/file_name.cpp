#include "sim/base/file_name.h"

#include <cctype>

namespace hdpsim {

std::string as_file_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || (c == '.' && !name.empty());
    if (is_plain || (!name.empty() && name.back() != '_')) name += is_plain ? c : '_';
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

}  // namespace hdpsim
