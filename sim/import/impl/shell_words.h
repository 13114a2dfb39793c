#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/diagnostic.h"
#include "sim/import/impl/shell_text.h"
#include "sim/import/impl/shell_variables.h"

namespace hdpsim {

class ShellFields;

/// A text that a shell reads: a script, or a text in it that another command reads as one.
struct ShellSource {
  std::string text;
  std::vector<std::uint32_t> from = {};               ///< As in ShellText; empty: it is the script itself.
  std::map<std::size_t, ShellUnknown> unknowns = {};  ///< Which unknown a character of the text replaces, by its place.

  /// The text of a word; each unknown part is one character.
  [[nodiscard]] static ShellSource of(const ShellText& text);
};

/// The words of a text from a place on: quotes and expansions, by the variables as they are. What is read while it is
/// muted has no effect, as in a branch that is not taken. All that a script computes has one limit.
class ShellWords {
 public:
  ShellWords(const std::string& script, Diagnostics& diagnostics, std::string file);

  // ---- The place
  struct Spot {
    const ShellSource* source = nullptr;
    std::size_t at = 0;
  };
  [[nodiscard]] Spot spot() const { return {source_, at_}; }
  void go_to(const Spot& spot);
  [[nodiscard]] bool at_end() const { return has_given_up_ || at_ >= text().size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const;
  [[nodiscard]] bool starts_with(std::string_view begin) const { return rest().starts_with(begin); }
  /// The offset in the script from which the character here is.
  [[nodiscard]] std::uint32_t place() const { return place_of(at_); }
  [[nodiscard]] std::size_t offset() const { return at_; }
  void advance(std::size_t by = 1) { at_ = std::min(at_ + by, text().size()); }
  [[nodiscard]] std::string_view rest() const { return std::string_view(text()).substr(std::min(at_, text().size())); }
  /// Skips blanks and continued lines, and a comment if one begins here.
  void skip_blanks();
  /// Reports a problem at an offset of the script, and reads nothing more.
  void give_up(std::uint32_t place, const std::string& message);
  /// Counts bytes that are read again, or held a second time; gives up beyond the limit.
  bool spend(std::size_t bytes);

  // ---- Words
  /// The word here, behind expansions, which can be none or many. Ends at a blank or an operator.
  std::vector<ShellText> word();
  /// The same without splitting, as on the right side of an assignment.
  ShellText whole_word();
  /// The words of `(a b c)`, the place being behind the first parenthesis; ends behind the last.
  std::vector<ShellText> list();
  /// The text up to an offset of this source with its expansions, as in a here-document.
  ShellText document(std::size_t end);
  /// The value of an expression, with what it sets; names that it may set are not known behind one that is not
  /// computed.
  std::optional<std::int64_t> evaluated(const ShellText& expression, std::uint32_t place);

  // ---- Variables
  enum class Assignment : std::uint8_t { replace, append_items, append_text };
  void assign(const std::string& name, std::vector<ShellText> items, Assignment how);
  /// Leaves a name without a value that is known.
  void forget(const std::string& name, const std::string& why);
  /// Names that the script does not set and gives a default, with it.
  [[nodiscard]] const std::map<std::string, std::string>& defaults() const { return defaults_; }

  ShellVariables variables;
  bool muted = false;

 private:
  enum class Mode : std::uint8_t { split, whole, quoted };

  [[nodiscard]] const std::string& text() const { return source_->text; }
  [[nodiscard]] std::uint32_t place_of(std::size_t at) const;
  void part(ShellFields& fields, Mode mode);
  void single_quoted(ShellFields& fields);
  void double_quoted(ShellFields& fields, Mode mode);
  void escaped(ShellFields& fields, Mode mode);
  void dollar(ShellFields& fields, Mode mode);
  void braces(ShellFields& fields, Mode mode);
  void not_expanded(ShellFields& fields, Mode mode, std::size_t begin);
  void operand(ShellFields& fields, Mode mode);
  void arithmetic(ShellFields& fields);
  void substitution(ShellFields& fields);
  bool sum_of_expr(ShellFields& fields, std::size_t begin, std::size_t end);
  void backticks(ShellFields& fields);
  void argument(ShellFields& fields, Mode mode, char name);
  void expand(ShellFields& fields, const std::string& name, Mode mode, bool all_items);
  void expand_item(ShellFields& fields, const std::string& name, Mode mode, std::size_t index);
  std::optional<std::size_t> index_here();
  void expand_items(ShellFields& fields, const std::vector<ShellText>& items, Mode mode);
  void use_default(ShellFields& fields, const std::string& name, Mode mode);
  void add_not_computed(ShellFields& fields, std::size_t begin, std::size_t end);
  [[nodiscard]] std::string name_here();
  [[nodiscard]] const std::vector<ShellText>* items_of(const std::string& name) const;
  [[nodiscard]] bool is_set(const std::string& name, bool counts_empty) const;

  ShellSource script_;
  const ShellSource* source_ = &script_;
  Diagnostics& diagnostics_;
  std::string file_;
  std::size_t at_ = 0;
  std::uint32_t dollar_ = ShellText::nowhere;  // the place of the expansion that is read
  std::map<std::string, std::string> defaults_;
  std::size_t spent_ = 0;
  int terms_ = 0;
  int depth_ = 0;
  bool has_given_up_ = false;
};

}  // namespace hdpsim
