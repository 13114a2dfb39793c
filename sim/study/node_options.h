#pragma once

#include <optional>
#include <string>

#include "sim/analysis/metrics.h"
#include "sim/cluster/node_choice.h"
#include "sim/document/key.h"
#include "sim/document/reader.h"
#include "sim/study/point.h"

namespace hdpsim {

/// The shape of a list of nodes: `0-127`, `every 2`.
[[nodiscard]] KeyShape nodes_shape();
/// The keys of `mesh.nodes` where it is a map: nodes that are free, of which as many are chosen as the job needs.
[[nodiscard]] KeyShape node_choice_shape();

/// Reads that map for a point whose model and cluster have been read. Without `alpha`, it is that of the paper's
/// characterised job of the same kind: 0 for dense models, 0.3 for those with experts. Every problem is reported, and
/// the result is then empty.
[[nodiscard]] std::optional<NodeChoice> read_node_choice(const Value& value, const PointSpec& point,
                                                         Diagnostics& diagnostics);

/// Takes the nodes that the study's `background` names out of the free ones.
void leave_to_background(const Value& study, const ClusterSpec& cluster, NodeChoice& choice);

/// Sets the nodes of a point whose mesh is known by its choice. Reported at `position`: too few free nodes, with those
/// of each pod; a mesh that is no whole number of nodes, or not one of whole rows.
void choose_nodes_of(PointSpec& point, const Position& position, Diagnostics& diagnostics);

/// The spread of the point's groups over pods. Empty unless the study states nodes, in a cluster of several pods.
[[nodiscard]] std::optional<RunInfo::Placed> placed_groups(const PointSpec& point);
/// "12 of 40 free nodes by arnold (alpha 0.3) in 3 pods, data parallelism over up to 3 (mean 2.50), pipelines in one
/// each", for a point with a choice.
[[nodiscard]] std::string choice_text(const PointSpec& point);

}  // namespace hdpsim
