#include "sim/program/program.h"

#include <algorithm>

#include "sim/program/ring_attention.h"
#include "tests/support/catch.h"
#include "tests/support/small_world.h"

namespace hdpsim {
namespace {

using test::one_head_model;
using test::plan_of;

MicroBatchProgram lowered(const Plan& plan, std::int64_t layers, std::int64_t tp = 1) {
  const LoweringOptions options{one_head_model(layers), Mesh{.hdp = plan.ranks, .tp = tp, .pp = 1}, 2};
  return Program(plan, options).micro_batch(MicroBatchId(0));
}

std::size_t count(const Block& block, Opcode opcode) {
  return static_cast<std::size_t>(
      std::count_if(block.body.begin(), block.body.end(), [&](const Instruction& i) { return i.opcode == opcode; }));
}

const Block& forward_layers(const MicroBatchProgram& program) {
  return program.blocks[2];
}
const Block& backward_layers(const MicroBatchProgram& program) {
  return program.blocks[5];
}

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
      for (std::uint32_t d = 0; d < block.body[i].dependency_count; ++d) {
        const Dependency& dependency = block.body[i].dependencies[d];
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

TEST_CASE("zigzag: all steps of all ranks together cover the causal mask", "[program]") {
  for (const std::int64_t n : {1, 2, 4, 16}) {
    MicroBatch micro_batch;
    for (std::int64_t r = 0; r < n; ++r) micro_batch.group.emplace_back(static_cast<std::size_t>(r));
    micro_batch.spans = {{SequenceId(0), 0, 4096}, {SequenceId(1), 0, 1024}};
    const RingAttention ring = ring_attention(micro_batch, one_head_model(1), 1, Direction::forward);
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
  const RingAttention ring = ring_attention(micro_batch, one_head_model(1), 1, Direction::forward);
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
    const LoweringOptions options{one_head_model(2), Mesh{.hdp = plan.ranks}, 2};
    return Program(plan, options).step_end();
  };
  CHECK(end_of(four).gradient == end_of(one).gradient);
  CHECK(end_of(one).gradient == end_of(one).parameters * 2);  // fp32 against bf16
  CHECK(end_of(four).optimizer.traffic.gigabytes() ==
        Approx(end_of(one).optimizer.traffic.gigabytes() / 4).epsilon(1e-4));
}

TEST_CASE("without sequence parallelism a stage gathers what the stage before has cut", "[program][tp]") {
  const Plan plan = plan_of(1, 4, {{{0}, 64}});
  LoweringOptions options{.model = one_head_model(4), .mesh = {.hdp = 1, .tp = 2, .pp = 2}};
  options.dense.sequence_parallel = false;
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
  LoweringOptions options{one_head_model(2), Mesh{.hdp = 3}, 2};
  options.separate_merge = false;
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
    LoweringOptions options{one_head_model(2), Mesh{.hdp = 2}, dkv};
    options.model.element_bytes = element;
    const Program program(plan, options);
    const MicroBatchProgram lowered_program = program.micro_batch(MicroBatchId(0));
    Bytes sum = program.step_end().parameters;
    for (const Block& block : lowered_program.blocks) {
      for (const Instruction& i : block.body) {
        if (i.opcode == Opcode::exchange) sum += lowered_program.bytes[i.work];
      }
    }
    return sum;
  };
  CHECK(moved(4, 4) == moved(2, 2) * 2);
}

// ---- What is computed again

MicroBatchProgram lowered(Plan plan, Recompute recompute, double offload = 0, std::int64_t tp = 1) {
  plan.micro_batches[0].offload = offload;
  LoweringOptions options{one_head_model(4), Mesh{.hdp = plan.ranks, .tp = tp}, 2};
  options.recompute = recompute;
  return Program(plan, options).micro_batch(MicroBatchId(0));
}

std::vector<Opcode> opcodes(const Block& block) {
  std::vector<Opcode> found;
  for (const Instruction& i : block.body) found.push_back(i.opcode);
  return found;
}

std::vector<Opcode> joined(std::vector<Opcode> first, const std::vector<Opcode>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST_CASE("full recomputation is a layer's forward before its backward, its ring included", "[program][recompute]") {
  for (const std::int64_t tp : {1, 2}) {
    const Plan plan = plan_of(3, 4, {{{0, 1, 2}, 3000}});
    const MicroBatchProgram kept = lowered(plan, Recompute::none, 0, tp);
    const MicroBatchProgram again = lowered(plan, Recompute::full, 0, tp);
    CHECK(opcodes(forward_layers(again)) == opcodes(forward_layers(kept)));
    CHECK(opcodes(backward_layers(again)) == joined(opcodes(forward_layers(kept)), opcodes(backward_layers(kept))));
  }
}

TEST_CASE("selective recomputation is the ring attention of forward, before that of backward", "[program][recompute]") {
  const Plan plan = plan_of(3, 4, {{{0, 1, 2}, 3000}});
  const MicroBatchProgram again = lowered(plan, Recompute::selective);
  std::vector<Opcode> expected = opcodes(forward_layers(again));
  expected.pop_back();  // what comes behind its ring, and before it the MLP's backward
  const std::vector<Opcode> backward = opcodes(backward_layers(lowered(plan, Recompute::none)));
  CHECK(opcodes(backward_layers(again)) == joined(expected, backward));
  // Its first exchange waits for what comes before it.
  const Instruction& first = backward_layers(again).body.at(1);
  REQUIRE(first.opcode == Opcode::exchange);
  CHECK(first.dependencies[0].instruction == 0);
  CHECK(first.dependencies[0].iterations_back == 0);
}

TEST_CASE("a ring that begins the layer's backward begins behind that of the layer before", "[program][recompute]") {
  const Plan plan = plan_of(3, 4, {{{0, 1, 2}, 3000}});
  const MicroBatchProgram again = lowered(plan, {LayerModule::attention, LayerModule::projection});
  const std::vector<Instruction>& body = backward_layers(again).body;
  REQUIRE(body.front().opcode == Opcode::exchange);
  CHECK(body.front().dependencies[0].instruction == body.size() - 1);
  CHECK(body.front().dependencies[0].iterations_back == 1);
}

// What a layer's backward has of forward: parts, and launches of ring attention.
struct Again {
  std::vector<DensePart> parts;
  std::size_t attention = 0;
  std::vector<CollectiveKind> collectives;
};

Again again_of(const MicroBatchProgram& program) {
  Again again;
  for (const Instruction& i : backward_layers(program).body) {
    if (i.opcode == Opcode::dense && program.dense[i.work].direction == Direction::forward) {
      const std::vector<DensePart>& parts = program.dense[i.work].parts;
      again.parts.insert(again.parts.end(), parts.begin(), parts.end());
    }
    const bool attends = i.opcode == Opcode::attention && program.attention[i.work].direction == Direction::forward;
    if (attends) ++again.attention;
    const bool meets = i.opcode == Opcode::collective && program.collectives[i.work].direction == Direction::forward;
    if (meets) again.collectives.push_back(program.collectives[i.work].kind);
  }
  return again;
}

TEST_CASE("each module that is computed again has its own parts and collectives, and modules add up",
          "[program][recompute][tp]") {
  using enum DensePart;
  using M = LayerModule;
  using enum CollectiveKind;
  const Plan plan = plan_of(3, 4, {{{0, 1, 2}, 3000}});
  const auto of = [&](Recompute recompute) { return again_of(lowered(plan, recompute, 0, 2)); };
  const auto check = [&](Recompute recompute, const std::vector<DensePart>& parts, std::size_t attention,
                         const std::vector<CollectiveKind>& collectives) {
    INFO(recompute_text(recompute));
    const Again again = of(recompute);
    CHECK(again.parts == parts);
    CHECK(again.attention == attention);
    CHECK(again.collectives == collectives);
  };
  check({}, {}, 0, {});
  check({M::norm}, {mlp_norm, attention_norm}, 0, {all_gather, all_gather});
  check({M::qkv}, {qkv}, 0, {all_gather});
  check({M::attention}, {}, 3, {});
  check({M::projection}, {attention_output, attention_residual}, 0, {reduce_scatter});
  check({M::mlp}, {mlp}, 0, {all_gather, reduce_scatter});
  check({M::activation}, {mlp_activation}, 0, {});
  check({M::mlp, M::activation}, {mlp}, 0, {all_gather, reduce_scatter});
  check({M::attention, M::mlp}, {mlp}, 3, {all_gather, reduce_scatter});
  // The MLP's norm begins with what the projection ends with: attention's half comes first.
  check({M::norm, M::attention, M::projection}, {attention_norm, attention_output, attention_residual, mlp_norm}, 3,
        {all_gather, reduce_scatter, all_gather});
}

TEST_CASE("what is computed again is not copied to the host", "[program][recompute]") {
  const Plan plan = plan_of(1, 4, {{{0}, 1000}});
  const Transformer model = one_head_model(4);
  const auto offloaded = [&](Recompute recompute) {
    const MicroBatchProgram program = lowered(plan, recompute, 0.5);
    return program.bytes[forward_layers(program).body.back().work];
  };
  // Hidden size 64 and one head of 64 in bf16, and one fp32 log-sum-exp a token.
  CHECK(offloaded(Recompute::full) == Bytes(1000 * 64 * 2 / 2));
  CHECK(offloaded(Recompute::none) - offloaded(Recompute::selective) == Bytes(1000 * (64 * 2 + 4) / 2));
  CHECK(offloaded(Recompute::none) == activation_bytes(model, 1000, 1).scaled(0.5));
}

TEST_CASE("token-wise offload computes again what it does not copy, but attention", "[program][recompute]") {
  Plan plan = plan_of(1, 4, {{{0}, 1000}});
  plan.micro_batches[0].token_wise = true;
  const Transformer model = one_head_model(4);
  const MicroBatchProgram kept = lowered(plan_of(1, 4, {{{0}, 1000}}), Recompute::none);
  for (const std::int64_t copied : {0, 250, 1000}) {
    const MicroBatchProgram split = lowered(plan, Recompute::none, static_cast<double>(copied) / 1000);
    const Instruction& copy = forward_layers(split).body.back();
    REQUIRE(copy.opcode == Opcode::offload);
    // Whole: input and attention's output, 64 wide in bf16, and an fp32 log-sum-exp.
    const Bytes whole(1000 * (2 * 64 * 2 + 4));
    const Bytes others = activation_bytes(model, 1000, 1) - whole;
    CHECK(split.bytes[copy.work] == whole + others.scaled(static_cast<double>(copied) / 1000));
    std::vector<Instruction> body = backward_layers(split).body;
    if (copied < 1000) {
      const Instruction& again = body[1];  // behind the copy back
      CHECK(again.first_iteration == 2);   // two layers stayed
      using enum DensePart;
      const LinearPart expected = dense_work(
          model, 1000 - copied, 1, {attention_norm, qkv, attention_output, attention_residual, mlp_norm, mlp_inner},
          Direction::forward);
      CHECK(split.dense[again.work].parts == expected.parts);
      CHECK(split.dense[again.work].memory_bound.size() == expected.memory_bound.size());
      REQUIRE(split.dense[again.work].gemms.size() == 3);  // QKV, output, gate and up together
      for (const Gemm& gemm : split.dense[again.work].gemms) CHECK(gemm.m == 1000 - copied);
      body.erase(body.begin() + 1);
    }
    CHECK(count(backward_layers(split), Opcode::attention) == 1);
    CHECK(body.size() == backward_layers(kept).body.size() + 1);
  }
}

TEST_CASE("whatever is first to compute or to send waits for what comes back from the host", "[program][recompute]") {
  const Recompute ring_first{LayerModule::attention, LayerModule::projection};
  for (const Recompute recompute : {Recompute::none, Recompute::selective, ring_first, Recompute::full}) {
    const MicroBatchProgram program = lowered(plan_of(3, 4, {{{0, 1, 2}, 3000}}), recompute, 0.5);
    const std::vector<Instruction>& body = backward_layers(program).body;
    for (const Stream stream : {Stream::compute, Stream::comm}) {
      // Directly, or by something that does.
      std::vector<bool> waits(body.size());
      waits[0] = true;
      for (std::size_t i = 1; i < body.size(); ++i) {
        for (std::uint32_t d = 0; d < body[i].dependency_count; ++d) {
          const Dependency& dependency = body[i].dependencies[d];
          if (dependency.iterations_back == 0 && waits[dependency.instruction]) waits[i] = true;
        }
      }
      const auto first =
          std::find_if(body.begin(), body.end(), [&](const Instruction& i) { return i.stream == stream; });
      CHECK(waits[static_cast<std::size_t>(first - body.begin())]);
    }
  }
}

// ---- Tensor parallelism

TEST_CASE("tensor-parallel devices meet twice beside attention and twice beside the MLP, and at both ends of the model",
          "[program][tp]") {
  const MicroBatchProgram program = lowered(plan_of(1, 4, {{{0}, 1000}}), Recompute::none, 0, 2);
  using enum DensePart;
  using enum CollectiveKind;
  using Meeting = std::pair<CollectiveKind, DensePart>;
  const auto meetings = [&](const Block& block) {
    std::vector<Meeting> found;
    for (const Instruction& i : block.body) {
      if (i.opcode != Opcode::collective) continue;
      found.emplace_back(program.collectives[i.work].kind, program.collectives[i.work].part);
    }
    return found;
  };
  CHECK(meetings(program.blocks[1]) == std::vector<Meeting>{{reduce_scatter, embedding}});
  CHECK(meetings(program.blocks[2]) == std::vector<Meeting>{{all_gather, attention_norm},
                                                            {reduce_scatter, attention_output},
                                                            {all_gather, mlp_norm},
                                                            {reduce_scatter, mlp}});
  CHECK(meetings(program.blocks[3]) == std::vector<Meeting>{{all_gather, final_norm}, {all_gather, head}});
  CHECK(meetings(program.blocks[4]) == std::vector<Meeting>{{reduce_scatter, head}});
  CHECK(meetings(program.blocks[5]) ==
        std::vector<Meeting>{
            {all_gather, mlp}, {reduce_scatter, mlp}, {all_gather, attention_output}, {reduce_scatter, qkv}});
  CHECK(meetings(program.blocks[6]) == std::vector<Meeting>{{all_gather, embedding}});
  for (const TensorParallelCollective& collective : program.collectives) {
    const bool is_loss = collective.part == head && collective.kind == all_gather;
    CHECK(collective.bytes == (is_loss ? Bytes(2 * 1000 * 4) : hidden_bytes(one_head_model(4), 1000)));
  }
}

TEST_CASE("collectives cut the dense work and leave it what it is", "[program][tp]") {
  const Plan plan = plan_of(1, 4, {{{0}, 1000}});
  const Transformer model = one_head_model(4);
  for (const std::int64_t tp : {1, 2, 4}) {
    const MicroBatchProgram program = lowered(plan, Recompute::none, 0, tp);
    CHECK(program.dense.size() == (tp == 1 ? 8 : 17));
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      std::vector<Gemm> gemms;
      Bytes traffic;
      std::int64_t launches = 0;
      for (const LinearPart& part : program.dense) {
        if (part.direction != direction) continue;
        gemms.insert(gemms.end(), part.gemms.begin(), part.gemms.end());
        traffic += part.traffic();
        launches += part.launches();
      }
      std::vector<Gemm> expected;
      Bytes expected_traffic;
      std::int64_t expected_launches = 0;
      for (const auto& whole : {before_attention, after_attention, embedding, output_head}) {
        const LinearPart part = whole(model, 1000, tp, direction, {});
        expected.insert(expected.end(), part.gemms.begin(), part.gemms.end());
        expected_traffic += part.traffic();
        expected_launches += part.launches();
      }
      std::sort(gemms.begin(), gemms.end());
      std::sort(expected.begin(), expected.end());
      CHECK(gemms == expected);
      CHECK(traffic == expected_traffic);
      CHECK(launches == expected_launches);
    }
  }
}

TEST_CASE("more stages than layers are a failed check", "[program]") {
  const Plan plan = plan_of(1, 2, {{{0}, 64}});
  const LoweringOptions options{one_head_model(2), Mesh{.hdp = 1, .tp = 1, .pp = 3}, 2};
  CHECK_THROWS_WITH(Program(plan, options), Catch::Contains("2 layers in 3 stages"));
}

}  // namespace
}  // namespace hdpsim
