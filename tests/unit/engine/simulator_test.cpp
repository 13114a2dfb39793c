#include "sim/engine/simulator.h"

#include "sim/model/kept_tensors.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::all_grains;
using test::HandCosts;
using test::HandMachine;
using test::one_device_nodes;
using test::one_head_model;
using test::plan_of;

Timeline run(const Plan& plan, const Transformer& model, HandMachine& world, Grain grain, Recompute recompute = {}) {
  LoweringOptions options{model, Mesh{.hdp = plan.ranks}};
  options.recipe.recompute = recompute;
  const Program program(plan, options);
  return simulate(program, world.machine, grain);
}

// Linear work of one micro-batch of the one-head model: per layer 4 products forward (QKV, output, gate and up
// together, down) and 8 backward, and the output head's one and two.
Duration linear_time(std::int64_t layers, Duration per_gemm) {
  return per_gemm * (layers * (4 + 8) + 3);
}

TEST_CASE("one rank alone takes its kernels' time", "[engine]") {
  constexpr std::int64_t layers = 3;
  constexpr std::int64_t tokens = 1000;
  const Plan plan = plan_of(1, layers, {{{0}, tokens}});
  const std::int64_t area = tokens * (tokens + 1) / 2;
  for (const Grain grain : all_grains) {
    HandMachine world(one_device_nodes(1, 1_GBps), std::make_unique<HandCosts>(1_us));
    const Timeline timeline = run(plan, one_head_model(layers), world, grain);
    CHECK(timeline.ranks[0][Activity::linear] == linear_time(layers, 1_us));
    CHECK(timeline.ranks[0][Activity::attention] == Duration::picoseconds(layers * (area + 2 * area)));
    CHECK(timeline.step_time == timeline.ranks[0][Activity::linear] + timeline.ranks[0][Activity::attention]);
  }
}

TEST_CASE("the exact grain keeps every instruction where that is asked for", "[engine]") {
  constexpr std::int64_t layers = 3;
  const Plan plan = plan_of(2, layers, {{{0, 1}, 1000}});
  HandMachine world(one_device_nodes(2, 1_GBps), std::make_unique<HandCosts>(1_us));
  CHECK(run(plan, one_head_model(layers), world, Grain::exact).instructions.empty());
  world.machine.record_instructions = true;
  const Timeline timeline = run(plan, one_head_model(layers), world, Grain::exact);
  // Of a rank: overhead, embedding and output head twice each; of a layer forward 2 dense, 2 attention, 1 merge and 1
  // exchange, backward 2 dense, 2 attention and 3 exchanges.
  CHECK(timeline.instructions.size() == 2 * (5 + layers * (6 + 7)));
  Duration attention;
  for (const InstructionRecord& record : timeline.instructions) {
    CHECK(record.begin <= record.end);
    CHECK(record.end.since_start() <= timeline.step_time);
    const bool counts = record.rank == HdpRank(1) && record.opcode == Opcode::attention;
    if (counts) attention += record.end - record.begin;
  }
  CHECK(attention == timeline.ranks[1][Activity::attention]);  // HandCosts merge for nothing
}

// The published kind of step by hand: one ring, two ranks, two layers. Rank i holds 2 of 4 parts of every span: with L
// tokens each has a = L / 2 tokens; its own step is causal over a tokens, the other one half a full square, a x a / 2.
struct HandRing {
  static constexpr std::int64_t layers = 2;
  static constexpr std::int64_t tokens = 2048;
  static constexpr std::int64_t local = tokens / 2;
  static constexpr std::int64_t own = local * (local + 1) / 2;  // pairs, and picoseconds forward
  static constexpr std::int64_t step = local * (local / 2);
  static constexpr std::int64_t kv_bytes = local * 2 * 64 * 2;  // keys and values of one head of 64 in bf16
};

TEST_CASE("a ring of two hides its message behind its own block when the network is fast enough", "[engine]") {
  using R = HandRing;
  const Plan plan = plan_of(2, R::layers, {{{0, 1}, R::tokens}});
  // At 1000 GB/s the message of 256 KiB takes 0.26 us; the own block takes 0.52 us.
  const Duration message = Bytes(R::kv_bytes) / 1000_GBps;
  REQUIRE(message < Duration::picoseconds(R::own));
  // Forward: own, step. Backward: own, step (twice as long each, and longer than a message), then the gradients of the
  // last step travel one hop with nothing left to hide them.
  const Duration forward = Duration::picoseconds(R::own + R::step);
  const Duration backward = 2 * forward + message;
  const Duration expected = linear_time(R::layers, 1_us) + R::layers * (forward + backward);
  for (const Grain grain : all_grains) {
    HandMachine world(one_device_nodes(2, 1000_GBps), std::make_unique<HandCosts>(1_us));
    const Timeline timeline = run(plan, one_head_model(R::layers), world, grain);
    CHECK(timeline.step_time == expected);
    for (const Breakdown& rank : timeline.ranks) {
      CHECK(rank.total() == timeline.step_time);
      CHECK(rank[Activity::cp_comm] == R::layers * message);
      CHECK(rank[Activity::attention] == R::layers * 3 * forward);
      CHECK(rank[Activity::group_wait] == Duration{});
    }
  }
}

