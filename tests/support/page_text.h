#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hdpsim::test {

/// The data that a page hands to its script.
inline nlohmann::json page_data(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"page-data\">";
  const std::size_t begin = page.find(open) + open.size();
  return nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

/// How often a part occurs in a text.
inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace hdpsim::test
