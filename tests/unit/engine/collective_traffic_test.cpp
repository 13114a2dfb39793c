// What the collectives of a step put on links, beside the bytes that their instructions state.

#include <algorithm>
#include <string>

#include "sim/engine/simulator.h"
#include "sim/engine/world.h"
#include "sim/plan/expert_waves.h"
#include "sim/profile/profile_file.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

Transformer model_of(std::int64_t layers) {
  Transformer model;
  model.name = "small";
  model.layers = layers;
  model.hidden = 4096;
  model.heads = 32;
  model.kv_heads = 8;
  model.head_dim = 128;
  model.ffn_hidden = 14336;
  model.vocabulary = 32000;
  return model;
}

DeviceProfile shipped(const std::string& name) {
  Diagnostics problems;
  const auto profile = load_profile(name, HDPSIM_SOURCE_DIR "/calib/profiles", {}, problems);
  problems.throw_if_any();
  return *profile;
}

std::unique_ptr<World> world_of(const Mesh& mesh, const std::string& profile = "h100-published") {
  Diagnostics problems;
  auto world = World::make(test::two_nodes(), shipped(profile), {.mesh = mesh}, problems);
  problems.throw_if_any();
  return world;
}

// The bytes that one of `ranks` devices sends in a collective.
double sent_by_one(CollectiveKind kind, Bytes bytes, std::int64_t ranks) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  return passes * static_cast<double>(bytes.count()) * static_cast<double>(ranks - 1) / static_cast<double>(ranks);
}

// What a device of the first micro-batch sends in collectives among its `ranks` devices.
double sent_in(const Program& program, CollectiveGroup among, std::int64_t ranks) {
  double sent = 0;
  const MicroBatchProgram first = program.micro_batch(MicroBatchId(0));
  for (const Block& block : first.blocks) {
    for (const Instruction& instruction : block.body) {
      if (instruction.opcode != Opcode::collective) continue;
      const TensorParallelCollective& op = first.collectives[instruction.work];
      if (op.among != among) continue;
      sent += static_cast<double>(instruction.runs(block.iterations)) * sent_by_one(op.kind, op.bytes, ranks);
    }
  }
  return sent;
}

std::size_t link_named(World& world, const std::string& name) {
  const NetworkModel& network = *world.machine().network;
  for (std::size_t link = 0; link < network.link_count(); ++link) {
    if (network.link_name(LinkId(link)) == name) return link;
  }
  FAIL("there is no link " << name);
  return 0;
}

double on_link(const Timeline& timeline, World& world, const std::string& name) {
  return static_cast<double>(timeline.links.bytes[link_named(world, name)].count());
}

TEST_CASE("tensor-parallel traffic is on the NVLinks of each rank, gradients on its NICs", "[traffic]") {
  const Mesh mesh{.hdp = 2, .tp = 8};
  const auto world = world_of(mesh);
  // Rank 0 has a node for itself, and twice the tokens of rank 1 in the other node.
  const Plan plan = test::plan_of(2, 4, {{{0}, 65'536}, {{1}, 32'768}});
  const Program program(plan, {model_of(4), mesh, Recipe{}});
  const double tensors = sent_in(program, CollectiveGroup::tensor_parallel, 8);
  REQUIRE(tensors > 0);
  const StepEnd end = program.step_end();
  const double pool = sent_by_one(CollectiveKind::reduce_scatter, end.gradient.common, 2) +
                      sent_by_one(CollectiveKind::all_gather, end.parameters.common, 2);
  constexpr double flags = 1e-3;  // of the protocols of small collectives
  for (const Grain grain : test::all_grains) {
    const Timeline timeline = simulate(program, world->machine(), grain);
    for (const char* gpu : {"gpu 0", "gpu 5"}) {
      CHECK(on_link(timeline, *world, std::string("node 0 ") + gpu + " nvlink out") == Approx(tensors).epsilon(flags));
      CHECK(on_link(timeline, *world, std::string("node 0 ") + gpu + " nvlink in") == Approx(tensors).epsilon(flags));
      CHECK(on_link(timeline, *world, std::string("node 1 ") + gpu + " nvlink out") ==
            Approx(tensors / 2).epsilon(0.01));
    }
    CHECK(on_link(timeline, *world, "node 0 nic 3 out") == Approx(pool));
    CHECK(on_link(timeline, *world, "node 1 nic 3 in") == Approx(pool));
  }
}

