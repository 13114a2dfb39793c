#include "sim/engine/impl/overlap.h"

#include "sim/engine/simulator.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::HandCosts;
using test::HandMachine;
using test::one_device_nodes;
using test::one_head_model;
using test::plan_of;

Duration ps(std::int64_t count) {
  return Duration::picoseconds(count);
}

// A loop of three iterations: exchange, attention, merge, exchange, attention that needs the first exchange, attention
// that needs the second. Attention takes 100 ps, a merge 50 ps; a byte takes 1 ps over the only hop.
PricedProgram hand_ring(Bytes message) {
  PricedProgram priced;
  priced.program.bytes = {message};
  const auto instruction = [](Opcode opcode, Stream stream) {
    Instruction made;
    made.opcode = opcode;
    made.stream = stream;
    return made;
  };
  const Instruction exchange = instruction(Opcode::exchange, Stream::comm);
  const Instruction attention = instruction(Opcode::attention, Stream::compute);
  const Instruction merge = instruction(Opcode::merge, Stream::compute);
  std::vector<Instruction> body = {exchange, attention, merge, exchange, attention, attention};
  body[4].after(0);
  body[5].after(3);
  priced.program.blocks = {{3, body}};
  priced.times = {{Duration{}, ps(100), ps(50), Duration{}, ps(100), ps(100)}};
  return priced;
}

std::vector<Hop> one_hop() {
  return {{.routes = {}, .latency = {}, .alone = 1000_GBps}};
}

constexpr KernelSlowdown slowdown{.attention = 2, .memory_bound = 1.25, .evidence = Evidence::interpolated};

TEST_CASE("kernels are slowed for as long as the exchange beside them lasts", "[engine][beside]") {
  PricedProgram priced = hand_ring(130_B);
  slow_under_exchanges(priced, one_hop(), slowdown);
  // In 130 ps at half speed 65 ps of the attention are done: 65 are lost. The exchange is over before the merge.
  const std::vector<Duration> expected = {Duration{}, ps(165), ps(50), Duration{}, ps(165), ps(100)};
  CHECK(priced.times.front() == expected);
  const auto interpolated = static_cast<std::size_t>(Evidence::interpolated);
  CHECK(priced.evidence[interpolated] == ps(std::int64_t{3} * (65 + 65)));
}

TEST_CASE("what is left of an exchange slows the kernel after", "[engine][beside]") {
  PricedProgram priced = hand_ring(210_B);
  slow_under_exchanges(priced, one_hop(), slowdown);
  // Attention takes 200 ps all beside the exchange; in the other 10 ps a merge makes 8 ps of progress.
  const std::vector<Duration> expected = {Duration{}, ps(200), ps(52), Duration{}, ps(200), ps(100)};
  CHECK(priced.times.front() == expected);
}

TEST_CASE("an exchange that outlasts its kernels is over when a kernel needs it", "[engine][beside]") {
  PricedProgram priced = hand_ring(1000_B);
  slow_under_exchanges(priced, one_hop(), slowdown);
  // The fifth instruction has the second exchange beside it, the last has none.
  const std::vector<Duration> expected = {Duration{}, ps(200), ps(63), Duration{}, ps(200), ps(100)};
  CHECK(priced.times.front() == expected);
}

TEST_CASE("a ring of two loses part of its kernels to its messages, in every grain alike", "[engine][beside]") {
  constexpr std::int64_t layers = 2;
  constexpr std::int64_t local = 1024;
  const Plan plan = plan_of(2, layers, {{{0, 1}, 2 * local}});
  // 256 bytes a token at 1000 GB/s: 262,144 ps. A rank's own block takes 524,800 ps, so that messages stay hidden.
  const Duration message = Bytes(local * 256) / 1000_GBps;
  // At half speed a kernel loses half the message's time. Forward: the own block has a message beside it. Backward: the
  // own block and the step have one each.
  const Duration lost = layers * 3 * message.scaled(0.5);
  const LoweringOptions options{one_head_model(layers), Mesh{.hdp = 2}};
  const Program program(plan, options);
  for (const Grain grain : {Grain::fluid, Grain::exact, Grain::closed_form}) {
    HandMachine world(one_device_nodes(2, 1000_GBps), std::make_unique<HandCosts>(1_us));
    const Timeline undisturbed = simulate(program, world.machine, grain);
    world.machine.overlap_slowdown = slowdown;
    const Timeline slowed = simulate(program, world.machine, grain);
    CHECK(slowed.step_time == undisturbed.step_time + lost);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const Duration attention = undisturbed.ranks[rank][Activity::attention];
      CHECK(slowed.ranks[rank][Activity::attention] == attention + lost);
    }
    world.machine.overlap_slowdown = KernelSlowdown{};
    CHECK(simulate(program, world.machine, grain).ranks[0][Activity::attention] ==
          undisturbed.ranks[0][Activity::attention]);
  }
}

