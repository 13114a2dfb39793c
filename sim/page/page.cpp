#include "sim/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "sim/base/check.h"
#include "sim/page/page_files.h"

namespace hdpsim {

std::string escaped_markup(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

// HTML interprets only "</script" and "<!--" in a script element; without "<" neither occurs. In JSON it is in
// texts alone.
std::string script_safe(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string filled(std::string_view text, const PageParts& parts) {
  std::string page;
  for (std::size_t open = text.find("{{"); open != std::string_view::npos; open = text.find("{{")) {
    const std::size_t close = text.find("}}", open);
    HDPSIM_CHECK(close != std::string_view::npos, "the template of a page has '{{{{' without an end");
    const std::string_view name = text.substr(open + 2, close - open - 2);
    const auto part = std::find_if(parts.begin(), parts.end(), [&](const auto& each) { return each.first == name; });
    HDPSIM_CHECK(part != parts.end(), "the template of a page asks for '{}'", name);
    page += text.substr(0, open);
    page += part->second;
    text.remove_prefix(close + 2);
  }
  return page += text;
}

std::string html_page(std::string_view title, std::string_view script, std::string_view json) {
  const std::string heading = escaped_markup(title);
  const std::string data = script_safe(json);
  const std::string scripts = fmt::format("{}\n{}\n{}", page_files::charts_js, page_files::parts_js, script);
  return filled(page_files::page_html,
                {{"title", heading}, {"style", page_files::page_css}, {"data", data}, {"script", scripts}});
}

double rounded(double value) {
  return std::strtod(fmt::format("{:.5g}", value).c_str(), nullptr);
}

}  // namespace hdpsim
