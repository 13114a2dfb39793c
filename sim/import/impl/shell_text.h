#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// A part of a word that the script does not tell.
struct ShellUnknown {
  enum class Kind : std::uint8_t {
    not_set,       ///< A variable or an argument of the script to which nothing gives a value: empty, to a shell.
    not_computed,  ///< What a command prints, or a value that hangs on what a command finds.
  };
  std::size_t at = 0;  ///< It stands before this character of the text.
  std::string what;    ///< `$DATA`, `$(nproc)`
  Kind kind = Kind::not_computed;
  std::string why = {};              ///< On what it hangs, for people; may be empty.
  std::string holder = {};           ///< A variable that has it for its value; may be empty.
  std::uint32_t place = UINT32_MAX;  ///< The offset in the script where it stands; UINT32_MAX: it is not from there.
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

}  // namespace hdpsim