TEST_CASE("a rank alone has no message beside its kernels", "[engine][beside]") {
  const Plan plan = plan_of(1, 2, {{{0}, 1000}});
  const LoweringOptions options{one_head_model(2), Mesh{.hdp = 1}};
  const Program program(plan, options);
  HandMachine world(one_device_nodes(1, 1_GBps), std::make_unique<HandCosts>(1_us));
  const Duration undisturbed = simulate(program, world.machine, Grain::fluid).step_time;
  world.machine.overlap_slowdown = slowdown;
  CHECK(simulate(program, world.machine, Grain::fluid).step_time == undisturbed);
}

// A layer with experts: attention, all-to-all, product of experts, all-to-all.
PricedProgram layer_with_experts(Direction direction, Duration attention, Duration to, Duration experts,
                                 Duration back) {
  PricedProgram priced;
  priced.program.collectives.resize(1);
  priced.program.collectives.front().among = CollectiveGroup::experts;
  const auto instruction = [](Opcode opcode) {
    Instruction made;
    made.opcode = opcode;
    return made;
  };
  Block block{2,
              {instruction(Opcode::attention), instruction(Opcode::collective), instruction(Opcode::dense),
               instruction(Opcode::collective)},
              direction};
  block.exchanged_experts = {{1, 3}};
  priced.program.blocks = {block};
  priced.times = {{attention, to, experts, back}};
  return priced;
}

TEST_CASE("all-to-alls of two passes hide behind each other's attention and experts, phase by phase", "[experts]") {
  const PricedProgram forward = layer_with_experts(Direction::forward, ps(100), ps(80), ps(60), ps(90));
  const PricedProgram backward = layer_with_experts(Direction::backward, ps(70), ps(120), ps(50), ps(40));
  PricedProgram first = forward;
  overlap_passes(first, std::span(&backward, 1), KernelSlowdown{});
  // To the experts beside those of backward, 80 - 50; back beside the attention of backward, 90 - 70.
  CHECK(first.times.front() == std::vector{ps(100), ps(30), ps(60), ps(20)});
  PricedProgram second = backward;
  overlap_passes(second, std::span(&forward, 1), KernelSlowdown{});
  // Gradients to the experts beside the attention of forward, 120 - 100; back beside the experts of forward.
  CHECK(second.times.front() == std::vector{ps(70), ps(20), ps(50), Duration{}});
}

TEST_CASE("kernels beside another pass's all-to-alls lose time to them, and hide as much more", "[experts]") {
  constexpr KernelSlowdown half{.attention = 2, .product = 2, .evidence = Evidence::interpolated};
  const PricedProgram backward = layer_with_experts(Direction::backward, ps(70), ps(120), ps(50), ps(40));
  PricedProgram forward = layer_with_experts(Direction::forward, ps(100), ps(80), ps(60), ps(190));
  overlap_passes(forward, std::span(&backward, 1), half);
  // Experts of backward take 100 ps at half speed, more than 80; its attention 140 of 190. Of the attention here, 120
  // ps of messages take 60 ps; of the experts 40 ps take 20.
  CHECK(forward.times.front() == std::vector{ps(160), Duration{}, ps(80), ps(50)});
  CHECK(forward.evidence[static_cast<std::size_t>(Evidence::interpolated)] == ps(2 * (60 + 20)));
}

}  // namespace
}  // namespace hdpsim
