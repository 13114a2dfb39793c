#include "sim/engine/impl/serial_links.h"

#include <vector>

#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

// Nodes of two devices that share a NIC of 10 GB/s, on one switch.
ClusterSpec paired_nodes(std::int64_t nodes) {
  ClusterSpec cluster = test::one_device_nodes(nodes, 10_GBps);
  cluster.devices = 2 * nodes;
  cluster.devices_per_node = 2;
  cluster.nvlink = 100_GBps;
  return cluster;
}

using SerialGroups = std::vector<std::pair<std::vector<std::size_t>, std::int64_t>>;

// Hop `index` of the first of the rings, of ranks of `tp` devices.
Hop hop_of(std::int64_t nodes, std::int64_t tp, const SerialGroups& groups, std::size_t index) {
  test::HandMachine world(paired_nodes(nodes), std::make_unique<test::HandCosts>(Duration{}));
  const Mesh mesh{.hdp = 2 * nodes / tp, .tp = tp};
  Diagnostics problems;
  world.placement = make_placement("contiguous", mesh, world.cluster, problems);
  problems.throw_if_any();
  world.machine.placement = world.placement.get();
  world.machine.tp = tp;
  const Plan plan = test::plan_of(mesh.hdp, 1, groups);
  Transformer model = test::one_head_model(1);
  model.heads = model.kv_heads = 2;
  const LoweringOptions lowering{model, mesh, {.dkv_bytes_per_element = 4}};
  const Program program(plan, lowering);
  Hop hop = ring_hops({.parties = std::ssize(plan.micro_batches[0].group)}, plan.micro_batches[0].group, 0,
                      world.machine)[index];
  CHECK_FALSE(hop.is_private);
  SerialLinks(program, world.machine).make_private(hop);
  return hop;
}

TEST_CASE("the two shards of a rank have their NIC for themselves, and half of it each", "[serial links]") {
  const Hop hop = hop_of(2, 2, {{{0, 1}, 64}}, 0);
  CHECK(hop.is_private);
  CHECK(hop.alone == 5_GBps);
}

TEST_CASE("of a ring through two-device nodes one rank of a node sends to the next node: its NIC is its own",
          "[serial links]") {
  const Hop hop = hop_of(2, 1, {{{0, 1, 2, 3}, 64}}, 1);
  CHECK(hop.is_private);
  CHECK(hop.alone == 10_GBps);
}

TEST_CASE("two rings that leave a node by one NIC may meet there", "[serial links]") {
  CHECK_FALSE(hop_of(2, 1, {{{0, 2}, 64}, {{1, 3}, 64}}, 0).is_private);
}

TEST_CASE("rings that one rank is in follow each other, and so do their messages to two other ranks",
          "[serial links]") {
  // Rank 0 sends to nodes 1 and 2; what comes back arrives at rank 0 from both.
  const SerialGroups rings = {{{0, 2}, 64}, {{0, 4}, 64}};
  CHECK(hop_of(3, 1, rings, 0).is_private);
  CHECK(hop_of(3, 1, rings, 1).is_private);
  // With rank 1 in the second ring instead, the NIC of node 0 has two senders.
  CHECK_FALSE(hop_of(3, 1, {{{0, 2}, 64}, {{1, 4}, 64}}, 0).is_private);
}

}  // namespace
}  // namespace hdpsim
