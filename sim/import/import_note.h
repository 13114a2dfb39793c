#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/diagnostic.h"

namespace hdpsim {

/// Something that a user has to know of a training configuration that became a study.
struct ImportNote {
  /// The order is that in which they are told.
  enum class Kind : std::uint8_t {
    unsaid,    ///< The simulator knows the argument and cannot say what it does.
    unknown,   ///< Nobody knows the argument here.
    repeated,  ///< An argument with two values, of which the last counts.
    assumed,   ///< What the file does not say.
    ignored,   ///< The argument touches neither the time of a step nor its memory; `text` is its name.
  };
  Kind kind = Kind::assumed;
  Position position;  ///< Line 0: the note has no place in the file.
  std::string text;   ///< What it is, and what follows.
};

using ImportNotes = std::vector<ImportNote>;

/// The notes for people, kind by kind, each with `file:line:column`; ignored arguments together. Ends with a newline
/// unless there are none.
[[nodiscard]] std::string text_of(const ImportNotes& notes);

}  // namespace hdpsim
