#include "sim/program/program.h"
#include "sim/model/kept_tensors.h"

#include "sim/program/ring_launches.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"
#include "tests/unit/program/lowered.h"

namespace hdpsim {
namespace {

using test::backward_layers;
using test::count;
using test::forward_layers;
using test::lowered;
using test::one_head_model;
using test::plan_of;

TEST_CASE("layers are a loop: the program does not grow with them", "[program]") {
  const Plan plan = plan_of(4, 2, {{{0, 1, 2, 3}, 4096}});
  const MicroBatchProgram two = lowered(plan, 2);
  const MicroBatchProgram many = lowered(plan, 80);
  CHECK(forward_layers(many).body.size() == forward_layers(two).body.size());
  CHECK(forward_layers(many).iterations == 80);
}

TEST_CASE("a ring of n attends n times, receives n - 1 times forward and n + 1 times backward", "[program]") {
  for (const std::size_t n : {1, 2, 3, 8}) {
    std::vector<std::size_t> group(n);
    for (std::size_t i = 0; i < n; ++i) group[i] = i;
    const MicroBatchProgram program = lowered(plan_of(static_cast<std::int64_t>(n), 2, {{group, 4096}}), 2);
    CHECK(count(forward_layers(program), Opcode::attention) == n);
    CHECK(count(forward_layers(program), Opcode::merge) == n - 1);
    CHECK(count(forward_layers(program), Opcode::exchange) == n - 1);
    CHECK(count(backward_layers(program), Opcode::attention) == n);
    // Keys and values n - 1 times, their gradients n times, one exchange behind.
    CHECK(count(backward_layers(program), Opcode::exchange) == (n == 1 ? 0 : n + 1));
  }
}

TEST_CASE("backward moves keys and values n - 1 hops and their gradients n hops", "[program]") {
  const std::size_t n = 5;
  const Plan plan = plan_of(5, 2, {{{0, 1, 2, 3, 4}, 5000}});
  const MicroBatchProgram program = lowered(plan, 2);
  Bytes moved;
  for (const Instruction& i : backward_layers(program).body) {
    if (i.opcode == Opcode::exchange) moved += program.bytes[i.work];
  }
  const Bytes kv = kv_bytes(one_head_model(2), 1000, 1);
  CHECK(moved == kv * static_cast<std::int64_t>(2 * n - 1));
}

TEST_CASE("no instruction waits for a later one, and every dependency is inside its body", "[program]") {
  Plan plan = plan_of(3, 4, {{{0, 1, 2}, 3000}});
  plan.micro_batches[0].offload = 0.5;
  const MicroBatchProgram program = lowered(plan, 4);
  for (const Block& block : program.blocks) {
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      for (const Dependency& dependency : block.body[i].needed()) {
        CHECK(dependency.instruction < block.body.size());
        CHECK((dependency.iterations_back > 0 || dependency.instruction < i));
      }
    }
  }
}

TEST_CASE("all layers but two are copied to the host, and the last of them come back first", "[program]") {
  Plan plan = plan_of(1, 5, {{{0}, 1000}});
  plan.micro_batches[0].offload = 0.25;
  const MicroBatchProgram program = lowered(plan, 5);
  const auto active = [](const Block& block, Opcode opcode) {
    std::vector<std::int64_t> iterations;
    for (const Instruction& i : block.body) {
      for (std::int64_t n = 0; i.opcode == opcode && n < block.iterations; ++n) {
        if (i.active(n, block.iterations)) iterations.push_back(n);
      }
    }
    return iterations;
  };
  CHECK(active(forward_layers(program), Opcode::offload) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(active(backward_layers(program), Opcode::prefetch) == std::vector<std::int64_t>{2, 3, 4});
  for (const Instruction& i : forward_layers(program).body) {
    if (i.opcode == Opcode::offload) {
      CHECK(program.bytes[i.work] == activation_bytes(one_head_model(5), 1000, 1).scaled(0.25));
    }
  }
}

double area(const Attention& launch) {
  double pairs = 0;
  for (const AttentionBlock& block : launch.blocks) {
    const auto q = static_cast<double>(block.queries);
    const double one = block.mask == Mask::causal ? q * (q + 1) / 2 : q * static_cast<double>(block.keys);
    pairs += one * static_cast<double>(block.count);
  }
  return pairs;
}

TEST_CASE("zigzag: all steps of all ranks together cover the causal mask, gathered or not", "[program]") {
  const bool gathers = GENERATE(false, true);
  for (const std::int64_t n : {1, 2, 4, 16}) {
    CAPTURE(n, gathers);
    MicroBatch micro_batch;
    for (std::int64_t r = 0; r < n; ++r) micro_batch.group.emplace_back(static_cast<std::size_t>(r));
    micro_batch.spans = {{SequenceId(0), 0, 4096}, {SequenceId(1), 0, 1024}};
    const RingAttention ring =
        gathers ? gathered_attention(micro_batch, one_head_model(1), 1, Direction::forward)
                : ring_attention(micro_batch, one_head_model(1), 1, {.parties = n}, Direction::forward);
    CHECK((!gathers || ring.step.blocks.empty()));
    const double covered = static_cast<double>(n) * (area(ring.own) + static_cast<double>(n - 1) * area(ring.step));
    const double mask = static_cast<double>(causal_area(4096) + causal_area(1024));
    // Lengths divide by 2 n, so only the diagonal differs: each rank's own causal block counts its tokens' own pairs
    // once.
    CHECK(covered == Approx(mask).epsilon(1e-3));
  }
}

TEST_CASE("spans shorter than the ring occupy ranks in proportion", "[program]") {
  MicroBatch micro_batch;
  for (std::size_t r = 0; r < 100; ++r) micro_batch.group.emplace_back(r);
  for (std::size_t s = 0; s < 1000; ++s) micro_batch.spans.push_back({SequenceId(s), 0, 20});
  const RingAttention ring = ring_attention(micro_batch, one_head_model(1), 1, {.parties = 100}, Direction::forward);
  // 20 of 100 ranks hold a token of each span; 0.2 x 0.2 of the pairs of ranks hold one each.
  REQUIRE(ring.own.blocks.size() == 1);
  CHECK(ring.own.blocks[0].count == 200);
  REQUIRE(ring.step.blocks.size() == 1);
  CHECK(ring.step.blocks[0].count == 40);
}

TEST_CASE("the optimizer is sharded over the pool, gradients and parameters are not", "[program]") {
  const Plan one = plan_of(1, 2, {{{0}, 64}});
  const Plan four = plan_of(4, 2, {{{0, 1, 2, 3}, 64}});
  const auto end_of = [](const Plan& plan) {
    const LoweringOptions options{one_head_model(2), Mesh{.hdp = plan.ranks}};
    return Program(plan, options).step_end();
  };
  CHECK(end_of(four).gradient == end_of(one).gradient);
  CHECK(end_of(one).gradient.common == end_of(one).parameters.common * 2);  // fp32 against bf16
  CHECK(end_of(four).optimizer.elementwise.traffic.gigabytes() ==
        Approx(end_of(one).optimizer.elementwise.traffic.gigabytes() / 4).epsilon(1e-4));
}

TEST_CASE("a pipeline gathers and reduces all parameters of a device once, beside its passes or behind them",
          "[program][zero]") {
  const Plan plan = plan_of(2, 4, {{{0}, 1}, {{1}, 1}, {{0}, 1}, {{1}, 1}});
  for (const std::int64_t zero : {1, 2}) {
    for (const bool overlaps : {false, true}) {
      LoweringOptions options{.model = one_head_model(4), .mesh = {.hdp = 2, .pp = 2}};
      options.recipe = {.zero = zero, .overlap_grad_reduce = overlaps, .overlap_param_gather = overlaps};
      const Program program(plan, options);
      Bytes gathered = program.step_end(1).parameters.common;
      Bytes reduced = program.step_end(1).gradient.common;
      for (std::size_t id = 0; id < program.pipeline().passes(); ++id) {
        const PassId pass(id);
        const bool is_of_worker = program.pipeline().pass(pass).stage == 1 &&
                                  program.pipeline().micro_batch(pass).group.front() == HdpRank(0);
        if (!is_of_worker) continue;
        gathered += program.pool_work(pass).gather.common;
        reduced += program.pool_work(pass).reduction.common;
      }
      const std::int64_t parameters =
          parameters_of_stage(options.model, options.mesh, program.pipeline().chunk_map(), 1);
      CAPTURE(zero, overlaps);
      CHECK(gathered == Bytes(2 * parameters));
      CHECK(reduced == Bytes(zero == 1 ? 4 * parameters : 0));  // with level 2 the passes reduce
    }
  }
}

TEST_CASE("without sequence parallelism a stage gathers what the stage before has cut", "[program][tp]") {
  const Plan plan = plan_of(1, 4, {{{0}, 64}});
  LoweringOptions options{.model = one_head_model(4), .mesh = {.hdp = 1, .tp = 2, .pp = 2}};
  options.recipe.sequence_parallel = false;
  const Program program(plan, options);
  const auto gathers = [&](std::size_t pass) {
    const MicroBatchProgram lowered = program.pass(PassId(pass));
    return std::count_if(lowered.collectives.begin(), lowered.collectives.end(), [](const auto& op) {
      return op.kind == CollectiveKind::all_gather && op.part != DensePart::head;  // which is the loss
    });
  };
  // Forward and backward of the first stage, then of the second.
  CHECK(gathers(0) == 0);
  CHECK(gathers(1) == 1);
  CHECK(gathers(2) == 1);
  CHECK(gathers(3) == 0);
}

TEST_CASE("an instruction of a ring says its step", "[program]") {
  const MicroBatchProgram program = lowered(plan_of(3, 2, {{{0, 1, 2}, 3000}}), 2);
  const auto steps = [](const Block& block, Opcode opcode) {
    std::vector<std::uint32_t> found;
    for (const Instruction& i : block.body) {
      if (i.opcode == opcode) found.push_back(i.ring_step);
    }
    return found;
  };
  CHECK(steps(forward_layers(program), Opcode::exchange) == std::vector<std::uint32_t>{1, 2});
  CHECK(steps(forward_layers(program), Opcode::attention) == std::vector<std::uint32_t>{0, 1, 2});
  CHECK(steps(forward_layers(program), Opcode::merge) == std::vector<std::uint32_t>{1, 2});
  CHECK(steps(backward_layers(program), Opcode::exchange) == std::vector<std::uint32_t>{1, 2, 3, 4});
  CHECK(steps(backward_layers(program), Opcode::attention) == std::vector<std::uint32_t>{0, 1, 2});
}

TEST_CASE("attention that adds up by itself needs no merges, and the next exchange waits for it", "[program]") {
  const Plan plan = plan_of(3, 2, {{{0, 1, 2}, 3000}});
  LoweringOptions options{one_head_model(2), Mesh{.hdp = 3}};
  options.recipe.separate_merge = false;
  const MicroBatchProgram program = Program(plan, options).micro_batch(MicroBatchId(0));
  const std::vector<Instruction>& body = forward_layers(program).body;
  CHECK(count(forward_layers(program), Opcode::merge) == 0);
  // dense, exchange 1, attention 0, exchange 2, attention 1, attention 2, dense
  REQUIRE(body.size() == 7);
  CHECK(body[3].opcode == Opcode::exchange);
  CHECK(body[3].dependencies[0].instruction == 2);
  CHECK(program.memory_bound.empty());
}

TEST_CASE("elements of four bytes double what is sent", "[program]") {
  const Plan plan = plan_of(2, 2, {{{0, 1}, 3000}});
  const auto moved = [&](std::int64_t element, std::int64_t dkv) {
    LoweringOptions options{one_head_model(2), Mesh{.hdp = 2}, {.dkv_bytes_per_element = dkv}};
    options.model.element_bytes = element;
    const Program program(plan, options);
    const MicroBatchProgram lowered_program = program.micro_batch(MicroBatchId(0));
    Bytes sum = program.step_end().parameters.common;
    for (const Block& block : lowered_program.blocks) {
      for (const Instruction& i : block.body) {
        if (i.opcode == Opcode::exchange) sum += lowered_program.bytes[i.work];
      }
    }
    return sum;
  };
  CHECK(moved(4, 4) == moved(2, 2) * 2);
}

TEST_CASE("more stages than layers are a failed check", "[program]") {
  const Plan plan = plan_of(1, 2, {{{0}, 64}});
  const LoweringOptions options{one_head_model(2), Mesh{.hdp = 1, .tp = 1, .pp = 3}};
  CHECK_THROWS_WITH(Program(plan, options), Catch::Contains("2 layers in 3 chunks of 3 stages"));
}

}  // namespace
}  // namespace hdpsim
