#include "sim/base/file_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

namespace hdpsim {
namespace {

constexpr std::size_t longest_name = 160;  // a file's name may have 255 bytes

}  // namespace

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
