#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"

namespace hdpsim {

/// The name that positions of `--without` options carry in diagnostics.
inline constexpr char without_source[] = "--without";

/// One thing that a study simulates and that can be left out of it.
struct Mechanism {
  std::string_view name;
  std::string_view keys;  ///< The same by `--set`, for people.
};

/// `offload`, `balance`, `dynamic-groups`, `contention`, `noise`, `faults`, `failures`, `loading`, `background`,
/// `recompute`, `cold-connections`.
[[nodiscard]] const std::vector<Mechanism>& mechanisms();
[[nodiscard]] std::vector<std::string> mechanism_names();

/// Turns mechanisms off in a study that has been read from its file, by the keys that a user would set: what is left is
/// a study like any other, and the resolved one says what it was run with. A mechanism that the study has not is no
/// problem; unknown names are reported, all of them.
void apply_without(Value& study, const std::vector<std::string>& names, Diagnostics& diagnostics);

}  // namespace hdpsim
