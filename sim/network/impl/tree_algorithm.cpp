#include <algorithm>
#include <bit>

#include "sim/network/impl/collective_plans.h"

namespace hdpsim {
namespace {

// In order: odd numbers are leaves, the lowest bit of a number says how high it stands.
std::size_t first_tree_parent(std::size_t node, std::size_t nodes) {
  if (node == 0) return 0;
  const std::size_t bit = node & (~node + 1);
  const std::size_t above = (node ^ bit) | (bit << 1U);
  return above < nodes ? above : node ^ bit;
}

void add_both_ways(CollectivePlanBuilder& builder, DeviceId one, DeviceId other, double flows) {
  builder.send(one, other, flows);
  builder.send(other, one, flows);
}

// The chain of each port goes from it through all others, in cyclic order: it uses every hop but that into the port.
void add_chains(CollectivePlanBuilder& builder, std::span<const DeviceId> members, std::span<const std::uint32_t> ports,
                double flows) {
  if (members.size() == 1) return;
  for (std::size_t to = 0; to < members.size(); ++to) {
    const auto without = static_cast<std::size_t>(std::count(ports.begin(), ports.end(), to));
    const std::size_t chains = ports.size() - without;
    const std::size_t from = (to + members.size() - 1) % members.size();
    if (chains > 0) add_both_ways(builder, members[from], members[to], static_cast<double>(chains) * flows);
  }
}

/// The trees between nodes of all NICs. `inside(node, ports, trees)` adds what so many trees of these ports do in a
/// node.
template <class Inside>
void add_trees(CollectivePlanBuilder& builder, const MembersByNode& members, const Inside& inside) {
  const bool in_parts = builder.grain() == PlanGrain::parts;
  for (std::size_t node = 0; !in_parts && node < members.nodes(); ++node) inside(node, members.ports(node), 2);
  for (std::size_t nic = 0; nic < members.nics(); ++nic) {
    for (const bool second : {false, true}) {
      for (std::size_t node = 0; node < members.nodes(); ++node) {
        if (in_parts) inside(node, members.ports(node).subspan(nic, 1), 1);
        const std::size_t parent = tree_parent(node, members.nodes(), second);
        if (parent != node) add_both_ways(builder, members.port(node, nic), members.port(parent, nic), 1);
      }
      builder.end_part();
    }
  }
}

std::size_t depth(std::size_t nodes) {
  return static_cast<std::size_t>(std::bit_width(nodes)) - 1;
}

}  // namespace

std::size_t tree_parent(std::size_t node, std::size_t nodes, bool second) {
  if (!second) return first_tree_parent(node, nodes);
  if (nodes % 2 == 0) return nodes - 1 - first_tree_parent(nodes - 1 - node, nodes);  // mirrored
  return (first_tree_parent((node + nodes - 1) % nodes, nodes) + 1) % nodes;          // shifted by one
}

CollectivePlan plan_tree(CollectivePlanBuilder builder, const MembersByNode& members) {
  if (members.nodes() == 1) {
    add_chains(builder, members.of(0), std::array<std::uint32_t, 1>{0}, 1);
    return builder.finish(1, {.inside = 2 * (members.devices() - 1)});
  }
  std::size_t most = 0;
  add_trees(builder, members, [&](std::size_t node, std::span<const std::uint32_t> ports, int trees) {
    add_chains(builder, members.of(node), ports, trees);
    most = std::max(most, members.of(node).size());
  });
  return builder.finish(0.5 / static_cast<double>(members.nics()),
                        {.inside = 2 * (most - 1), .between = 2 * depth(members.nodes())});
}

// A device sends its data for the switch to add up and receives the sum; 1/g of either is its own part of the work.
CollectivePlan plan_nvls_tree(CollectivePlanBuilder builder, const MembersByNode& members) {
  add_trees(builder, members, [&](std::size_t node, std::span<const std::uint32_t> ports, int trees) {
    const double own = 1 + 1 / static_cast<double>(members.of(node).size());
    const double flows = own * trees * static_cast<double>(ports.size());
    builder.pass_nvswitch(members.of(node), flows, flows);
  });
  return builder.finish(0.5 / static_cast<double>(members.nics()),
                        {.inside = 2, .between = 2 * depth(members.nodes())});
}

}  // namespace hdpsim
