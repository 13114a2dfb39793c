#pragma once

#include "sim/study/point.h"

namespace hdpsim {

/// Reads `mesh` of a study into a point whose model, cluster and profile are read already: degrees, nodes, capacity
/// (tokens), placement, schedule, sharding and overlap. What does not fit the model or the cluster is reported.
/// True where it is known how many devices of which kind the mesh has, right or wrong.
[[nodiscard]] bool read_mesh(const Value& mesh, PointSpec& point, Diagnostics& diagnostics);

/// Every device of an expert group has equally many experts, and groups fill ranks or the other way round. Of a mesh
/// that is not known only the number of experts is checked.
void check_expert_groups(const Value& study, const PointSpec& point, bool mesh_is_known, Diagnostics& diagnostics);

}  // namespace hdpsim
