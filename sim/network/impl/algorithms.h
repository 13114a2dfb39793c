#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "sim/network/collective_plan.h"
#include "sim/network/impl/collective_plan_builder.h"
#include "sim/network/impl/nccl_model.h"

namespace hdpsim {

enum class CollectiveAlgorithm : std::uint8_t {
  ring,
  tree,
  nvls,
  nvls_tree,
  collnet_chain,
  collnet_direct,
  pat,
  direct
};

/// A ring where the kind has one, otherwise direct messages.
[[nodiscard]] constexpr CollectiveAlgorithm plain_algorithm(CollectiveKind kind) {
  const bool is_direct = kind == CollectiveKind::all_to_all || kind == CollectiveKind::send_recv;
  return is_direct ? CollectiveAlgorithm::direct : CollectiveAlgorithm::ring;
}

/// The collective that an algorithm plans.
struct PlanTask {
  CollectiveKind kind;
  const MembersByNode& members;
  std::span<const DeviceId> devices;  ///< The members in the order in which they were given.
};

/// A collective of one size, as a question to NCCL's model of itself.
struct NcclQuestion {
  const NcclGroup& group;
  CollectiveKind kind;
  double bytes;
};

/// An algorithm of collectives: its flows, and its time by NCCL's model of itself. One file each.
struct AlgorithmEntry {
  CollectiveAlgorithm algorithm;
  std::string_view name;
  /// The kind must be one that the algorithm can do (checked).
  CollectivePlan (*plan)(CollectivePlanBuilder builder, const PlanTask& task);
  /// Appends NCCL's variants of it, one per protocol; none where NCCL would not use it.
  void (*append_ways)(const NcclQuestion& question, std::vector<CollectiveTime>& ways);
  bool in_network = false;  ///< Over several nodes, the switches between them reduce and copy.
};

[[nodiscard]] CollectivePlan plan_ring(CollectivePlanBuilder builder, const PlanTask& task);
[[nodiscard]] CollectivePlan plan_tree(CollectivePlanBuilder builder, const PlanTask& task);
[[nodiscard]] CollectivePlan plan_nvls(CollectivePlanBuilder builder, const PlanTask& task);
[[nodiscard]] CollectivePlan plan_nvls_tree(CollectivePlanBuilder builder, const PlanTask& task);
[[nodiscard]] CollectivePlan plan_collnet_chain(CollectivePlanBuilder builder, const PlanTask& task);
[[nodiscard]] CollectivePlan plan_collnet_direct(CollectivePlanBuilder builder, const PlanTask& task);
[[nodiscard]] CollectivePlan plan_pat(CollectivePlanBuilder builder, const PlanTask& task);
[[nodiscard]] CollectivePlan plan_direct(CollectivePlanBuilder builder, const PlanTask& task);

void append_ring_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways);
/// Seconds until the first chunk of a broadcast has passed all ranks of the ring, which NCCL leaves out where it
/// chooses.
[[nodiscard]] double broadcast_latency_s(const NcclGroup& group, Protocol protocol);
void append_tree_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways);
void append_nvls_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways);
void append_nvls_tree_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways);
void append_collnet_chain_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways);
void append_collnet_direct_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways);
void append_pat_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways);
void append_direct_ways(const NcclQuestion& question, std::vector<CollectiveTime>& ways);

/// All algorithms, in the order of CollectiveAlgorithm (checked). They are described for g devices in each of m nodes,
/// n in all; where nodes hold different numbers of devices, the description holds node by node.
///
/// * ring: one ring per NIC that all nodes have, as NCCL builds them: it enters a node at that NIC, passes its devices
///   and leaves by the same NIC. A broadcast starts at the first device and has no hop into it. Within one node there
///   is one ring.
/// * tree (all_reduce): two binary trees of the nodes per NIC, such that no leaf of one is a leaf of the other
///   (Sanders, Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel
///   Computing 35, 2009), and chains inside the nodes; each tree carries half of the data of its NIC, up and down.
/// * nvls: switches reduce and copy: the NVSwitch of one node for all_reduce, all_gather and reduce_scatter; between
///   nodes, switches that do the same, for all_reduce only: every NIC sends and receives its part once, and so does
///   every link above it.
/// * nvls_tree (all_reduce): the NVSwitch inside nodes, the trees between nodes.
/// * collnet_chain (all_reduce over nodes): the switches between nodes reduce, as for nvls, so that every NIC sends and
///   receives its part once. Inside nodes data pass a chain per NIC, to the device at the NIC and back.
/// * collnet_direct (over nodes): the same switches. Every device sends the device at each NIC its part and gets the
///   result back. For all_gather and reduce_scatter, which need a NIC per device, the switches copy what a NIC sends
///   once, or add up what one receives.
/// * pat (all_gather, reduce_scatter; one device per node): binomial trees of all roots, far hops first, so that these
///   carry least (Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
///   arXiv:2506.20252).
/// * direct (all_to_all, send_recv): each message goes straight to its receiver. Data for another node first move to
///   the receiver's place inside the sender's node (NCCL: PXN), so that all data between two nodes for one place of the
///   receiving node are one flow.
inline constexpr auto algorithms = std::to_array<AlgorithmEntry>({
    {CollectiveAlgorithm::ring, "ring", plan_ring, append_ring_ways},
    {CollectiveAlgorithm::tree, "tree", plan_tree, append_tree_ways},
    {CollectiveAlgorithm::nvls, "nvls", plan_nvls, append_nvls_ways, true},
    {CollectiveAlgorithm::nvls_tree, "nvls_tree", plan_nvls_tree, append_nvls_tree_ways},
    {CollectiveAlgorithm::collnet_chain, "collnet_chain", plan_collnet_chain, append_collnet_chain_ways, true},
    {CollectiveAlgorithm::collnet_direct, "collnet_direct", plan_collnet_direct, append_collnet_direct_ways, true},
    {CollectiveAlgorithm::pat, "pat", plan_pat, append_pat_ways},
    {CollectiveAlgorithm::direct, "direct", plan_direct, append_direct_ways},
});
static_assert([] {
  std::size_t place = 0;
  for (const AlgorithmEntry& entry : algorithms) {
    if (entry.algorithm != static_cast<CollectiveAlgorithm>(place++)) return false;
  }
  return true;
}());

/// The parent of a node in the first or the second of two binary trees over `nodes` nodes; for a root, the node itself.
/// No leaf of the first is a leaf of the second, unless a tree has less than two levels.
[[nodiscard]] std::size_t tree_parent(std::size_t node, std::size_t nodes, bool second);

}  // namespace hdpsim
