#include "sim/network/fair_share_network.h"

#include <cstdlib>
#include <vector>

#include "sim/base/check.h"
#include "sim/network/cluster_links.h"
#include "sim/network/collective_plan.h"
#include "sim/network/impl/algorithms.h"
#include "tests/support/catch.h"
#include "tests/unit/network/small_clusters.h"

using namespace hdpsim;

namespace {

FlowId add_flow(NetworkModel& network, DeviceId from, DeviceId to) {
  const Route route = network.route(from, to);
  return network.add(route, route.alone);
}

std::vector<FlowId> changed_flows(NetworkModel& network) {
  std::vector<FlowId> changed;
  network.take_changed(changed);
  return changed;
}

bool same_to_a_byte(Bandwidth a, Bandwidth b) {
  return std::abs(a.bytes_per_second() - b.bytes_per_second()) <= 1;
}

using Flows = std::vector<FlowId>;

}  // namespace

TEST_CASE("a flow alone gets the least of its links", "[network]") {
  const auto network = make_fair_share_network(rail_cluster(2));
  CHECK(network->rate(add_flow(*network, device_at(0, 0), device_at(1, 0))) == 25_GBps);
  CHECK(network->rate(add_flow(*network, device_at(0, 0), device_at(0, 1))) == 300_GBps);
}

TEST_CASE("two flows out of one NIC get half each, a third elsewhere is not slowed", "[network]") {
  const auto network = make_fair_share_network(rail_cluster(4));
  const FlowId first = add_flow(*network, device_at(0, 0), device_at(1, 0));
  const FlowId elsewhere = add_flow(*network, device_at(2, 0), device_at(3, 0));
  const FlowId second = add_flow(*network, device_at(0, 0), device_at(3, 1));
  CHECK(network->rate(first) == 25_GBps / 2);
  CHECK(network->rate(second) == 25_GBps / 2);
  CHECK(network->rate(elsewhere) == 25_GBps);
}

TEST_CASE("a collective under way changes rate as flows come and go, and leaves what its slowest hop leaves",
          "[network]") {
  const ClusterSpec spec = rail_cluster(4);
  const auto network = make_fair_share_network(spec);
  const ClusterLinks links(spec, {});
  const std::vector<DeviceId> devices{device_at(0, 0), device_at(1, 0), device_at(2, 0), device_at(3, 0)};
  const CollectivePlan plan = plan_collective(links, CollectiveKind::all_gather, CollectiveAlgorithm::ring, devices);
  const FlowId slow = network->add(plan.parts.front(), 10_GBps);
  CHECK(network->rate(slow) == 10_GBps);
  network->remove(slow);
  const FlowId ring = network->add(plan.parts.front(), 1000_GBps);
  CHECK(network->rate(ring) == 25_GBps);
  const FlowId other = add_flow(*network, device_at(1, 0), device_at(0, 0));
  CHECK(changed_flows(*network) == Flows{ring, other});
  CHECK(network->rate(ring) == 25_GBps / 2);
  const FlowId third = add_flow(*network, device_at(1, 0), device_at(0, 0));
  const FlowId elsewhere = add_flow(*network, device_at(3, 0), device_at(2, 0));
  CHECK(network->rate(ring) == 25_GBps / 3);
  // The ring's hop out of node 3 moves no faster than the one out of node 1.
  CHECK(same_to_a_byte(network->rate(elsewhere), 25_GBps * 2 / 3));
  for (const FlowId flow : {other, third, elsewhere}) network->remove(flow);
  CHECK(network->rate(ring) == 25_GBps);
  network->remove(ring);
  CHECK(changed_flows(*network).empty());
}

TEST_CASE("a NIC sends and receives at full rate at once", "[network]") {
  const auto network = make_fair_share_network(rail_cluster(2));
  const FlowId there = add_flow(*network, device_at(0, 0), device_at(1, 0));
  const FlowId back = add_flow(*network, device_at(1, 0), device_at(0, 0));
  CHECK(network->rate(there) == 25_GBps);
  CHECK(network->rate(back) == 25_GBps);
}

TEST_CASE("three flows into one NIC get a third each, and half when one leaves", "[network]") {
  const auto network = make_fair_share_network(rail_cluster(4));
  const FlowId a = add_flow(*network, device_at(1, 0), device_at(0, 0));
  const FlowId b = add_flow(*network, device_at(2, 0), device_at(0, 0));
  const FlowId c = add_flow(*network, device_at(3, 0), device_at(0, 0));
  for (const FlowId flow : {a, b, c}) CHECK(network->rate(flow) == 25_GBps / 3);
  network->remove(b);
  CHECK(network->rate(a) == 25_GBps / 2);
  CHECK(network->rate(c) == 25_GBps / 2);
}

