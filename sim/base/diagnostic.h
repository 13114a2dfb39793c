#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hdpsim {

/// A place in one of the user's files. Line and column count from 1; line 0 means the file as a whole.
struct Position {
  std::string file;
  int line = 0;
  int column = 0;
};

/// One problem of the user's input, and what to do about it.
struct Diagnostic {
  Position position;
  std::string message;
  std::string help;          ///< The suggestion under the caret; may be empty.
  bool unsupported = false;  ///< The input is right, but this program cannot do it yet.
};

/// Whether one place comes before another: by file, line and column.
[[nodiscard]] bool comes_before(const Position& one, const Position& other);

/// Collects every problem of the user's input so that they are reported in one go. Of countless problems the first
/// `most_kept` by their places are kept, and the others counted: a file with more of them is wrong as a whole.
class Diagnostics {
 public:
  static constexpr std::size_t most_kept = 1000;

  /// Whether a problem at this place would be kept; one that would not is counted by this call. A loop over what a file
  /// may have by the thousand asks before it puts a problem into words.
  [[nodiscard]] bool keeps(const Position& position);
  void error(Position position, std::string message, std::string help = {});
  /// Reports input that is right but cannot be done yet. It is refused like an error; only `hdpsim validate` continues
  /// without it.
  void unsupported(Position position, std::string message, std::string help = {});
  void add(Diagnostic problem);
  void append(const Diagnostics& other);
  /// Keeps the text of a file (or of a virtual one, such as the command line) for the caret lines.
  void add_source(const std::string& file, std::string text);

  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// How often a problem was reported, whether or not it is kept.
  [[nodiscard]] std::size_t count() const { return count_; }
  /// The problems by file, line and column; problems at one place keep the order in which they were found, and one that
  /// was reported there several times counts once.
  /// Those that are not kept are not among them.
  [[nodiscard]] std::vector<Diagnostic> sorted() const;
  /// The text for people: `file:line:column: error: message`, the source line, a caret and the suggestion; one block
  /// per problem.
  [[nodiscard]] std::string text() const;
  /// Throws InputError if anything was collected.
  void throw_if_any() const;

 private:
  struct ByPlace {
    bool operator()(const Diagnostic& one, const Diagnostic& other) const {
      return comes_before(one.position, other.position);
    }
  };

  [[nodiscard]] bool is_told(const Diagnostic& problem) const;

  std::multiset<Diagnostic, ByPlace> entries_;
  std::size_t count_ = 0;
  std::size_t repeated_ = 0;  ///< Of count_: reported before, at the same place.
  std::map<std::string, std::string> sources_;
};

/// The user's input is wrong. The application prints what() and ends with exit code 2.
class InputError : public std::runtime_error {
 public:
  explicit InputError(Diagnostics diagnostics);
  /// One problem that has no place in a file.
  explicit InputError(const std::string& message, const std::string& help = {});
  /// One problem at a place.
  InputError(Position position, const std::string& message, const std::string& help = {});
  [[nodiscard]] const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  Diagnostics diagnostics_;
};

/// The candidate that the user most likely meant (edit distance at most a third of its length), or an empty string.
[[nodiscard]] std::string closest(std::string_view word, const std::vector<std::string>& candidates);

/// "did you mean 'x'?" for a close candidate, otherwise "known: a, b, c".
[[nodiscard]] std::string suggestion(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace hdpsim
