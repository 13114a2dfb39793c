#include <algorithm>
#include <map>

#include "sim/base/check.h"
#include "sim/network/impl/algorithms.h"
#include "sim/network/impl/collective_plan_builder.h"

namespace hdpsim {
namespace {

// Adds what a node's members send the port of a NIC and get back from it.
void add_star(CollectivePlanBuilder& builder, std::span<const DeviceId> members, DeviceId port, double in, double out) {
  for (const DeviceId member : members) {
    if (member == port) continue;
    if (in > 0) builder.send(member, port, in);
    if (out > 0) builder.send(port, member, out);
  }
}

// Loads the tree of switches between the ports on one NIC with the parts of an all-gather, of which each port has one:
// a link up carries those of the ports below it, a link down all others. A reduce-scatter is the reverse.
void add_copies(CollectivePlanBuilder& builder, const MembersByNode& members, std::size_t nic, bool gathers) {
  std::map<LinkId, double> below_up;
  std::map<LinkId, double> below_down;
  const DeviceId root = members.port(0, nic);
  for (std::size_t node = 1; node < members.nodes(); ++node) {
    const DeviceId port = members.port(node, nic);
    const Route up = builder.watch(port, root);
    const Route down = builder.watch(root, port);
    for (const auto& [link, share] : up.binding_links()) below_up[link] += share;
    for (const auto& [link, share] : down.binding_links()) below_down[link] += share;
  }
  const auto all = static_cast<double>(members.nodes());
  for (const auto& [link, below] : below_up) builder.load(link, gathers ? below : all - below);
  for (const auto& [link, below] : below_down) builder.load(link, gathers ? all - below : below);
}

// Every device has a NIC of its own, over which its part goes out once.
CollectivePlan gather_or_scatter(CollectivePlanBuilder builder, const PlanTask& task) {
  const MembersByNode& members = task.members;
  const bool gathers = task.kind == CollectiveKind::all_gather;
  HDPSIM_CHECK(members.nics() * members.nodes() == members.devices(), "{} devices on {} nodes with {} NICs each",
               members.devices(), members.nodes(), members.nics());
  const auto parts = static_cast<double>(members.nodes());  // that pass each NIC
  for (std::size_t nic = 0; nic < members.nics(); ++nic) {
    for (std::size_t node = 0; node < members.nodes(); ++node) {
      add_star(builder, members.of(node), members.port(node, nic), gathers ? 0 : parts, gathers ? parts : 0);
    }
    add_copies(builder, members, nic, gathers);
    builder.end_part();
  }
  return builder.finish(1 / static_cast<double>(members.devices()), {.inside = 1, .between = 1});
}

}  // namespace

CollectivePlan plan_collnet_chain(CollectivePlanBuilder builder, const PlanTask& task) {
  const MembersByNode& members = task.members;
  HDPSIM_CHECK(task.kind == CollectiveKind::all_reduce && members.nodes() > 1, "a CollNet chain for {} on {} nodes",
               collective_name(task.kind), members.nodes());
  const bool in_parts = builder.grain() == PlanGrain::parts;
  std::size_t most = 0;
  for (std::size_t node = 0; node < members.nodes(); ++node) {
    if (!in_parts) add_chains(builder, members.of(node), members.ports(node), 1);
    most = std::max(most, members.of(node).size());
  }
  for (std::size_t nic = 0; nic < members.nics(); ++nic) {
    for (std::size_t node = 0; in_parts && node < members.nodes(); ++node) {
      add_chains(builder, members.of(node), members.ports(node).subspan(nic, 1), 1);
    }
    add_switch_tree(builder, members, nic);
    builder.end_part();
  }
  return builder.finish(1 / static_cast<double>(members.nics()), {.inside = 2 * (most - 1), .between = 1});
}

CollectivePlan plan_collnet_direct(CollectivePlanBuilder builder, const PlanTask& task) {
  const MembersByNode& members = task.members;
  const bool gathers = task.kind == CollectiveKind::all_gather || task.kind == CollectiveKind::reduce_scatter;
  HDPSIM_CHECK((gathers || task.kind == CollectiveKind::all_reduce) && members.nodes() > 1,
               "CollNet direct for {} on {} nodes", collective_name(task.kind), members.nodes());
  if (gathers) return gather_or_scatter(std::move(builder), task);
  for (std::size_t nic = 0; nic < members.nics(); ++nic) {
    for (std::size_t node = 0; node < members.nodes(); ++node) {
      add_star(builder, members.of(node), members.port(node, nic), 1, 1);
    }
    add_switch_tree(builder, members, nic);
    builder.end_part();
  }
  return builder.finish(1 / static_cast<double>(members.nics()), {.inside = 2, .between = 1});
}

namespace {

bool has_collnet(const NcclGroup& group) {
  return group.nodes > 1 && group.in_network_reduction;
}

// All data pass a node's links twice, up to the NICs and back, and each NIC once in either direction.
double both_ways_bytes_per_s(const NcclGroup& group) {
  const double over_nics = 2 * group.node_bytes_per_s();
  return group.ranks > group.nodes ? std::min(group.nvlink_bytes_per_s, over_nics) : over_nics;
}

// Where a node has one rank, nothing hides the network.
double step_between_us(const NcclGroup& group, double hidden) {
  return group.ranks > group.nodes ? hidden : tree_step_between_us(Protocol::simple);
}

// How many times longer it takes where ranks of a node share a NIC.
double loss_on_shared_nics(const NcclGroup& group) {
  static const double each = nccl::number("share.collnet_direct_shared");
  const double ranks_per_nic = std::max(1.0, group.in_node() / static_cast<double>(group.channels));
  return 1 + (ranks_per_nic - 1) * each;
}

}  // namespace

void append_collnet_chain_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways) {
  static const double inside = nccl::microseconds("step.collnet.chain");
  static const double between = nccl::microseconds("step.network.collnet_chain");
  static const double share = nccl::number("share.collnet_all_reduce");
  const NcclGroup& group = question.group;
  if (!has_collnet(group) || question.kind != CollectiveKind::all_reduce) return;
  const double latency = 2 * (group.in_node() - 1) * inside + step_between_us(group, between);
  ways.push_back(nccl_time(CollectiveAlgorithm::collnet_chain, Protocol::simple, latency,
                           both_ways_bytes_per_s(group) * share, question.bytes));
}