TEST_CASE("a collective keeps a link busy at the rate that collectives reach, not at that of messages", "[traffic]") {
  const Mesh mesh{.hdp = 2, .tp = 8};
  const auto world = world_of(mesh, "bytescale-implied");
  const Plan plan = test::plan_of(2, 4, {{{0}, 65'536}, {{1}, 65'536}});
  const Timeline timeline = simulate(Program(plan, {model_of(4), mesh, Recipe{}}), world->machine(), Grain::fluid);
  const std::size_t nic = link_named(*world, "node 0 nic 3 out");  // gradients and parameters alone
  const LinkProfile network = *shipped("bytescale-implied").network;
  REQUIRE(network.reduce_scatter->efficiency() == network.all_gather->efficiency());
  CHECK(static_cast<double>(timeline.links.as_messages[nic].count()) / on_link(timeline, *world, "node 0 nic 3 out") ==
        Approx(network.send_recv->efficiency() / network.all_gather->efficiency()));
}

TEST_CASE("what a group gathers is on the links of its own ranks", "[traffic]") {
  const Mesh mesh{.hdp = 16};
  const auto world = world_of(mesh);
  std::vector<std::size_t> second_node;
  for (std::size_t rank = 8; rank < 16; ++rank) second_node.push_back(rank);
  const Plan plan = test::plan_of(16, 2, {{second_node, 131'072}});
  const Program program(plan, {model_of(2), mesh, Recipe{.zero = 0, .key_exchange = KeyExchange::all_gather}});
  const MicroBatchProgram first = program.micro_batch(MicroBatchId(0));
  double gathered = 0;
  for (const Block& block : first.blocks) {
    for (const Instruction& instruction : block.body) {
      if (instruction.opcode != Opcode::share) continue;
      const SharingCollective& op = first.shares[instruction.work];
      gathered += static_cast<double>(instruction.runs(block.iterations)) * sent_by_one(op.kind, op.bytes, 8);
    }
  }
  REQUIRE(gathered > 0);
  const auto beside = [&](const char* name) {
    const Timeline timeline = simulate(program, world->machine(), Grain::fluid);
    return on_link(timeline, *world, name);
  };
  // Both nodes reduce gradients; the second one gathers keys, too.
  CHECK(beside("node 1 gpu 3 nvlink out") - beside("node 0 gpu 3 nvlink out") == Approx(gathered));
}

TEST_CASE("what experts exchange is on the links of their groups", "[traffic]") {
  const Mesh mesh{.hdp = 16, .ep = 8};
  const auto world = world_of(mesh);
  Transformer model = model_of(2);
  model.moe = MixtureOfExperts{.experts = 8, .experts_per_token = 2, .expert_hidden = 1024};
  std::vector<std::pair<std::vector<std::size_t>, std::int64_t>> micro_batches;
  for (std::size_t rank = 0; rank < 16; ++rank) micro_batches.push_back({{rank}, 8'192});
  const Plan plan = in_expert_waves(test::plan_of(16, 2, micro_batches), 8, 0);
  LoweringOptions options{model, mesh};
  options.experts = {.ep = 8};
  const Program program(plan, options);
  const double exchanged = sent_in(program, CollectiveGroup::experts, 8);
  REQUIRE(exchanged > 0);
  const Timeline timeline = simulate(program, world->machine(), Grain::fluid);
  CHECK(on_link(timeline, *world, "node 1 gpu 6 nvlink out") >= exchanged * (1 - 1e-9));
}

}  // namespace
}  // namespace hdpsim
