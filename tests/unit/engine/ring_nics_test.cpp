#include <numeric>

#include "sim/engine/priced_program.h"
#include "sim/engine/simulator.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

// Two nodes of four devices with a NIC of 10 GB/s each, on one switch.
ClusterSpec nodes_of_four(Bandwidth nvlink) {
  ClusterSpec cluster = test::one_device_nodes(2, 10_GBps);
  cluster.devices = 8;
  cluster.devices_per_node = 4;
  cluster.nics_per_node = 4;
  cluster.nvlink = nvlink;
  return cluster;
}

const std::vector<std::size_t> all_ranks = {0, 1, 2, 3, 4, 5, 6, 7};

// Hop `index` of a ring over all devices.
Hop hop_of(Bandwidth nvlink, NicUse nics, std::size_t index) {
  test::HandMachine world(nodes_of_four(nvlink), std::make_unique<test::HandCosts>(Duration{}));
  world.machine.ring_nics = nics;
  const std::vector<HdpRank> group(all_ranks.begin(), all_ranks.end());
  return ring_hops({.parties = 8}, group, 0, world.machine)[index];
}

TEST_CASE("a ring between nodes has the rate of one NIC, or that of all of them", "[ring nics]") {
  CHECK(hop_of(100_GBps, NicUse::own, 3).alone == 10_GBps);
  const Hop spread = hop_of(100_GBps, NicUse::all, 3);
  CHECK(spread.alone == 40_GBps);
  CHECK(spread.routes.size() == 4);
  for (const HopRoute& part : spread.routes) CHECK(part.share == 0.25);
}

TEST_CASE("three quarters of a message leave its sender by NVLink, which may be the slower way", "[ring nics]") {
  const Hop spread = hop_of(15_GBps, NicUse::all, 3);
  CHECK(spread.alone == 20_GBps);
}

TEST_CASE("within a node a ring is as fast as ever, but other messages pass its links", "[ring nics]") {
  CHECK(hop_of(100_GBps, NicUse::own, 1).is_private);
  const Hop near = hop_of(100_GBps, NicUse::all, 1);
  CHECK(near.alone == 100_GBps);
  CHECK_FALSE(near.is_private);
}

TEST_CASE("NICs carry equal parts of what one of them carried", "[ring nics]") {
  const Plan plan = test::plan_of(8, 1, {{all_ranks, 4096}});
  const Program program(plan, {test::one_head_model(1), {.hdp = 8}, {.dkv_bytes_per_element = 4}});
  const auto timeline_of = [&](NicUse nics, Grain grain) {
    test::HandMachine world(nodes_of_four(100_GBps), std::make_unique<test::HandCosts>(Duration{}));
    world.machine.ring_nics = nics;
    return std::pair(simulate(program, world.machine, grain), std::move(world.network));
  };
  const auto bytes_by_nics = [](const auto& result) {
    std::vector<Bytes> bytes;
    const auto& [timeline, network] = result;
    for (std::size_t link = 0; link < network->link_count(); ++link) {
      const bool is_nic = network->link_name(LinkId(link)).find(" nic ") != std::string::npos;
      if (is_nic) bytes.push_back(timeline.links.bytes[link]);
    }
    return bytes;
  };
  for (const Grain grain : {Grain::fluid, Grain::exact}) {
    const auto own = timeline_of(NicUse::own, grain);
    const auto all = timeline_of(NicUse::all, grain);
    const std::vector<Bytes> by_one = bytes_by_nics(own);
    const std::vector<Bytes> by_four = bytes_by_nics(all);
    const Bytes sum = std::accumulate(by_one.begin(), by_one.end(), Bytes{});
    CHECK(sum == std::accumulate(by_four.begin(), by_four.end(), Bytes{}));
    for (const Bytes bytes : by_four) CHECK(bytes == sum / std::ssize(by_four));
    CHECK(own.first.step_time.seconds() / all.first.step_time.seconds() == Approx(4).epsilon(0.01));
  }
}

}  // namespace
}  // namespace hdpsim
