// All-to-alls that send a token once to each node, by hand and beside what DeepEP publishes.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "sim/engine/world.h"
#include "sim/model/experts.h"
#include "sim/profile/profile_file.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

std::unique_ptr<World> nodes_of(std::int64_t devices, std::int64_t ep, const DeviceProfile& profile,
                                std::int64_t per_node = 8) {
  ClusterSpec cluster = test::two_nodes();
  cluster.device = "H100-80GB";
  cluster.devices = devices;
  cluster.nvlink = 200_GBps;
  cluster.nic = 400_Gbps;
  cluster.devices_per_node = cluster.nics_per_node = per_node;
  cluster.tiers.front().fan_in = devices / per_node;
  Diagnostics problems;
  auto world = World::make(cluster, profile, {.mesh = {.hdp = devices, .ep = ep}}, problems);
  problems.throw_if_any();
  return world;
}

DeviceProfile published() {
  Diagnostics problems;
  const auto profile = load_profile("h100-published", HDPSIM_SOURCE_DIR "/calib/profiles", {}, problems);
  problems.throw_if_any();
  return *profile;
}

// DeepEP, docs/legacy.md, normal kernels on H800: bytes a second that a device sends over NVLink (one node) or RDMA,
// what it keeps included, with 4,096 tokens of 7,168 columns in fp8, 8 of 256 experts a token, and as many groups of
// experts as nodes, of which a token chooses four at most. The profile has its rates from the first and the last row;
// those in between follow from them: among 16 devices NVLink is slower, among 32 the network.
TEST_CASE("tokens travel as fast as DeepEP publishes", "[experts]") {
  struct Row {
    std::int64_t devices;
    double bytes_per_second;
    double tolerance;
  };
  const DeviceProfile profile = published();
  for (const Row& row : {Row{8, 153e9, 0.05}, {16, 43e9, 0.15}, {32, 58e9, 0.05}, {64, 51e9, 0.05}}) {
    const std::int64_t nodes = row.devices / 8;
    const std::int64_t groups = std::min<std::int64_t>(nodes, 4);
    const MixtureOfExperts moe{.experts = 256, .experts_per_token = 8, .groups = nodes, .groups_per_token = groups};
    const Bytes tokens(4096 * (7168 + 4 * 56));
    const Duration time = nodes_of(row.devices, row.devices, profile)->machine().experts_per_node(moe, tokens).time;
    const double sent = static_cast<double>(tokens.count()) * mean_parts(moe, nodes > 1 ? nodes : row.devices);
    CAPTURE(row.devices);
    CHECK(sent / time.seconds() == Approx(row.bytes_per_second).epsilon(row.tolerance));
  }
}

TEST_CASE("without rates of its own an exchange takes those of all-to-alls", "[experts]") {
  DeviceProfile profile = published();
  profile.nvlink->dispatch.reset();
  profile.network->dispatch.reset();
  const MixtureOfExperts moe{.experts = 64, .experts_per_token = 4};
  const Bytes tokens(64'000'000);
  const auto inside =
      nodes_of(16, 8, profile)->machine().experts(CollectiveKind::all_to_all, tokens.scaled(mean_parts(moe, 16)));
  CHECK(nodes_of(16, 16, profile)->machine().experts_per_node(moe, tokens).time >= inside.time);
  // One node has nothing between nodes.
  CHECK(
      nodes_of(16, 8, profile)->machine().experts_per_node(moe, tokens).time ==
      nodes_of(16, 8, profile)->machine().experts(CollectiveKind::all_to_all, tokens.scaled(mean_parts(moe, 8))).time);
}

// On nodes of twelve the middle one of three groups of eight has four devices on each of two nodes, the others eight on
// one. On nodes of eight a group of twelve has eight on one node and four on another.
TEST_CASE("groups that lie unequally on nodes send a token once to each device", "[experts]") {
  const DeviceProfile profile = published();
  const MixtureOfExperts moe{.experts = 24, .experts_per_token = 4};
  const Bytes tokens(64'000'000);
  for (const auto& [ep, per_node] : {std::pair<std::int64_t, std::int64_t>{8, 12}, {12, 8}}) {
    const auto world = nodes_of(24, ep, profile, per_node);
    CHECK(world->machine().experts_per_node(moe, tokens).time > Duration{});
    CHECK(world->machine().experts_per_node(moe, tokens * 2).time >
          world->machine().experts_per_node(moe, tokens).time);
  }
}

TEST_CASE("a token that travels once to each node takes the network less long than its copies", "[experts]") {
  const DeviceProfile profile = published();
  const MixtureOfExperts moe{.experts = 256, .experts_per_token = 8, .groups = 8, .groups_per_token = 4};
  const Bytes tokens(4096 * 7168 * 2);
  const auto world = nodes_of(64, 64, profile);
  const Duration copies = world->machine().experts(CollectiveKind::all_to_all, tokens * 8).time;
  // Less than four nodes in place of eight copies, at rates that differ by a few per cent.
  CHECK(world->machine().experts_per_node(moe, tokens).time < copies.scaled(0.55));
}

}  // namespace
}  // namespace hdpsim
