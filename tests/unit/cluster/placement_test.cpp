#include "sim/cluster/placement.h"

#include <set>

#include "tests/support/catch.h"

using namespace hdpsim;

namespace {

ClusterSpec nodes_of_8(std::int64_t devices) {
  ClusterSpec spec;
  spec.devices = devices;
  spec.devices_per_node = 8;
  return spec;
}

std::unique_ptr<Placement> placed(std::string_view name, const Mesh& mesh) {
  Diagnostics diagnostics;
  auto placement = make_placement(name, mesh, nodes_of_8(mesh.devices()), diagnostics);
  diagnostics.throw_if_any();
  return placement;
}

std::int64_t ranks_per_node(std::string_view name, const Mesh& mesh) {
  return hdpsim::ranks_per_node(*placed(name, mesh), mesh, nodes_of_8(mesh.devices()));
}

std::string refusal(std::string_view name, const Mesh& mesh, std::int64_t devices) {
  Diagnostics diagnostics;
  const auto placement = make_placement(name, mesh, nodes_of_8(devices), diagnostics, {"study.yaml", 7, 7});
  return placement == nullptr ? diagnostics.text() : "accepted";
}

}  // namespace

TEST_CASE("contiguous: tp innermost, then pp, then hdp", "[placement]") {
  const auto placement = placed("contiguous", {.hdp = 4, .tp = 2, .pp = 3});
  CHECK(placement->device(HdpRank(0), 0, 1) == DeviceId(1));
  CHECK(placement->device(HdpRank(0), 1, 0) == DeviceId(2));
  CHECK(placement->device(HdpRank(1), 0, 0) == DeviceId(6));  // 3 stages of 2 shards
}

TEST_CASE("strided: tp innermost, then hdp, then pp", "[placement]") {
  const auto placement = placed("strided", {.hdp = 4, .tp = 2, .pp = 3});
  CHECK(placement->device(HdpRank(0), 0, 1) == DeviceId(1));
  CHECK(placement->device(HdpRank(1), 0, 0) == DeviceId(2));
  CHECK(placement->device(HdpRank(0), 1, 0) == DeviceId(8));  // 4 ranks of 2 shards
}

TEST_CASE("every placement gives each device exactly one part, and the shards of a stage one node", "[placement]") {
  for (const std::string& name : placement_names()) {
    const Mesh mesh{.hdp = 8, .tp = 4, .pp = 3};
    const ClusterSpec spec = nodes_of_8(mesh.devices());
    const auto placement = placed(name, mesh);
    std::set<DeviceId> used;
    for (std::size_t rank = 0; rank < 8; ++rank) {
      for (std::int64_t stage = 0; stage < mesh.pp; ++stage) {
        for (std::int64_t shard = 0; shard < mesh.tp; ++shard) {
          const DeviceId device = placement->device(HdpRank(rank), stage, shard);
          used.insert(device);
          CHECK(spec.node_of(device) == spec.node_of(placement->device(HdpRank(rank), stage, 0)));
        }
      }
    }
    CHECK(used.size() == static_cast<std::size_t>(mesh.devices()));
    CHECK(used.rbegin()->index() == used.size() - 1);
  }
}

TEST_CASE("ranks per node: as many whole ranks as fit, if they never straddle two nodes", "[placement]") {
  CHECK(ranks_per_node("contiguous", {.hdp = 512, .tp = 2, .pp = 1}) == 8 / 2);
  CHECK(ranks_per_node("contiguous", {.hdp = 8, .tp = 2, .pp = 2}) == 8 / (2 * 2));
  CHECK(ranks_per_node("contiguous", {.hdp = 8, .tp = 8, .pp = 1}) == 1);
  CHECK(ranks_per_node("contiguous", {.hdp = 4, .tp = 8, .pp = 4}) == 1);
  // Ranks of 6 devices: rank 1 begins in node 0 and ends in node 1, but stage by stage no block of two shares a node.
  CHECK(ranks_per_node("contiguous", {.hdp = 4, .tp = 2, .pp = 3}) == 1);
  // Fewer ranks than fit a node.
  CHECK(ranks_per_node("contiguous", {.hdp = 2, .tp = 4, .pp = 1}) == 2);
}

