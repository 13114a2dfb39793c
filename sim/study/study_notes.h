#pragma once

#include <string>
#include <vector>

namespace hdpsim {

struct Study;

/// Keys of `mesh` that say something else than their default, in the study or its sweep, and change nothing at any of
/// its points, each with what it needs: one line each.
[[nodiscard]] std::vector<std::string> idle_key_notes(const Study& study);

/// What a study should tell beside its results, one line each: what is left out of its models and clusters
/// (not_modelled.h), costs that its profiles do not know, and keys without effect.
[[nodiscard]] std::vector<std::string> study_notes(const Study& study);

}  // namespace hdpsim
