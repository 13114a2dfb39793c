#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"

namespace hdpsim {

/// The name that positions of `--set` options carry in diagnostics.
inline constexpr char override_source[] = "--set";

/// Whether a dotted path is `outer` or leads to something in it, as data.lengths.preset leads into data.lengths.
[[nodiscard]] bool is_at_or_below(std::string_view path, std::string_view outer);

/// All assignments, one per line: the text that positions in override_source refer to.
[[nodiscard]] std::string override_text(const std::vector<std::string>& assignments);

/// A key that studies state elsewhere than they used to (KeyNotes::formerly), by its paths.
struct MovedKey {
  std::string from;  ///< "mesh.recompute"
  std::string to;    ///< "training.recompute"
  friend bool operator==(const MovedKey&, const MovedKey&) = default;
};

/// The path at which a study states today what this path leads to.
[[nodiscard]] std::string present_path(const std::string& path);

/// set_path() in a study, where the path may be one of older files, and the value a whole section as they state it.
bool put_at(Value& study, const std::string& path, const Value& value, Diagnostics& diagnostics);

/// Puts keys of a study that stand where older files state them where they belong: those of its sections and of its
/// background jobs, the paths of its sweep and of `tune.space`. Returns them, each once. A key that is stated at both
/// places is reported, with both positions.
std::vector<MovedKey> move_keys(Value& study, Diagnostics& diagnostics);

/// Applies `key=value` texts in order; a value is YAML: `data.context=1Mi`, `plans=[hdp-naive]`. Options of the only
/// plan of a policy are set by its name: `plans.hdp-balance.offload=auto`. Paths of older files lead to the present
/// ones. What is set is no longer swept. After `sweep.`, the rest is one key that is itself a path:
/// `sweep.data.context=[1Mi, 2Mi]`.
void apply_overrides(Value& root, const std::vector<std::string>& assignments, Diagnostics& diagnostics);

/// The name that positions of `--without` options carry in diagnostics.
inline constexpr char without_source[] = "--without";

/// The mechanisms that can be left out of a study, as named by the declarations of keys and of policies' options:
/// `offload`, `balance`, `dynamic-groups`, `contention`, `noise`, `faults`, `failures`, `loading`, `overheads`,
/// `background`, `recompute`, `cold-connections`.
[[nodiscard]] std::vector<std::string> mechanism_names();

/// Whether a resolved study has the mechanism of this name: whether turning it off changes the study.
[[nodiscard]] bool has_mechanism(const Value& resolved, std::string_view name);

/// Turns mechanisms off in a study that has been read from its file, with the keys that a user would set: the result is
/// a study like any other, and the resolved one states how it was run. Turning off a mechanism that the study does not
/// have is no problem; all unknown names are reported.
void apply_without(Value& study, const std::vector<std::string>& names, Diagnostics& diagnostics);

}  // namespace hdpsim
