#pragma once

#include <cstdint>

#include "sim/cluster/cluster.h"
#include "sim/cluster/placement.h"
#include "sim/network/cluster_links.h"
#include "sim/network/link_efficiency.h"

namespace hdpsim {

/// The devices of a collective: `devices` in all, `devices_per_node` in each node that takes part.
struct CollectiveGroup {
  std::int64_t devices = 1;
  std::int64_t devices_per_node = 1;  ///< Divides `devices`.
  DeviceId first = {};                ///< The first and the last device: they tell
  DeviceId last = {};                 ///< which switch tiers a ring over the nodes crosses.
};

/// What a profile knows of a kind of collective. The latencies of `links` are those of one ring step.
struct CollectiveEfficiency {
  LinkEfficiency links = {};
  Duration nvlink_start = {};   ///< Once a collective inside a node.
  Duration network_start = {};  ///< Once a collective over several nodes.
};

/// The tp shards of one stage of an HDP rank: part of a node, or several whole nodes.
[[nodiscard]] CollectiveGroup tp_group(const Mesh& mesh, std::int64_t devices_per_node);

/// Durations of collectives in closed form: nothing else uses the links, except that all devices of a node take part in
/// a collective of the same kind at the same time, so that devices behind one NIC divide it.
///
/// A ring of n passes its data around in n - 1 steps, each of which starts a message and moves 1/n of the data over
/// every link: T = (n-1) a + (n-1)/n S/B, the least traffic possible (Patarasuk and Yuan, "Bandwidth optimal all-reduce
/// algorithms for clusters of workstations", J. Parallel Distrib. Comput. 69, 2009). A group of g devices in each of m
/// nodes does so in two stages: a ring inside each node, and for each place in a node a ring over the nodes with the
/// 1/g of the data that the device there holds (Cho et al., "BlueConnect", SysML 2019):
///
///     inside  = (g-1)/g S/B_nvlink                between = (m-1)/m (S/g)/B_nic
///     T       = start + (g-1) a_nvlink + (m-1) a_network + max(inside, between)
///
/// The stages use different links and the data flow through both in small chunks (512 KiB in NCCL), so the slower
/// stage sets the pace; the other one's share of the first chunk is neglected. Stages one after the other would take
/// inside + between, at most twice as long. All steps of a ring run at once, so the widest hop sets its latency and
/// rate, or the slowest link where one is degraded; a ring over consecutive nodes crosses the uplink of a unit and rail
/// once.
///
/// Bytes are counted as nccl-tests does: `gathered` is what each device holds after an all-gather, `reduced` what each
/// holds before a reduce-scatter or an all-reduce. A group of one device takes no time. Where a profile knows different
/// efficiencies for different kinds, use one object a kind.
///
/// What uses links unevenly - devices of unlike nodes, degraded links, other traffic - has a CollectivePlan instead.
class Collectives {
 public:
  explicit Collectives(const ClusterSpec& cluster, const CollectiveEfficiency& efficiency = {});

  [[nodiscard]] Duration all_gather(const CollectiveGroup& group, Bytes gathered) const;
  [[nodiscard]] Duration reduce_scatter(const CollectiveGroup& group, Bytes reduced) const;
  /// A reduce-scatter and an all-gather: 2 (n-1)/n of the data over every link.
  [[nodiscard]] Duration all_reduce(const CollectiveGroup& group, Bytes reduced) const;

 private:
  [[nodiscard]] Duration start(const CollectiveGroup& group) const;
  [[nodiscard]] NodeId node_of(DeviceId device) const;
  [[nodiscard]] Duration one_pass(const CollectiveGroup& group, Bytes bytes) const;

  CollectiveEfficiency efficiency_;
  ClusterLinks links_;
  std::int64_t devices_per_node_;
  std::int64_t devices_per_nic_;
};

}  // namespace hdpsim
