#pragma once

#include <limits>
#include <span>
#include <vector>

#include "sim/network/cluster_links.h"
#include "sim/network/collective_kind.h"
#include "sim/network/fair_share.h"
#include "sim/network/transfers.h"

namespace hdpsim {

/// A collective without time: how many flows cross each link, on the routes of the cluster.
///
/// Data pass through a ring or a tree in small chunks (512 KiB in NCCL), so that all its hops work at once and at the
/// pace of the slowest. Such a part is one variable of FairShare, whatever the number of its devices. The unit is one
/// flow of the plan; a hop that carries twice as much counts as two flows. Link l carries
///
///     flows on l (of all parts) x bytes_per_flow x size        bytes,
///
/// and alone on its links a plan takes latency + the maximum over all links of these bytes / the rate of the link. That
/// holds for one part and for many: all parts have equal length, max-min fair rates give the slowest of them no less
/// than 1 / max(flows / rate), and parts that end sooner only free capacity. With other traffic, a plan of several
/// parts releases the links of each part when that part ends.
struct CollectivePlan {
  using Part = std::vector<FairShare::Load>;  ///< In the order of the links.

  std::vector<Part> parts;    ///< Concurrent parts; the collective ends with the last.
  double bytes_per_flow = 0;  ///< Per byte of the collective's size as nccl-tests defines it.
  Duration latency = {};      ///< Latency of the longest path through it: message start-ups and switches.
  Duration hop_inside = {};   ///< Latency of the longest message inside a node,
  Duration hop_between = {};  ///< and between two nodes.
};

/// `whole`: one part, in which everything moves at the pace of the slowest hop; takes the least memory. `parts`: each
/// ring, tree or message is a part of its own; takes at most (NICs per node) times the memory (direct: one part per
/// pair of devices).
enum class PlanGrain { whole, parts };

/// The plan of a collective of at least two different devices (checked). Devices are used in the order of their
/// numbers, whatever the order of the span; in send_recv each sends to the next in the order of the span. What the
/// algorithms do is in their table (impl/algorithms.h).
///
/// Cost: O(n log n) routes for n devices; all_to_all O(n m) on m nodes of g devices, but O(n g) on fabrics of tiers
/// without ECMP.
[[nodiscard]] CollectivePlan plan_collective(const ClusterLinks& links, CollectiveKind kind,
                                             CollectiveAlgorithm algorithm, std::span<const DeviceId> devices,
                                             PlanGrain grain = PlanGrain::whole);
/// `count` devices from `first` on.
[[nodiscard]] std::vector<DeviceId> consecutive_devices(std::int64_t first, std::int64_t count);

/// Joins plans that start together, all with the same size. The latency is the longest.
[[nodiscard]] CollectivePlan together(std::span<const CollectivePlan> plans);
/// The plan with `wire_bytes` bytes on the wire per byte of data, for a protocol that sends flags.
[[nodiscard]] CollectivePlan with_overhead(CollectivePlan plan, double wire_bytes);

/// Bytes on each link per byte of the collective's size, by LinkId.
[[nodiscard]] std::vector<double> link_bytes(const CollectivePlan& plan, std::size_t link_count);
/// Seconds per byte of the collective's size on the fullest link inside a node, and on the fullest link of NICs and
/// switches, with no other traffic.
struct FullestLinks {
  double inside_s = 0;
  double between_s = 0;
};
[[nodiscard]] FullestLinks fullest_links(const CollectivePlan& plan, const ClusterLinks& links);
/// Seconds per byte of the collective's size on the slowest link, with no other traffic.
[[nodiscard]] double seconds_a_byte(const CollectivePlan& plan, const ClusterLinks& links);

/// The parts as transfers, to run together with others; they start when the latency has passed. `most`: upper bound of
/// the rate, in bytes of the collective's size per second.
[[nodiscard]] std::vector<Transfer> transfers_of(const CollectivePlan& plan, double bytes,
                                                 double most = std::numeric_limits<double>::infinity());

}  // namespace hdpsim
