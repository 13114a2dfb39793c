#pragma once

#include <limits>
#include <span>
#include <vector>

#include "sim/network/cluster_links.h"
#include "sim/network/collective_kind.h"
#include "sim/network/fair_share.h"
#include "sim/network/transfers.h"

namespace hdpsim {

/// A collective without time: how many flows cross which links, on the way that the routes of the cluster take.
///
/// Data pass through a ring or a tree in small chunks (512 KiB in NCCL), so that all its hops work at once and at the
/// pace of the slowest: such a part is one variable of FairShare, whatever the number of its devices. The flow of a
/// plan is its unit; a hop that carries twice as much counts as two. So link l carries
///
///     flows on l (of all parts) x bytes_per_flow x size        bytes,
///
/// and alone on its links a plan takes latency + the longest of those divided by the rate of the link. That holds
/// whether the plan has one part or many: all parts are of equal length, max-min fair rates give the slowest of them no
/// less than 1 / max(flows / rate), and those that end sooner only make room. Beside other traffic a plan of several
/// parts holds the links of a part that has ended no longer.
struct CollectivePlan {
  using Part = std::vector<FairShare::Load>;  ///< In the order of the links.

  std::vector<Part> parts;    ///< Side by side; the collective ends with the last.
  double bytes_per_flow = 0;  ///< For a byte of the collective's size, which is what nccl-tests calls its size.
  Duration latency = {};      ///< Of the longest way through it: message start-ups and switches.
  Duration hop_inside = {};   ///< Of the longest message inside a node,
  Duration hop_between = {};  ///< and between two nodes.
};

/// `whole`: one part, in which everything moves at the pace of the slowest hop; the least to keep. `parts`: each ring,
/// tree or message on its own, at the most NICs-of-a-node times as much to keep (direct: one part a pair of devices).
enum class PlanGrain { whole, parts };

/// The plan of a collective of at least two different devices (checked), in the order of their numbers whatever that of
/// the span (but send_recv: from each to the next, in the order of the span). Where the nodes hold unlike numbers of
/// them, what is written below for g devices in each of m nodes, n in all, holds node by node.
///
/// * ring: a ring a NIC that all nodes have, as NCCL builds them: it enters a node at that NIC, passes its devices and
///   leaves by the same NIC. Broadcast: from the first device, the hop into it is left out. One node: one ring.
/// * tree (all_reduce): two binary trees of the nodes a NIC, so that a leaf of one is none of the other (Sanders,
///   Speck and Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan", Parallel Computing
///   35, 2009), and chains inside the nodes; half of the data each, up and down.
/// * nvls: switches add up and copy. all_reduce, all_gather and reduce_scatter in the NVSwitch of a node, all_reduce
///   over nodes whose switches do the same: every NIC sends and receives its part once, and so does every link above.
/// * nvls_tree (all_reduce): the NVSwitch inside, the trees between nodes.
/// * pat (all_gather, reduce_scatter; one device a node): binomial trees of all roots, far hops first, so that they
///   carry least (Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
///   arXiv:2506.20252).
/// * direct (all_to_all, send_recv): everything straight to its receiver. What goes to another node changes to the
///   receiver's place inside the sender's node (NCCL: PXN), so that all data between two nodes for one place of the
///   receiving node are one flow.
///
/// Cost: O(n) routes; pat O(n log n); all_to_all O(n m) routes but on fabrics of tiers without ECMP, O(n g) there.
class CollectivePlanner {
 public:
  /// Keeps a number a link, so that a plan costs no more than the links that it uses. The links must outlive it.
  explicit CollectivePlanner(const ClusterLinks& links);
  [[nodiscard]] CollectivePlan plan(CollectiveKind kind, CollectiveAlgorithm algorithm,
                                    std::span<const DeviceId> devices, PlanGrain grain = PlanGrain::whole);

 private:
  const ClusterLinks& links_;
  std::vector<double> flows_;
};
/// A single one. Costs O(links of the cluster) more.
[[nodiscard]] CollectivePlan plan_collective(const ClusterLinks& links, CollectiveKind kind,
                                             CollectiveAlgorithm algorithm, std::span<const DeviceId> devices,
                                             PlanGrain grain = PlanGrain::whole);
/// `count` devices from `first` on.
[[nodiscard]] std::vector<DeviceId> consecutive_devices(std::int64_t first, std::int64_t count);

/// A line of a traffic matrix.
struct Message {
  DeviceId from;
  DeviceId to;
  double bytes = 0;  ///< > 0
};
/// A direct exchange of unlike amounts; its size counts how often. Messages between the same two nodes to the same
/// place are one flow. The unit is the largest flow. O(messages log messages).
[[nodiscard]] CollectivePlan plan_messages(const ClusterLinks& links, std::span<const Message> messages,
                                           PlanGrain grain = PlanGrain::whole);

/// Plans that start together, each of them of the same size. The latency is the longest.
[[nodiscard]] CollectivePlan together(std::span<const CollectivePlan> plans);
/// The plan with so many bytes on the wire for each of its data, as a protocol has that sends flags along.
[[nodiscard]] CollectivePlan with_overhead(CollectivePlan plan, double wire_bytes);

/// Bytes on each link for a byte of the collective's size, by LinkId.
[[nodiscard]] std::vector<double> link_bytes(const CollectivePlan& plan, std::size_t link_count);
/// Seconds that a byte of its size takes on the fullest link inside a node and on the fullest of NICs and switches,
/// nothing else on them.
struct FullestLinks {
  double inside_s = 0;
  double between_s = 0;
};
[[nodiscard]] FullestLinks fullest_links(const CollectivePlan& plan, const ClusterLinks& links);
/// Seconds that a byte of its size takes on the links that take longest, nothing else on them.
[[nodiscard]] double seconds_a_byte(const CollectivePlan& plan, const ClusterLinks& links);
/// Latency and bytes, nothing else on the links.
[[nodiscard]] Duration time_alone(const CollectivePlan& plan, const ClusterLinks& links, double bytes);

/// The parts as transfers, to run beside others; they start when the latency has passed. `most`: bytes of the
/// collective's size a second that it takes at most.
[[nodiscard]] std::vector<Transfer> transfers_of(const CollectivePlan& plan, double bytes,
                                                 double most = std::numeric_limits<double>::infinity());

}  // namespace hdpsim
