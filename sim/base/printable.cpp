#include "sim/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <map>

namespace hdpsim {
namespace {

/// A UTF-8 character at the start of a text; zero bytes if there is none.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;
};

// Accepts the shortest form only, and no surrogate halves: RFC 3629.
Character first_of(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return {byte(0), 1};
  const std::size_t bytes = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = byte(0) & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  const bool is_overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  if (is_overlong || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, bytes};
}

bool is_obeyed(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

std::string shown(std::string_view text, bool lines) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Character next = first_of(text);
    if (next.bytes == 0) {
      shown += '?';
    } else if (lines && next.code == '\n') {
      shown += '\n';
    } else if (is_obeyed(next.code)) {
      shown += ' ';
    } else {
      shown += text.substr(0, next.bytes);
    }
    text.remove_prefix(std::max<std::size_t>(1, next.bytes));
  }
  return shown;
}

constexpr std::size_t longest_name = 160;  // a file's name may have 255 bytes

}  // namespace

std::string printable(std::string_view text) {
  return shown(text, false);
}

std::string printable_lines(std::string_view text) {
  return shown(text, true);
}

std::string as_file_name(std::string_view text) {
  std::string name;
  for (const char c : text) {
    const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || (c == '.' && !name.empty());
    if (is_plain || (!name.empty() && name.back() != '_')) name += is_plain ? c : '_';
  }
  name.resize(std::min(name.size(), longest_name));
  while (!name.empty() && name.back() == '_') name.pop_back();
  return name;
}

std::vector<std::string> as_file_names(const std::vector<std::string>& texts) {
  std::map<std::string, int> seen;
  std::vector<std::string> names;
  for (const std::string& text : texts) {
    std::string name = as_file_name(text);
    const int before = seen[name]++;
    names.push_back(before == 0 ? name : fmt::format("{}~{}", name, before + 1));
  }
  return names;
}

}  // namespace hdpsim