TEST_CASE("what is computed again takes its time again, on fast and on slow networks", "[engine][recompute]") {
  using R = HandRing;
  const Plan plan = plan_of(2, R::layers, {{{0, 1}, R::tokens}});
  const Duration own = Duration::picoseconds(R::own);
  const Duration step = Duration::picoseconds(R::step);
  for (const Bandwidth nic : {1000_GBps, 1_GBps}) {
    const auto step_time = [&](Recompute recompute, Grain grain) {
      HandMachine world(one_device_nodes(2, nic), std::make_unique<HandCosts>(1_us));
      const Timeline timeline = run(plan, one_head_model(R::layers), world, grain, recompute);
      for (const Breakdown& rank : timeline.ranks) CHECK(rank.total() == timeline.step_time);
      return timeline.step_time;
    };
    // The forward of a ring of two: its own block, or the message if that takes longer, then the other's block. The
    // dense work of a forward layer is four products.
    const Duration ring = std::max(own, Bytes(R::kv_bytes) / nic) + step;
    for (const Grain grain : all_grains) {
      const Duration kept = step_time(Recompute::none, grain);
      CHECK(step_time(Recompute::selective, grain) == kept + R::layers * ring);
      CHECK(step_time(Recompute::full, grain) == kept + R::layers * (ring + 4_us));
      // Modules add up: a product each of QKV and the projection, two of the MLP; norms are free here.
      using enum LayerModule;
      CHECK(step_time({norm, activation}, grain) == kept);
      CHECK(step_time({qkv}, grain) == kept + R::layers * 1_us);
      CHECK(step_time({mlp, projection}, grain) == kept + R::layers * 3_us);
      CHECK(step_time({attention, qkv, mlp}, grain) == kept + R::layers * (ring + 3_us));
      CHECK(step_time({attention, projection}, grain) == kept + R::layers * (ring + 1_us));
    }
  }
}

TEST_CASE("token-wise offload takes the products of all but two layers again", "[engine][recompute]") {
  constexpr std::int64_t layers = 5;
  for (const std::size_t ranks : {1, 2}) {
    std::vector<std::size_t> group(ranks);
    for (std::size_t i = 0; i < ranks; ++i) group[i] = i;
    Plan plan = plan_of(static_cast<std::int64_t>(ranks), layers, {{group, 2000}});
    for (const Grain grain : all_grains) {
      const auto step_time = [&] {
        HandMachine world(one_device_nodes(2, 1000_GBps), std::make_unique<HandCosts>(1_us));
        world.machine.d2h = world.machine.h2d = 1'000'000_GBps;
        const Timeline timeline = run(plan, one_head_model(layers), world, grain);
        for (const Breakdown& rank : timeline.ranks) CHECK(rank.total() == timeline.step_time);
        return timeline.step_time;
      };
      plan.micro_batches[0].token_wise = false;
      plan.micro_batches[0].offload = 1;
      const Duration copied = step_time();
      plan.micro_batches[0].token_wise = true;
      CHECK(step_time() == copied);
      plan.micro_batches[0].offload = 0.5;
      CHECK(step_time() == copied + (layers - 2) * 3_us);  // QKV, output, gate and up together
    }
  }
}

TEST_CASE("every tensor-parallel collective takes its time", "[engine][tp]") {
  constexpr std::int64_t layers = 3;
  const Plan plan = plan_of(1, layers, {{{0}, 1000}});
  for (const Grain grain : all_grains) {
    HandMachine world(one_device_nodes(1, 1_GBps), std::make_unique<HandCosts>(1_us));
    world.machine.tensor_parallel = test::each_moves_at(1_GBps);
    const LoweringOptions options{one_head_model(layers), Mesh{.hdp = 1, .tp = 2}};
    const Timeline timeline = simulate(Program(plan, options), world.machine, grain);
    // Hidden states of 64 in bf16: four a layer and direction, and two at each end of the model; of two devices the
    // fp32 log-sum-exp of each token.
    const Duration hidden = Bytes(1000 * 64 * 2) / 1_GBps;
    const Duration loss = Bytes(1000 * 4 * 2) / 1_GBps;
    CHECK(timeline.ranks[0][Activity::tp_comm] == (8 * layers + 4) * hidden + loss);
    CHECK(timeline.ranks[0].total() == timeline.step_time);
  }
}

