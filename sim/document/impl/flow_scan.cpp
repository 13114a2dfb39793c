#include "sim/document/impl/flow_scan.h"

#include <algorithm>

#include "sim/document/limits.h"

namespace hdpsim {
namespace {

constexpr std::string_view line_blanks = " \t\r";

bool is_blank(char c) {
  return c == '\n' || line_blanks.find(c) != std::string_view::npos;
}

/// One walk over a text. `starts_` is true where a value or an indicator may begin; elsewhere quotes and brackets are
/// characters of a plain text.
class FlowScan {
 public:
  explicit FlowScan(std::string_view text) : text_(text) {}

  std::size_t bytes() {
    while (at_ < text_.size()) {
      if (text_[at_] == '\n') {
        begin_line();
      } else if (depth_ > 0) {
        step_in_flow();
      } else {
        step_in_block();
      }
      if (depth_ > deepest_level + 1 || values_ > most_values) return at_;
    }
    return text_.size();
  }

 private:
  [[nodiscard]] char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\n'; }
  [[nodiscard]] int column() const { return static_cast<int>(at_ - line_start_); }
  void move_to(std::size_t place) { at_ = std::min(place, text_.size()); }
  void skip_line() { move_to(text_.find('\n', at_)); }

  void begin_line() {
    line_start_ = ++at_;
    starts_ = true;
    parent_ = scalar_ = -1;
  }

  // Whether a quote, a comment, an anchor, an alias or a tag has been passed.
  bool pass() {
    const char c = text_[at_];
    if (c == '#' && (at_ == 0 || is_blank(text_[at_ - 1]))) {
      skip_line();
    } else if (starts_ && (c == '"' || c == '\'')) {
      scalar_ = column();
      pass_quoted(c);
    } else if (starts_ && (c == '&' || c == '*' || c == '!')) {
      move_to(text_.find_first_of(" \t\r\n,[]{}", at_ + 1));
    } else {
      return false;
    }
    return true;
  }

  // The parser takes a bracket as its end, too, so that one that is open runs on over lines.
  void pass_quoted(char quote) {
    const std::string_view ends = quote == '"' ? "\"\\" : "'";
    for (move_to(at_ + 1); at_ < text_.size(); move_to(at_ + 2)) {
      move_to(text_.find_first_of(ends, at_));
      const bool is_escape = at_ < text_.size() && (text_[at_] == '\\' || (quote == '\'' && next() == quote));
      if (!is_escape) break;
    }
    move_to(at_ + 1);
    starts_ = false;
  }

  void step_in_flow() {
    if (pass()) return;
    const char c = text_[at_++];
    depth_ += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    values_ += c == ',' ? 1 : 0;
    starts_ = std::string_view("[{,:?").find(c) != std::string_view::npos || (starts_ && is_blank(c));
  }

  void step_in_block() {
    if (pass()) return;
    const char c = text_[at_];
    const bool stands_alone = is_blank(next());
    if (starts_ && (c == '[' || c == '{')) {
      ++depth_;
    } else if (starts_ && (c == '|' || c == '>')) {
      return pass_block_scalar();
    } else if (starts_ && (c == '-' || c == '?') && stands_alone) {
      parent_ = column();
      values_ += c == '-' ? 1 : 0;
    } else if (c == ':' && stands_alone) {
      parent_ = scalar_;
      values_ += 2;
      starts_ = true;
    } else if (starts_ && !is_blank(c)) {
      scalar_ = column();
      starts_ = false;
    }
    ++at_;
  }

  // Its lines are indented by more than what it belongs to: by as much as the first that is not blank, if no digit
  // says.
  void pass_block_scalar() {
    const int parent = parent_;
    const std::size_t digit = text_.find_first_not_of("+-", at_ + 1);
    const bool is_stated = digit < text_.size() && text_[digit] > '0' && text_[digit] <= '9';
    int indent = is_stated ? std::max(parent, 0) + (text_[digit] - '0') : -1;
    skip_line();
    while (at_ < text_.size()) {
      const std::size_t line = at_ + 1;
      const std::size_t first = std::min(text_.find_first_not_of(' ', line), text_.size());
      const bool is_empty = first == text_.size() || text_[first] == '\n' || text_[first] == '\r';
      const int spaces = static_cast<int>(first - line);
      if (!is_empty && indent < 0) indent = spaces;
      if (!is_empty && (spaces <= parent || spaces < indent)) return;
      move_to(line);
      skip_line();
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  bool starts_ = true;
  int depth_ = 0;    // of brackets
  int values_ = 0;   // no more than there are: one a comma between brackets and a dash, two a colon behind a key
  int scalar_ = -1;  // column where the latest text of this line began
  int parent_ = -1;  // column of the key or the dash that the next value of this line belongs to
};

}  // namespace

std::size_t bytes_to_parse(std::string_view text) {
  return FlowScan(text).bytes();
}

}  // namespace hdpsim
