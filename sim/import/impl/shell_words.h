#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sim/import/shell_script.h"

namespace hdpsim {

class ShellFields;

struct ShellVariable {
  std::vector<ShellText> items;  ///< One, unless it is an array.
};

/// The words of a script from a place on: quotes and expansions, by the variables as they are. What is read while it is
/// muted has no effect, as in a branch that is not taken.
class ShellWords {
 public:
  ShellWords(const std::string& text, Diagnostics& diagnostics, std::string file);

  // ---- The place
  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const;
  [[nodiscard]] bool starts_with(std::string_view begin) const;
  [[nodiscard]] std::uint32_t offset() const { return static_cast<std::uint32_t>(at_); }
  void advance(std::size_t by = 1) { at_ = std::min(at_ + by, text_.size()); }
  void go_to(std::size_t offset) { at_ = std::min(offset, text_.size()); }
  [[nodiscard]] std::string_view rest() const { return std::string_view(text_).substr(std::min(at_, text_.size())); }
  /// Skips blanks and continued lines, and a comment if one begins here.
  void skip_blanks();
  /// Reports a problem at an offset, and goes to the end of the script.
  void give_up(std::uint32_t at, const std::string& message);

  // ---- Words
  /// The word here, behind expansions, which can be none or many. Ends at a blank or an operator.
  std::vector<ShellText> word();
  /// The same without splitting, as on the right side of an assignment.
  ShellText whole_word();
  /// The words of `(a b c)`, the place being behind the first parenthesis; ends behind the last.
  std::vector<ShellText> list();

  // ---- Variables
  enum class Assignment : std::uint8_t { replace, append_items, append_text };
  /// Returns the value that was replaced, if there was one.
  std::optional<ShellVariable> assign(const std::string& name, std::vector<ShellText> items, Assignment how);
  /// Sets a name, or takes its value away.
  void put(const std::string& name, std::optional<ShellVariable> value);
  /// All variables as they are. Counts as text that they hold: a script of many subshells is given up as one of many
  /// long variables is.
  [[nodiscard]] std::map<std::string, ShellVariable> snapshot();
  /// Keeps the value of a name from now on.
  void fix(const std::string& name, const std::string& value);
  [[nodiscard]] const std::map<std::string, ShellVariable>& variables() const { return variables_; }
  /// Names that the script does not set and gives a default, with it.
  [[nodiscard]] const std::map<std::string, std::string>& defaults() const { return defaults_; }

  bool muted = false;

 private:
  enum class Mode : std::uint8_t { split, whole, quoted };

  void part(ShellFields& fields, Mode mode);
  void single_quoted(ShellFields& fields);
  void double_quoted(ShellFields& fields, Mode mode);
  void escaped(ShellFields& fields, Mode mode);
  void dollar(ShellFields& fields, Mode mode);
  void braces(ShellFields& fields, Mode mode);
  void operand(ShellFields& fields, Mode mode);
  void arithmetic(ShellFields& fields);
  void substitution(ShellFields& fields);
  void backticks(ShellFields& fields);
  void expand(ShellFields& fields, const std::string& name, Mode mode, bool all_items);
  void use_default(ShellFields& fields, const std::string& name, char kind, bool counts_empty, Mode mode);
  [[nodiscard]] std::string name_here();
  [[nodiscard]] bool is_set(const std::string& name, bool counts_empty) const;
  [[nodiscard]] std::optional<std::string> number_text(const std::string& name) const;
  bool spend(std::size_t bytes, std::uint32_t at);

  const std::string& text_;
  Diagnostics& diagnostics_;
  std::string file_;
  std::size_t at_ = 0;
  std::map<std::string, ShellVariable> variables_;
  std::set<std::string> fixed_;
  std::map<std::string, std::string> defaults_;
  std::size_t spent_ = 0;
  int depth_ = 0;
};

}  // namespace hdpsim
