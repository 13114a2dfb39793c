#pragma once

#include <regex>
#include <string>

namespace hdpsim::test {

/// The text of problems, a line each: without the lines of the file that it shows, and with what stands below their
/// carets behind "; ".
inline std::string brief(const std::string& problems) {
  static const std::regex shown_line(" +[0-9]+ \\| .*\n");
  static const std::regex caret("\n +\\^ ?(.+)");
  static const std::regex bare_caret("\n +\\^(?=\n)");
  const std::string places = std::regex_replace(problems, shown_line, "");
  return std::regex_replace(std::regex_replace(places, caret, "; $1"), bare_caret, "");
}

}  // namespace hdpsim::test
