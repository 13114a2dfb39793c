#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"

namespace hdpsim {

/// The name that positions of `--set` options carry in diagnostics.
inline constexpr char override_source[] = "--set";

/// Sets the value at a dotted path and creates missing parents, all at the position of the value: a path with a typing
/// error is then reported as an unknown key where it was written. Returns false, with a problem reported, as
/// set_path().
bool put_at(Value& root, const std::string& path, const Value& value, Diagnostics& diagnostics);

/// Whether a dotted path is `outer` or leads to something in it, as data.lengths.preset leads into data.lengths.
[[nodiscard]] bool is_at_or_below(std::string_view path, std::string_view outer);

/// All assignments, one per line: the text that positions in override_source refer to.
[[nodiscard]] std::string override_text(const std::vector<std::string>& assignments);

/// Applies `key=value` texts in order; a value is YAML: `data.context=1Mi`, `plans=[hdp-naive]`. Options of the only
/// plan of a policy are set by its name: `plans.hdp-balance.offload=auto`. What is set is no longer swept. After
/// `sweep.`, the rest is one key that is itself a path: `sweep.data.context=[1Mi, 2Mi]`.
void apply_overrides(Value& root, const std::vector<std::string>& assignments, Diagnostics& diagnostics);

}  // namespace hdpsim
