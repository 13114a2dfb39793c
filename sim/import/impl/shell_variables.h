#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/import/impl/shell_text.h"

namespace hdpsim {

struct ShellVariable {
  std::vector<ShellText> items;  ///< One, unless it is an array.

  /// Characters that it holds, with what a word takes in addition.
  [[nodiscard]] std::size_t bytes() const;
};

/// The variables of a shell, whose changes can be taken back, and the arguments of its script or function.
class ShellVariables {
 public:
  using Changes = std::map<std::string, std::optional<ShellVariable>>;  ///< By name; empty: it has no value.

  /// Null if it has no value. Asking counts as a use of a value that is fixed.
  [[nodiscard]] const ShellVariable* find(const std::string& name) const;
  /// Sets a name, or takes its value away. A name that is fixed stays as it is.
  void set(const std::string& name, std::optional<ShellVariable> value);
  /// The variable, to be changed; made if it is not there, null if its value is fixed.
  [[nodiscard]] ShellVariable* change(const std::string& name);

  /// Bytes of values that were kept to be taken back, since it was last asked.
  [[nodiscard]] std::size_t take_noted() { return std::exchange(noted_, 0); }

  /// From here on changes are noted, until they are taken back; openings may hold each other.
  void open() { changed_.emplace_back(); }
  /// Takes back what changed since the last opening, and returns the values that there were.
  Changes take_back();
  void apply(Changes changes);

  /// Keeps the value of a name, or of an argument of the script (`1`), from now on.
  void fix(const std::string& name, const std::string& value);
  /// Names with a fixed value that nothing asked for or assigned to.
  [[nodiscard]] std::vector<std::string> unused() const;
  [[nodiscard]] const std::map<std::string, ShellVariable>& all() const { return variables_; }

  /// Arguments of the script or the function, `$1` first; those that nobody gives are not known.
  std::vector<ShellVariable> arguments;
  [[nodiscard]] std::vector<ShellText> all_arguments() const;

 private:
  void note(const std::string& name);

  std::map<std::string, ShellVariable> variables_;
  std::vector<Changes> changed_;               // values before the changes, the last opening behind
  std::size_t noted_ = 0;                      // bytes of them, since take_noted()
  mutable std::map<std::string, bool> fixed_;  // whether it was used
};

}  // namespace hdpsim
