#pragma once

#include <cstdint>
#include <span>

#include "sim/network/impl/collective_plan_builder.h"
#include "sim/network/impl/members_by_node.h"

namespace hdpsim {

// Flows that several algorithms of collectives have in common.

/// Adds flows from one device to another and back.
void add_both_ways(CollectivePlanBuilder& builder, DeviceId one, DeviceId other, double flows);
/// Adds a chain inside a node for each port, up and down. The chain of a port goes from the port through all other
/// members, in cyclic order: it uses every hop except the one into the port.
void add_chains(CollectivePlanBuilder& builder, std::span<const DeviceId> members, std::span<const std::uint32_t> ports,
                double flows);
/// Loads the links between the ports of all nodes on one NIC and the port of the first, each with one flow in either
/// direction: switches reduce on the way to it, and copy on the way back.
void add_switch_tree(CollectivePlanBuilder& builder, const MembersByNode& members, std::size_t nic);

}  // namespace hdpsim