TEST_CASE("links carry keys and values forward, and them and their gradients backward", "[engine]") {
  using R = HandRing;
  const Plan plan = plan_of(2, R::layers, {{{0, 1}, R::tokens}});
  // Keys and values make one hop forward and one backward; their gradients go all the way round, two hops.
  const Bytes sent = Bytes(R::kv_bytes) * (R::layers * (1 + 1 + 2));
  for (const Grain grain : all_grains) {
    HandMachine world(one_device_nodes(2, 1_GBps), std::make_unique<HandCosts>(1_us));
    const Timeline timeline = run(plan, one_head_model(R::layers), world, grain);
    const NetworkModel& network = *world.machine.network;
    REQUIRE(timeline.links.bytes.size() == network.link_count());
    for (std::size_t link = 0; link < network.link_count(); ++link) {
      const bool is_nic = network.link_name(LinkId(link)).find("nic") != std::string::npos;
      CAPTURE(network.link_name(LinkId(link)));
      CHECK(timeline.links.bytes[link].count() == (is_nic ? sent.count() : 0));  // each sends and receives as much
    }
  }
}

TEST_CASE("a ring of two on a slow network waits for its messages", "[engine]") {
  using R = HandRing;
  const Plan plan = plan_of(2, R::layers, {{{0, 1}, R::tokens}});
  const Duration message = Bytes(R::kv_bytes) / 1_GBps;
  const Duration own = Duration::picoseconds(R::own);
  const Duration step = Duration::picoseconds(R::step);
  REQUIRE(message > 2 * own);
  // Forward: the message outlasts the own block. Backward: keys and values outlast the own block; then the own block's
  // gradients outlast the step, and the step's gradients follow them.
  const Duration forward = message + step;
  const Duration backward = message + std::max(message, 2 * step) + message;
  const Duration expected = linear_time(R::layers, 1_us) + R::layers * (forward + backward);
  for (const Grain grain : all_grains) {
    HandMachine world(one_device_nodes(2, 1_GBps), std::make_unique<HandCosts>(1_us));
    const Timeline timeline = run(plan, one_head_model(R::layers), world, grain);
    CHECK(timeline.step_time == expected);
    CHECK(timeline.ranks[0][Activity::cp_comm] ==
          expected - linear_time(R::layers, 1_us) - R::layers * 3 * (own + step));
  }
}

TEST_CASE("a slow rank makes its ring wait, and only its ring", "[engine]") {
  ClusterSpec cluster = one_device_nodes(4, 1000_GBps);
  cluster.speed[0] = 0.5;
  const Plan plan = plan_of(4, 2, {{{0, 1}, 2048}, {{2, 3}, 2048}});
  HandMachine world(cluster, std::make_unique<HandCosts>(1_us));
  const Timeline timeline = run(plan, one_head_model(2), world, Grain::fluid);
  const Duration slow = timeline.micro_batches[0].end - timeline.micro_batches[0].begin;
  const Duration nominal = timeline.micro_batches[1].end - timeline.micro_batches[1].begin;
  // Kernels take twice as long; the two exposed messages do not.
  const Duration messages = 2 * (Bytes(std::int64_t{1024} * 256) / 1000_GBps);
  CHECK(slow == 2 * (nominal - messages) + messages);
  CHECK(timeline.ranks[0][Activity::group_wait] == Duration{});
  CHECK(timeline.ranks[1][Activity::group_wait] == slow - nominal);
  CHECK(timeline.ranks[2][Activity::group_wait] == slow - nominal);  // at the end of the step
}

TEST_CASE("evidence counts kernels at the speed of their device", "[engine]") {
  ClusterSpec cluster = one_device_nodes(1, 1_GBps);
  cluster.speed[0] = 2;
  for (const Grain grain : all_grains) {
    HandMachine world(cluster, std::make_unique<HandCosts>(2_us));
    const Timeline timeline = run(plan_of(1, 3, {{{0}, 1000}}), one_head_model(3), world, grain);
    DurationSum kernels;
    for (const DurationSum& time : timeline.evidence)
      kernels += Duration::picoseconds(std::int64_t(time.picoseconds()));
    CHECK(kernels == DurationSum::picoseconds(timeline.step_time.picoseconds()));  // it does nothing else
  }
}

TEST_CASE("a micro-batch starts when the last rank of its group is there", "[engine]") {
  const Plan plan = plan_of(2, 2, {{{0}, 3000}, {{0, 1}, 2048}});
  HandMachine world(one_device_nodes(2, 1000_GBps), std::make_unique<HandCosts>(1_us));
  const Timeline timeline = run(plan, one_head_model(2), world, Grain::fluid);
  CHECK(timeline.micro_batches[1].begin == timeline.micro_batches[0].end);
  CHECK(timeline.ranks[1][Activity::group_wait] == timeline.micro_batches[0].end - Instant{});
}

