#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/import/impl/shell_text.h"

namespace hdpsim {

/// Whether the shell splits words there.
[[nodiscard]] inline bool is_shell_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/// The fields of a word in the making.
class ShellFields {
 public:
  explicit ShellFields(std::uint32_t begin) { current_.begin = begin; }

  void add(char c, std::uint32_t from) {
    if (current_.text.empty() && from != ShellText::nowhere) current_.begin = from;
    current_.add(c, from);
    is_there_ = true;
  }
  void add(const ShellText& text) { add_parts(text, false); }
  // As the shell splits what it did not find between quotes.
  void add_split(const ShellText& text) { add_parts(text, true); }
  void add_unknown(ShellUnknown what) {
    what.at = current_.text.size();
    current_.unknowns.push_back(std::move(what));
    is_there_ = true;
  }
  void add_quotes() { is_there_ = true; }  // "" is a word, too
  void end_field() {
    if (!is_there_) return;
    const std::uint32_t begin = current_.begin;
    done_.push_back(std::exchange(current_, {}));
    current_.begin = begin;
    is_there_ = false;
  }

  std::vector<ShellText> take() {
    end_field();
    return std::move(done_);
  }
  ShellText take_whole() {
    ShellText whole;
    whole.begin = current_.begin;
    for (const ShellText& field : take()) {
      if (whole.text.empty()) whole.begin = field.begin;
      whole.add(field);
    }
    return whole;
  }

 private:
  // What is not known stands in the field that holds it.
  void add_parts(const ShellText& text, bool splits) {
    auto unknown = text.unknowns.begin();
    for (std::size_t i = 0; i <= text.text.size(); ++i) {
      for (; unknown != text.unknowns.end() && unknown->at == i; ++unknown) add_unknown(*unknown);
      if (i == text.text.size()) break;
      if (splits && is_shell_blank(text.text[i])) {
        end_field();
      } else {
        add(text.text[i], text.from[i]);
      }
    }
  }

  std::vector<ShellText> done_;
  ShellText current_;
  bool is_there_ = false;
};

}  // namespace hdpsim
