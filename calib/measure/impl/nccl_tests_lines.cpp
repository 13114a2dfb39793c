#include "calib/measure/impl/nccl_tests_lines.h"

#include <algorithm>

namespace hdpsim::calib {
namespace {

constexpr std::string_view blanks = " \t\r";

// The class of characters that match each other in prefixes. '\0': only the character itself.
char form_of(char c) {
  if (c >= '0' && c <= '9') return '0';
  if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return 'a';
  return blanks.find(c) != std::string_view::npos ? ' ' : '\0';
}

std::size_t end_of_run(std::string_view text, std::size_t at, char form) {
  while (at < text.size() && form_of(text[at]) == form) ++at;
  return at;
}

}  // namespace

std::vector<Word> words_of(std::string_view line, std::size_t begin) {
  std::vector<Word> words;
  std::size_t at = line.find_first_not_of(blanks, begin);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back({line.substr(at, end - at), static_cast<int>(at) + 1});
    at = line.find_first_not_of(blanks, end);
  }
  return words;
}

std::optional<std::size_t> comment_begin(std::string_view line) {
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    if (at + 1 == line.size() || form_of(line[at + 1]) == ' ') return at;
  }
  return std::nullopt;
}

std::optional<std::size_t> prefix_like(std::string_view prefix, std::string_view line) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < prefix.size();) {
    const char form = form_of(prefix[i]);
    const std::size_t begin = at;
    if (form == '\0') {
      if (at == line.size() || line[at] != prefix[i]) return std::nullopt;
      ++i;
      ++at;
      continue;
    }
    i = end_of_run(prefix, i, form);
    at = end_of_run(line, at, form);
    if (at == begin && form != ' ') return std::nullopt;
  }
  return at;
}

}  // namespace hdpsim::calib
