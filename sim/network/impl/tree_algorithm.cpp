#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "sim/base/check.h"
#include "sim/network/impl/algorithms.h"
#include "sim/network/impl/collective_plan_builder.h"

namespace hdpsim {
namespace {

// Nodes are numbered in order: odd numbers are leaves, and the lowest set bit of a number gives its height.
std::size_t first_tree_parent(std::size_t node, std::size_t nodes) {
  if (node == 0) return 0;
  const std::size_t bit = node & (~node + 1);
  const std::size_t above = (node ^ bit) | (bit << 1U);
  return above < nodes ? above : node ^ bit;
}

/// The trees between nodes of all NICs. `inside(node, ports, trees)` adds the flows of `trees` trees per port inside a
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

CollectivePlan plan_tree(CollectivePlanBuilder builder, const PlanTask& task) {
  HDPSIM_CHECK(task.kind == CollectiveKind::all_reduce, "no tree does {}", collective_name(task.kind));
  const MembersByNode& members = task.members;
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

// A device sends its data for the switch to reduce, and receives the result; its own part of the work is 1/g of either.
CollectivePlan plan_nvls_tree(CollectivePlanBuilder builder, const PlanTask& task) {
  const MembersByNode& members = task.members;
  HDPSIM_CHECK(task.kind == CollectiveKind::all_reduce && members.nodes() > 1, "NVLS tree for {} on {} nodes",
               collective_name(task.kind), members.nodes());
  add_trees(builder, members, [&](std::size_t node, std::span<const std::uint32_t> ports, int trees) {
    const double own = 1 + 1 / static_cast<double>(members.of(node).size());
    const double flows = own * trees * static_cast<double>(ports.size());
    builder.pass_nvswitch(members.of(node), flows, flows);
  });
  return builder.finish(0.5 / static_cast<double>(members.nics()),
                        {.inside = 2, .between = 2 * depth(members.nodes())});
}

namespace {

// The share of its rate that a tree reaches at a size. NCCL steps from one entry to the next; in between, so that a
// larger collective never takes less.
double correction_of_tree(Protocol protocol, double bytes) {
  static const std::array<std::vector<double>, protocols> by_protocol = {nccl::numbers("tree_correction.ll"),
                                                                         nccl::numbers("tree_correction.ll128"),
                                                                         nccl::numbers("tree_correction.simple")};
  const std::vector<double>& shares = by_protocol.at(static_cast<std::size_t>(protocol));
  const double doublings = std::max(0.0, std::log2(bytes / 64));
  const auto share = [&](std::size_t entry) { return entry < shares.size() ? shares[entry] : 1.0; };
  const auto entry = static_cast<std::size_t>(doublings);
  return std::lerp(share(entry), share(entry + 1), doublings - std::floor(doublings));
}

CollectiveTime tree_way(const NcclQuestion& question, Protocol protocol) {
  static const nccl::ByProtocol base = nccl::microseconds_by_protocol("base.tree");
  static const double share = nccl::number("share.tree");
  static const double ll_share = nccl::number("share.tree_ll");
  static const double ll128_share = nccl::number("share.tree_ll128");
  static const double ll128_share_in_node = nccl::number("share.tree_ll128_in_node");
  const NcclGroup& group = question.group;
  double rate = group.ring_bytes_per_s() * share;
  if (protocol == Protocol::ll) rate = std::min(group.most_of_ll(), rate * ll_share);
  if (protocol == Protocol::ll128) rate *= group.nodes == 1 ? ll128_share_in_node : ll128_share;
  const double latency =
      base.at(static_cast<std::size_t>(protocol)) + 2 * ((group.in_node() - 1) * tree_step_inside_us(group, protocol) +
                                                         group.levels() * tree_step_between_us(protocol));
  return nccl_time(CollectiveAlgorithm::tree, protocol, latency,
                   rate / 2 * correction_of_tree(protocol, question.bytes), question.bytes);
}

}  // namespace

void append_tree_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways) {
  if (question.kind != CollectiveKind::all_reduce) return;
  for (const Protocol protocol : protocols_of(question.group)) ways.push_back(tree_way(question, protocol));
}

void append_nvls_tree_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways) {
  static const double base = nccl::microseconds("step.nvlink.nvls");
  static const double between = nccl::microseconds("step.network.nvls_tree");
  const NcclGroup& group = question.group;
  if (!group.has_nvls() || group.nodes == 1 || question.kind != CollectiveKind::all_reduce) return;
  const double network = group.nodes > 2 ? group.node_bytes_per_s() / 2 : group.node_bytes_per_s();
  const double link = std::min(group.nvlink_bytes_per_s, network);
  ways.push_back(nccl_time(CollectiveAlgorithm::nvls_tree, Protocol::simple, base + 2 * group.levels() * between,
                           link * nvls_share(group) * nvls_all_reduce_share(), question.bytes));
}

}  // namespace hdpsim