TEST_CASE("two rings that share a NIC take turns; alone each has all of it", "[engine]") {
  // Two nodes of two devices and one NIC each: rings {0, 2} and {1, 3} cross between the nodes over the same NICs.
  ClusterSpec cluster = one_device_nodes(4, 1_GBps);
  cluster.devices_per_node = 2;
  cluster.tiers[0].fan_in = 2;
  const std::vector<std::pair<std::vector<std::size_t>, std::int64_t>> both = {{{0, 2}, 2048}, {{1, 3}, 2048}};
  const Plan alone = plan_of(4, 2, {both[0]});
  const Plan together = plan_of(4, 2, both);
  for (const Grain grain : {Grain::fluid, Grain::exact}) {
    HandMachine world(cluster, std::make_unique<HandCosts>(1_us));
    const Timeline one = run(alone, one_head_model(2), world, grain);
    const Timeline two = run(together, one_head_model(2), world, grain);
    // All messages but those that a kernel would hide anyway take twice as long: every message outlasts its kernel.
    const Duration message = Bytes(HandRing::kv_bytes) / 1_GBps;
    const Duration extra = two.step_time - one.step_time;
    CHECK(extra.seconds() == Approx((HandRing::layers * 4 * message).seconds()).epsilon(0.001));
  }
  HandMachine world(cluster, std::make_unique<HandCosts>(1_us));
  CHECK(run(together, one_head_model(2), world, Grain::closed_form).step_time ==
        run(alone, one_head_model(2), world, Grain::closed_form).step_time);
}

TEST_CASE("copies to the host cost nothing while they fit and the difference when they do not", "[engine]") {
  constexpr std::int64_t layers = 6;
  Plan plan = plan_of(1, layers, {{{0}, 1000}});
  const Transformer model = one_head_model(layers);
  const auto step_time = [&](double offload, Bandwidth pcie, Grain grain) {
    plan.micro_batches[0].offload = offload;
    ClusterSpec cluster = one_device_nodes(1, 1_GBps);
    cluster.pcie = pcie;
    HandMachine world(cluster, std::make_unique<HandCosts>(1_us));
    const Timeline timeline = run(plan, model, world, grain);
    CHECK(timeline.ranks[0].total() == timeline.step_time);
    return timeline.step_time;
  };
  const Bytes activations = activation_bytes(model, 1000, 1);
  const Duration attention = Duration::picoseconds(1000 * 1001 / 2);
  const Duration forward = 4_us + attention;
  const Duration backward = 8_us + 2 * attention;
  for (const Grain grain : all_grains) {
    const Duration without = step_time(0, 1_GBps, grain);
    // Fast copies: each fits into the forward pass of a layer.
    CHECK(step_time(1, 1000_GBps, grain) == without);
    // Slow copies of duration c: the forward pass of the last layer waits for the copy of the last but two, so that
    // forward ends f + (l - 2) c + f after its start, and its own copy has long ended then. Backward likewise: the
    // first prefetch starts when one layer is done, and the last of l - 2 is followed by one layer.
    const Duration c = activations / 1_GBps;
    REQUIRE(c > backward);
    const Duration forward_stall = (layers - 2) * (c - forward);
    const Duration backward_stall = (layers - 2) * (c - backward);
    CHECK(step_time(1, 1_GBps, grain) == without + forward_stall + backward_stall);
  }
}

TEST_CASE("ranks that wait for each other in a circle are named", "[engine]") {
  Plan plan = plan_of(2, 2, {{{0, 1}, 64}, {{0, 1}, 64}});
  std::swap(plan.schedule[0][0], plan.schedule[0][1]);
  HandMachine world(one_device_nodes(2, 1_GBps), std::make_unique<HandCosts>(1_us));
  CHECK_THROWS_WITH(run(plan, one_head_model(2), world, Grain::fluid),
                    Catch::Contains("deadlocked; rank 0 waits in micro-batch 1 for 1 of its 2 ranks"));
}

TEST_CASE("the mean over ranks sums to the step time to the picosecond", "[engine]") {
  Timeline timeline;
  timeline.step_time = Duration::picoseconds(10);
  timeline.ranks.resize(3);
  for (std::size_t r = 0; r < 3; ++r) {
    timeline.ranks[r][Activity::attention] = Duration::picoseconds(static_cast<std::int64_t>(r));
    timeline.ranks[r][Activity::linear] = Duration::picoseconds(10 - static_cast<std::int64_t>(r));
  }
  CHECK(timeline.mean().total() == timeline.step_time);
  CHECK(timeline.mean()[Activity::attention] == Duration::picoseconds(1));
}

}  // namespace
}  // namespace hdpsim
