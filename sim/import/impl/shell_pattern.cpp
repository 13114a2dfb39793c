#include "sim/import/impl/shell_pattern.h"

#include <cstddef>

namespace hdpsim {
namespace {

// Whether a character is in the brackets that begin a pattern; `size` becomes their length, 0 if they are not closed.
bool in_brackets(char c, std::string_view pattern, std::size_t& size) {
  const bool is_inverted = pattern.size() > 1 && (pattern[1] == '!' || pattern[1] == '^');
  const std::size_t first = is_inverted ? 2 : 1;
  const std::size_t end = pattern.find(']', first + 1);
  size = end == std::string_view::npos ? 0 : end + 1;
  bool is_in = false;
  for (std::size_t i = first; size > 0 && i < end; ++i) {
    if (i + 2 < end && pattern[i + 1] == '-') {
      is_in = is_in || (pattern[i] <= c && c <= pattern[i + 2]);
      i += 2;
    } else {
      is_in = is_in || pattern[i] == c;
    }
  }
  return is_in != is_inverted;
}

// The length of what stands in a pattern for this character; 0 if something else does.
std::size_t matched(char c, std::string_view pattern) {
  if (pattern.empty()) return 0;
  if (pattern.front() == '?') return 1;
  std::size_t size = 0;
  if (pattern.front() == '[') {
    const bool is_in = in_brackets(c, pattern, size);
    if (size > 0) return is_in ? size : 0;
  }
  return pattern.front() == c ? 1 : 0;
}

}  // namespace

// Goes back to the last star, which then stands for one character more.
bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t at = 0;
  std::size_t in_pattern = 0;
  std::size_t star = std::string_view::npos;
  std::size_t behind_star = 0;
  while (at < text.size()) {
    const std::size_t size = matched(text[at], pattern.substr(in_pattern));
    if (in_pattern < pattern.size() && pattern[in_pattern] == '*') {
      star = in_pattern++;
      behind_star = at;
    } else if (size > 0) {
      in_pattern += size;
      ++at;
    } else if (star != std::string_view::npos) {
      in_pattern = star + 1;
      at = ++behind_star;
    } else {
      return false;
    }
  }
  while (in_pattern < pattern.size() && pattern[in_pattern] == '*') ++in_pattern;
  return in_pattern == pattern.size();
}

}  // namespace hdpsim
