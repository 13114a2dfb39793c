#include "sim/analysis/link_use.h"

#include "sim/network/fair_share_network.h"
#include "tests/support/catch.h"

namespace hdpsim {
namespace {

Bytes gb(std::int64_t count) {
  return Bytes(count * 1'000'000'000);
}

/// What jobs send over the NVLink of a node of four gpus, 100 GB/s each way, in a second. Link 2 g leads out of gpu g.
struct Node {
  std::unique_ptr<NetworkModel> network;
  JobsTraffic traffic;

  explicit Node(std::optional<double> speed_of_gpu_2 = {}, bool has_others = false) {
    ClusterSpec spec;
    spec.devices = 4;
    spec.devices_per_node = 4;
    spec.nvlink = 100_GBps;
    if (speed_of_gpu_2) {
      spec.degraded = {{.kind = DegradedLink::Kind::nvlink, .unit = 0, .index = 2, .factor = *speed_of_gpu_2}};
    }
    network = make_fair_share_network(spec);
    traffic.main = LinkTraffic(network->link_count());
    if (has_others) traffic.others = LinkTraffic(network->link_count());
  }
  void send(std::size_t gpu, std::int64_t gigabytes) { traffic.main.add(LinkId(2 * gpu), gb(gigabytes)); }
  void send_of_others(std::size_t gpu, std::int64_t gigabytes) { traffic.others.add(LinkId(2 * gpu), gb(gigabytes)); }
  [[nodiscard]] std::vector<LinkUse> busiest(std::size_t most) const {
    return busiest_links(traffic, 1, *network, most);
  }
  [[nodiscard]] std::vector<LinkKindUse> kinds() const { return use_by_kind(traffic, 1_s, *network); }
};

TEST_CASE("the busiest links come first, those of equal use by their place, unused ones not at all", "[report]") {
  Node node(0.5);
  for (const std::size_t gpu : {0, 1, 2}) node.send(gpu, 10);
  const std::vector<LinkUse> links = node.busiest(2);
  REQUIRE(links.size() == 2);
  CHECK(links[0].name == "node 0 gpu 2 nvlink out");
  CHECK(links[0].rate == 50_GBps);
  CHECK(links[0].utilisation == Approx(0.2));
  CHECK(links[1].name == "node 0 gpu 0 nvlink out");
  CHECK(links[1].utilisation == Approx(0.1));
  CHECK(node.busiest(64).size() == 3);
}

TEST_CASE("links that others load too come before those that the main job alone loads more", "[report]") {
  Node node({}, true);
  node.send(0, 20);
  node.send(1, 10);
  node.send_of_others(1, 30);
  node.send_of_others(2, 90);  // not a link of the main job
  const std::vector<LinkUse> links = node.busiest(64);
  REQUIRE(links.size() == 2);
  CHECK(links[0].name == "node 0 gpu 1 nvlink out");
  CHECK(links[0].utilisation == Approx(0.1));
  CHECK(links[0].other_bytes == gb(30));
  CHECK(links[0].other_utilisation == Approx(0.3));
  CHECK(links[1].utilisation == Approx(0.2));
  CHECK(links[1].other_bytes == Bytes{});
}

TEST_CASE("links of one kind are told together, with the busiest of them", "[report]") {
  Node node({}, true);
  node.send(0, 20);
  node.send(1, 10);
  node.send_of_others(1, 30);
  const std::vector<LinkKindUse> kinds = node.kinds();
  REQUIRE(kinds.size() == 2);  // out and in
  CHECK(kinds[0].kind == "node # gpu # nvlink out");
  CHECK(kinds[0].links == 4);
  CHECK(kinds[0].mean == Approx((0.2 + 0.4) / 4));
  CHECK(kinds[0].others == Approx(0.3 / 4));
  CHECK(kinds[0].most == Approx(0.4));
  CHECK(kinds[0].busiest == "node 0 gpu 1 nvlink out");
  CHECK(kinds[1].kind == "node # gpu # nvlink in");
  CHECK(kinds[1].most == 0);
}

TEST_CASE("a degraded link is told from the others of its kind", "[report]") {
  Node node(0.25);
  node.send(0, 20);
  node.send(2, 20);
  const std::vector<LinkKindUse> kinds = node.kinds();
  REQUIRE(kinds.size() == 3);  // out, in, and out of gpu 2
  CHECK(kinds[0].links == 3);
  CHECK(kinds[0].rate == 100_GBps);
  CHECK(kinds[0].most == Approx(0.2));
  CHECK(kinds[1].links == 4);
  CHECK(kinds[2].kind == kinds[0].kind);
  CHECK(kinds[2].links == 1);
  CHECK(kinds[2].rate == 25_GBps);
  CHECK(kinds[2].most == Approx(0.8));
  CHECK(kinds[2].busiest == "node 0 gpu 2 nvlink out");
}

TEST_CASE("a link is as busy with a collective as with the messages that take as long", "[report]") {
  Node node;
  node.send(0, 10);
  node.traffic.main.add(LinkId(0), gb(40), gb(20));
  const std::vector<LinkUse> links = node.busiest(1);
  REQUIRE(links.size() == 1);
  CHECK(links[0].bytes == gb(50));
  CHECK(links[0].utilisation == Approx(0.1 + 0.2));
}

}  // namespace
}  // namespace hdpsim