// NCCL has it for NVSwitches and up to eight ranks of a node; where ranks share a NIC, for all_reduce only.
void append_collnet_direct_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways) {
  static const double inside = nccl::microseconds("step.collnet.direct");
  static const double each_rank = nccl::microseconds("step.collnet.direct_rank");
  static const double between = nccl::microseconds("step.network.collnet_direct");
  static const double most_in_node = nccl::number("collnet_direct_ranks");
  static const double all_reduce_share = nccl::number("share.collnet_all_reduce");
  static const double network_share = nccl::number("share.collnet_gather_network");
  static const auto device_share = nccl::ByCapability::numbers("share.collnet_direct", "share");
  const NcclGroup& group = question.group;
  const double in_node = group.in_node();
  if (!has_collnet(group) || !group.has_nvlink || in_node > most_in_node) return;
  double rate = 0;
  if (question.kind == CollectiveKind::all_reduce) {
    rate = both_ways_bytes_per_s(group) * all_reduce_share * device_share.at(group.compute_capability) /
           loss_on_shared_nics(group);
  } else if (question.kind == CollectiveKind::all_gather || question.kind == CollectiveKind::reduce_scatter) {
    if (!group.is_even || in_node > static_cast<double>(group.channels)) return;
    rate = std::min(both_ways_bytes_per_s(group), group.node_bytes_per_s() * network_share);
  } else {
    return;
  }
  const double latency =
      2 * (std::min(1.0, in_node - 1) * inside + (in_node - 1) * each_rank) + step_between_us(group, between);
  ways.push_back(nccl_time(CollectiveAlgorithm::collnet_direct, Protocol::simple, latency, rate, question.bytes));
}

}  // namespace hdpsim
