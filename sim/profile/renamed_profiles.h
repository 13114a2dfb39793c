#pragma once

#include <string>
#include <string_view>

namespace hdpsim {

/// A shipped profile that had another name. The old one still reads.
struct RenamedProfile {
  std::string_view old;
  std::string_view name;     ///< The name of today, and of the profile that is read.
  std::string_view meaning;  ///< What it describes, and what to write by those who meant something else.
};
/// The row of an old name; null for all other names.
[[nodiscard]] const RenamedProfile* find_renamed_profile(std::string_view name);
/// What to tell those who use an old name; empty for all other names.
[[nodiscard]] std::string renamed_profile_note(std::string_view name);

}  // namespace hdpsim