TEST_CASE("strided puts the same stage of more ranks into a node", "[placement]") {
  CHECK(ranks_per_node("strided", {.hdp = 8, .tp = 2, .pp = 2}) == 8 / 2);
  // Stage 1 begins in the middle of node 1, at device 12: ranks 0, 1 in node 1, ranks 2, 3 in node 2.
  CHECK(ranks_per_node("strided", {.hdp = 6, .tp = 2, .pp = 2}) == 2);
}

TEST_CASE("a mesh that does not fill the cluster is refused with all numbers", "[placement]") {
  CHECK(refusal("contiguous", {.hdp = 512, .tp = 2, .pp = 1}, 1000) ==
        "study.yaml:7:7: error: a mesh of hdp 512 x tp 2 x pp 1 has 1024 gpus, the cluster has 1000\n"
        "        write hdp 500\n");
  CHECK(refusal("contiguous", {.hdp = INT64_MAX, .tp = INT64_MAX, .pp = INT64_MAX}, 16).find("has 7.85e+56 gpus") !=
        std::string::npos);
}

TEST_CASE("tp groups that would leave a node half are refused", "[placement]") {
  CHECK(refusal("contiguous", {.hdp = 2, .tp = 12, .pp = 1}, 24) ==
        "study.yaml:7:7: error: tp 12 is neither a part nor a multiple of a node of 8 gpus\n"
        "        the shards of a stage share a node or fill several: write a divisor of 8\n");
  CHECK(refusal("contiguous", {.hdp = 8, .tp = 3, .pp = 1}, 24) ==
        "study.yaml:7:7: error: tp 3 is neither a part nor a multiple of a node of 8 gpus\n"
        "        the shards of a stage share a node or fill several: write a divisor of 8\n");
}

TEST_CASE("tp groups of several nodes have no rank beside them", "[placement]") {
  CHECK(ranks_per_node("contiguous", {.hdp = 2, .tp = 16, .pp = 1}) == 1);
}

TEST_CASE("empty axes and unknown placements are refused", "[placement]") {
  CHECK(refusal("contiguous", {.hdp = 0, .tp = 1, .pp = 1}, 8) ==
        "study.yaml:7:7: error: a mesh of hdp 0 x tp 1 x pp 1 holds no gpu\n"
        "        every axis is at least 1\n");
  CHECK(refusal("contigous", {.hdp = 8, .tp = 1, .pp = 1}, 8) ==
        "study.yaml:7:7: error: there is no placement 'contigous'\n"
        "        did you mean 'contiguous'?\n");
}

TEST_CASE("a job on some nodes has them in the place of the first ones", "[placement]") {
  const ClusterSpec cluster = nodes_of_8(8 * 4);
  Diagnostics diagnostics;
  const Mesh mesh{.hdp = 8, .tp = 2, .pp = 1};
  const NodeList nodes({NodeId(1), NodeId(3)});
  const auto placement = make_placement("contiguous", mesh, cluster, diagnostics, {}, nodes);
  REQUIRE(placement);
  CHECK(placement->device(HdpRank(0), 0, 0) == DeviceId(8));
  CHECK(placement->device(HdpRank(3), 0, 1) == DeviceId(15));
  CHECK(placement->device(HdpRank(4), 0, 0) == DeviceId(24));
  CHECK(placement->device(HdpRank(7), 0, 1) == DeviceId(31));
  CHECK(hdpsim::ranks_per_node(*placement, mesh, cluster) == 4);
  CHECK(make_placement("contiguous", {.hdp = 16, .tp = 2}, cluster, diagnostics, {}, nodes) == nullptr);
  CHECK(diagnostics.text().find("has 32 gpus, its nodes have 16") != std::string::npos);
}
