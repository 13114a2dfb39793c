#pragma once

#include <string>
#include <vector>

#include "sim/document/document.h"

namespace hdpsim {

/// The name that positions of `--set` options carry in diagnostics.
inline constexpr char override_source[] = "--set";

/// Sets the value at a dotted path and creates what is missing on the way, all of it at the position of the value: a
/// path with a typing error is then told as an unknown key where it was written. False, with a problem reported, as
/// set_path().
bool put_at(Value& root, const std::string& path, const Value& value, Diagnostics& diagnostics);

/// All assignments, one a line: the text that positions in override_source refer to.
[[nodiscard]] std::string override_text(const std::vector<std::string>& assignments);

/// Applies `key=value` texts in their order; a value is YAML: `data.context=1Mi`, `plans=[hdp-naive]`. Behind `sweep.`
/// stands a key that is itself a path: `sweep.data.context=[1Mi, 2Mi]`.
void apply_overrides(Value& root, const std::vector<std::string>& assignments, Diagnostics& diagnostics);

}  // namespace hdpsim