TEST_CASE("an oversubscribed uplink is divided among the flows of its rail that leave the ToR set", "[network]") {
  const auto network = make_fair_share_network(three_tiers(8, 4, 1));  // 4 x 25 / 4 = 25 GB/s a rail
  const FlowId first = add_flow(*network, device_at(0, 0), device_at(4, 0));
  const FlowId second = add_flow(*network, device_at(1, 0), device_at(5, 0));
  const FlowId inside = add_flow(*network, device_at(2, 0), device_at(3, 0));
  const FlowId other_rail = add_flow(*network, device_at(2, 1), device_at(6, 1));
  CHECK(network->rate(first) == 25_GBps / 2);
  CHECK(network->rate(second) == 25_GBps / 2);
  CHECK(network->rate(inside) == 25_GBps);
  CHECK(network->rate(other_rail) == 25_GBps);
}

TEST_CASE("private routes are those whose links belong to the two devices alone", "[network]") {
  const auto rail = make_fair_share_network(three_tiers(8, 2, 1));
  CHECK(rail->is_private(rail->route(device_at(0, 0), device_at(0, 1))));
  CHECK(rail->is_private(rail->route(device_at(0, 0), device_at(3, 0))));
  CHECK_FALSE(rail->is_private(rail->route(device_at(0, 0), device_at(4, 0))));  // through an uplink

  ClusterSpec shared_nics = rail_cluster(2);
  shared_nics.nics_per_node = 4;
  const auto network = make_fair_share_network(shared_nics);
  CHECK_FALSE(network->is_private(network->route(device_at(0, 0), device_at(1, 0))));
}

TEST_CASE("changed flows come once each, in the order of their ids, and only once", "[network]") {
  const auto network = make_fair_share_network(rail_cluster(4));
  const FlowId first = add_flow(*network, device_at(0, 0), device_at(1, 0));
  const FlowId elsewhere = add_flow(*network, device_at(2, 0), device_at(3, 0));
  CHECK(changed_flows(*network) == Flows{first, elsewhere});
  CHECK(changed_flows(*network).empty());

  const FlowId second = add_flow(*network, device_at(0, 0), device_at(2, 0));
  const FlowId third = add_flow(*network, device_at(0, 0), device_at(3, 1));
  CHECK(changed_flows(*network) == Flows{first, second, third});

  network->remove(second);
  CHECK(changed_flows(*network) == Flows{first, third});
}

TEST_CASE("a removed flow is not told as changed, but a new one with its id is", "[network]") {
  const auto network = make_fair_share_network(rail_cluster(4));
  const FlowId removed = add_flow(*network, device_at(0, 0), device_at(1, 0));
  network->remove(removed);
  CHECK(changed_flows(*network).empty());

  const FlowId again = add_flow(*network, device_at(2, 0), device_at(1, 0));
  CHECK(again == removed);
  CHECK(changed_flows(*network) == Flows{again});
}

TEST_CASE("a flow beside a capped one that leaves its share alone is not told as changed", "[network]") {
  const auto network = make_fair_share_network(rail_cluster(4));
  const FlowId modest = network->add(network->route(device_at(0, 0), device_at(1, 0)), 5_GBps);
  changed_flows(*network);
  const FlowId other = network->add(network->route(device_at(0, 0), device_at(2, 0)), 5_GBps);
  CHECK(changed_flows(*network) == Flows{other});
  CHECK(network->rate(modest) == 5_GBps);
}

TEST_CASE("rates of flows that are not under way and flows without demand are bugs", "[network]") {
  const auto network = make_fair_share_network(rail_cluster(2));
  const Route route = network->route(device_at(0, 0), device_at(1, 0));
  CHECK_THROWS_AS(network->rate(FlowId(0)), CheckFailure);
  CHECK_THROWS_AS(network->add(route, Bandwidth{}), CheckFailure);
  const FlowId flow = network->add(route, route.alone);
  network->remove(flow);
  CHECK_THROWS_AS(network->remove(flow), CheckFailure);
}

TEST_CASE("links have names for reports", "[network]") {
  const auto network = make_fair_share_network(rail_cluster(4));
  CHECK(network->link_name(link_at(network->route(device_at(3, 2), device_at(0, 0)), 0)) == "node 3 nic 2 out");
  CHECK(network->link_count() == ClusterLinks(rail_cluster(4), {}).list().size());
}

TEST_CASE("clusters of 12,288 and 131,072 devices have four links a device and a ring over all of them", "[network]") {
  for (const std::int64_t devices : {12'288, 131'072}) {
    const auto network = make_fair_share_network(rail_cluster(devices / 8));
    CHECK(network->link_count() == static_cast<std::size_t>(4 * devices));
    const auto count = static_cast<std::size_t>(devices);
    for (std::size_t from = 0; from < count; ++from) add_flow(*network, DeviceId(from), DeviceId((from + 1) % count));
    // Every device sends to one and receives from one: nobody shares anything.
    CHECK(network->rate(FlowId(0)) == 300_GBps);
    CHECK(network->rate(FlowId(7)) == 25_GBps);
    CHECK(network->rate(FlowId(count - 1)) == 25_GBps);
    CHECK(changed_flows(*network).size() == count);
  }
}
