#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/import/shell_script.h"

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
    current_.text += c;
    current_.from.push_back(from);
    is_there_ = true;
  }
  void add(const ShellText& text) {
    for (std::size_t i = 0; i < text.text.size(); ++i) add(text.text[i], text.from[i]);
    if (!text.unset.empty()) add_unset(text.unset);
  }
  // As the shell splits what it did not find between quotes.
  void add_split(const ShellText& text) {
    for (std::size_t i = 0; i < text.text.size(); ++i) {
      if (is_shell_blank(text.text[i])) {
        end_field();
      } else {
        add(text.text[i], text.from[i]);
      }
    }
    if (!text.unset.empty()) add_unset(text.unset);
  }
  void add_unset(const std::string& what) {
    if (current_.unset.empty()) current_.unset = what;
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
    for (ShellText& field : take()) {
      if (whole.text.empty()) whole.begin = field.begin;
      whole.text += field.text;
      whole.from.insert(whole.from.end(), field.from.begin(), field.from.end());
      if (whole.unset.empty()) whole.unset = std::move(field.unset);
    }
    return whole;
  }

 private:
  std::vector<ShellText> done_;
  ShellText current_;
  bool is_there_ = false;
};

}  // namespace hdpsim
