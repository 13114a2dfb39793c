#pragma once

#include "sim/document/key_table.h"
#include "sim/study/point.h"

namespace hdpsim {

// Conditions for KeyNotes::written: studies whose mesh has more than one pipeline stage, and those that state anything
// about experts, `moe` or `mesh.ep`.
[[nodiscard]] bool written_with_stages(const Value& study);
[[nodiscard]] bool written_with_experts(const Value& study);

/// The keys of `mesh`. read_mesh() checks that their values are consistent.
[[nodiscard]] const KeyTable<PointSpec>& mesh_keys();

/// Reads `mesh` and `training` of a study into a point whose model, cluster and profile have been read: degrees, nodes,
/// capacity (tokens), placement, schedule, sharding, and how the framework trains. Values that do not fit each other,
/// the model or the cluster are reported. A study without `training` has all defaults.
/// Returns true if the number and kind of the mesh's devices are known, with or without problems.
[[nodiscard]] bool read_mesh(const Value& study, PointSpec& point, Diagnostics& diagnostics);

/// Checks that every device of an expert group has the same number of experts, and that ranks consist of whole groups
/// or groups of whole ranks. If the mesh is not known, only the number of experts is checked.
void check_expert_groups(const Value& study, const PointSpec& point, bool mesh_is_known, Diagnostics& diagnostics);

/// Checks that groups that shard states (Mesh::shard_ranks) divide the ranks, and that they are known for the study.
void check_shard_groups(const Value& study, const PointSpec& point, bool mesh_is_known, Diagnostics& diagnostics);

}  // namespace hdpsim
