#pragma once

#include <string>
#include <vector>

#include "sim/document/document.h"

namespace hdpsim {

/// The name that positions of `--without` options carry in diagnostics.
inline constexpr char without_source[] = "--without";

/// The mechanisms that can be left out of a study, as named by the declarations of keys and of policies' options:
/// `offload`, `balance`, `dynamic-groups`, `contention`, `noise`, `faults`, `failures`, `loading`, `overheads`,
/// `background`, `recompute`, `cold-connections`.
[[nodiscard]] std::vector<std::string> mechanism_names();

/// Turns mechanisms off in a study that has been read from its file, with the keys that a user would set: the result is
/// a study like any other, and the resolved one states how it was run. Turning off a mechanism that the study does not
/// have is no problem; all unknown names are reported.
void apply_without(Value& study, const std::vector<std::string>& names, Diagnostics& diagnostics);

}  // namespace hdpsim
