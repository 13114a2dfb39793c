#pragma once

#include <string>
#include <vector>

#include "sim/document/document.h"

namespace hdpsim {

/// The name that positions of `--without` options carry in diagnostics.
inline constexpr char without_source[] = "--without";

/// What a study simulates and can be left out of it, as the declarations of keys and of policies' options name it:
/// `offload`, `balance`, `dynamic-groups`, `contention`, `noise`, `faults`, `failures`, `loading`, `overheads`,
/// `background`, `recompute`, `cold-connections`.
[[nodiscard]] std::vector<std::string> mechanism_names();

/// Turns mechanisms off in a study that has been read from its file, by the keys that a user would set: what is left is
/// a study like any other, and the resolved one says what it was run with. A mechanism that the study has not is no
/// problem; unknown names are reported, all of them.
void apply_without(Value& study, const std::vector<std::string>& names, Diagnostics& diagnostics);

}  // namespace hdpsim
