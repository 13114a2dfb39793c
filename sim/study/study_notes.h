#pragma once

#include <string>
#include <vector>

#include "sim/engine/world.h"
#include "sim/model/recipe.h"
#include "sim/profile/device_profile.h"

namespace hdpsim {

struct Study;

/// Keys of `mesh` and `training` that say something else than their default, in the study or its sweep, and change
/// nothing at any of its points, each with what it needs: one line each.
[[nodiscard]] std::vector<std::string> idle_key_notes(const Study& study);

/// What a study should tell beside its results, one line each: what is left out of its models and clusters
/// (model_notes), costs that its profiles do not know, keys without effect, and keys that have moved.
[[nodiscard]] std::vector<std::string> study_notes(const Study& study);

/// One line that says how long the study's largest step may take, for users who wait for its first figure. Empty where
/// that is below some seconds, that is up to a million sequences.
[[nodiscard]] std::string large_step_note(const Study& study);

/// Costs that exist in reality but are zero for this job because the profile does not know them, by the profile's keys:
/// `first_contact` and `communicator` in cold steps, `memory_per_peer`, `compute_beside_communication`.
[[nodiscard]] std::vector<std::string> not_modelled(const DeviceProfile& profile, const JobLayout& layout,
                                                    const Recipe& recipe);

/// Warnings for a study that has cold steps with a profile that does not state their costs; one line per profile and
/// missing figure.
[[nodiscard]] std::vector<std::string> cold_step_warnings(const Study& study);

/// What a model's configuration describes and the simulation leaves out or simplifies: its left_out, and what is said
/// of kinds of layers in configs/models/README.md.
[[nodiscard]] std::vector<std::string> simplifications_of(const Transformer& model);
/// Notes of these for every model of a study, one line each.
[[nodiscard]] std::vector<std::string> model_notes(const Study& study);
/// Notes of what the clusters of a study describe and its collectives cannot use, one line each.
[[nodiscard]] std::vector<std::string> network_notes(const Study& study);

}  // namespace hdpsim
