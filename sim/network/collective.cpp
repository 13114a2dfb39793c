#include "sim/network/collective.h"

#include <algorithm>

#include "sim/base/check.h"

namespace hdpsim {
namespace {

// The seconds that (n-1)/n of the bytes take over a link.
double ring_wire_seconds(std::int64_t members, Bytes bytes, double bytes_per_second) {
  const double share = static_cast<double>(members - 1) / static_cast<double>(members);
  return static_cast<double>(bytes.count()) * share / bytes_per_second;
}

double per_second(Bandwidth rate) {
  return static_cast<double>(rate.bytes_per_second());
}

}  // namespace

CollectiveGroup tp_group(const Mesh& mesh, std::int64_t devices_per_node) {
  return {.devices = mesh.tp,
          .devices_per_node = std::min(mesh.tp, devices_per_node),
          .first = DeviceId(0),
          .last = DeviceId(static_cast<std::size_t>(mesh.tp - 1))};
}

Collectives::Collectives(const ClusterSpec& cluster, const CollectiveEfficiency& efficiency)
    : efficiency_(efficiency),
      links_(cluster, efficiency.links),
      devices_per_node_(cluster.devices_per_node),
      devices_per_nic_(cluster.devices_per_nic()) {}

NodeId Collectives::node_of(DeviceId device) const {
  return NodeId(device.index() / static_cast<std::size_t>(devices_per_node_));
}

Duration Collectives::all_gather(const CollectiveGroup& group, Bytes gathered) const {
  return start(group) + one_pass(group, gathered);
}

Duration Collectives::reduce_scatter(const CollectiveGroup& group, Bytes reduced) const {
  return start(group) + one_pass(group, reduced);
}

Duration Collectives::all_reduce(const CollectiveGroup& group, Bytes reduced) const {
  return start(group) + 2 * one_pass(group, reduced);
}

Duration Collectives::start(const CollectiveGroup& group) const {
  if (group.devices == 1) return {};
  return group.devices > group.devices_per_node ? efficiency_.network_start : efficiency_.nvlink_start;
}

Duration Collectives::one_pass(const CollectiveGroup& group, Bytes bytes) const {
  const std::int64_t inside = group.devices_per_node;
  HDPSIM_CHECK(inside >= 1 && group.devices >= inside && group.devices % inside == 0,
               "a collective of {} devices, {} in each node", group.devices, inside);
  const std::int64_t nodes = group.devices / inside;
  Duration steps;
  double slower_stage_s = 0;
  if (inside > 1) {
    const Route nvlink = links_.route(DeviceId(0), DeviceId(1));
    steps += (inside - 1) * nvlink.latency;
    const Bandwidth rate = links_.slowest_in_nodes(node_of(group.first), node_of(group.last));
    slower_stage_s = ring_wire_seconds(inside, bytes, per_second(rate));
  }
  if (nodes > 1) {
    const Route widest = links_.route(group.first, group.last);
    steps += (nodes - 1) * widest.latency;
    const Bandwidth slowest =
        std::min(widest.alone, links_.slowest_between_nodes(node_of(group.first), node_of(group.last)));
    const double rate = per_second(slowest) * static_cast<double>(inside) / static_cast<double>(devices_per_nic_);
    slower_stage_s = std::max(slower_stage_s, ring_wire_seconds(nodes, bytes, rate));
  }
  return steps + Duration::seconds(slower_stage_s);
}

}  // namespace hdpsim
