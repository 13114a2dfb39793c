#include "sim/app/terminal.h"

#include <unistd.h>

#include <cstdlib>
#include <sstream>

namespace hdpsim::app {
namespace {

constexpr std::string_view bold_red = "\033[1;31m";
constexpr std::string_view green = "\033[1;32m";
constexpr std::string_view plain = "\033[0m";

bool is_caret(const std::string& line) {
  const std::size_t first = line.find_first_not_of(' ');
  return first != std::string::npos && line[first] == '^';
}

std::string painted(const std::string& text, std::size_t from, std::size_t count, std::string_view color) {
  return text.substr(0, from) + std::string(color) + text.substr(from, count) + std::string(plain) +
         text.substr(from + count);
}

}  // namespace

bool has_colors() {
  const char* refused = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool is_dumb = terminal == nullptr || std::string_view(terminal) == "dumb";
  return isatty(STDERR_FILENO) == 1 && (refused == nullptr || *refused == '\0') && !is_dumb;
}

std::string colored_problems(std::string_view text) {
  constexpr std::string_view error = "error:";
  std::istringstream lines{std::string(text)};
  std::string colored;
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t at = line.find(error); at != std::string::npos && !line.starts_with(' ')) {
      line = painted(line, at, error.size(), bold_red);
    } else if (is_caret(line)) {
      line = painted(line, line.find('^'), 1, green);
    }
    colored += line + '\n';
  }
  return colored;
}

}  // namespace hdpsim::app
