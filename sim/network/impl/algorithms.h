#pragma once

#include "sim/network/collective_plan.h"
#include "sim/network/impl/collective_plan_builder.h"
#include "sim/network/impl/members_by_node.h"

namespace hdpsim {

// The algorithms of plan_collective, a file each. Kinds that an algorithm does not have are refused (checked).

[[nodiscard]] CollectivePlan plan_ring(CollectivePlanBuilder builder, CollectiveKind kind,
                                       const MembersByNode& members);
[[nodiscard]] CollectivePlan plan_tree(CollectivePlanBuilder builder, const MembersByNode& members);
[[nodiscard]] CollectivePlan plan_nvls(CollectivePlanBuilder builder, CollectiveKind kind,
                                       const MembersByNode& members);
[[nodiscard]] CollectivePlan plan_nvls_tree(CollectivePlanBuilder builder, const MembersByNode& members);
[[nodiscard]] CollectivePlan plan_pat(CollectivePlanBuilder builder, const MembersByNode& members);
[[nodiscard]] CollectivePlan plan_all_to_all(CollectivePlanBuilder builder, const MembersByNode& members);
[[nodiscard]] CollectivePlan plan_send_recv(CollectivePlanBuilder builder, std::span<const DeviceId> devices);

/// The parent of a node in the first or the second of two binary trees over `nodes` nodes; of a root, the node itself.
/// A leaf of the first is none of the second but where a tree has less than two levels.
[[nodiscard]] std::size_t tree_parent(std::size_t node, std::size_t nodes, bool second);

}  // namespace hdpsim
