#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hdpsim {

/// A part of a word whose text is not known.
struct ShellUnknown {
  enum class Kind : std::uint8_t {
    not_set,       ///< A variable or an argument of the script to which nothing gives a value: empty, to a shell.
    not_computed,  ///< What a command prints, or a value that depends on what a command finds.
  };
  std::size_t at = 0;  ///< It precedes this character of the text.
  std::string what;    ///< `$DATA`, `$(nproc)`
  Kind kind = Kind::not_computed;
  std::string why = {};              ///< What it depends on, for people; may be empty.
  std::string holder = {};           ///< A variable that has it for its value; may be empty.
  std::uint32_t place = UINT32_MAX;  ///< Its offset in the script; UINT32_MAX: it is not from there.
};

/// A word of a script behind all expansions, with the place of each of its characters.
struct ShellText {
  static constexpr std::uint32_t nowhere = UINT32_MAX;

  std::string text;
  std::vector<std::uint32_t> from;  ///< For each character, its offset in the script; nowhere: it is not from there.
  std::uint32_t begin = 0;          ///< The offset where the word begins.
  std::vector<ShellUnknown> unknowns = {};  ///< In their order; none: the word is known as a whole.

  [[nodiscard]] bool is_known() const { return unknowns.empty(); }
  /// What of it is not known, the first of them; empty if all of it is.
  [[nodiscard]] std::string unset() const { return unknowns.empty() ? std::string() : unknowns.front().what; }
  /// Whether a command, and not only a missing value, decides what it is.
  [[nodiscard]] bool is_not_computed() const;

  void add(char c, std::uint32_t place) {
    text += c;
    from.push_back(place);
  }
  void add(const ShellText& other);
  /// The characters from one to another, with the unknown parts among them.
  [[nodiscard]] ShellText part(std::size_t first, std::size_t last) const;
  [[nodiscard]] static ShellText of(std::string_view text);
  [[nodiscard]] static ShellText unknown(ShellUnknown what);
};

/// The words joined by blanks.
[[nodiscard]] ShellText joined_words(const std::vector<ShellText>& words);

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
  // What is not known belongs to the field that holds it.
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
