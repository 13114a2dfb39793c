#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/model/kept_tensors.h"
#include "tests/support/catch.h"
#include "tests/support/recompute_text.h"
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

TEST_CASE("a block says where its rings are: from the first exchange to what needs the last one",
          "[program][recompute]") {
  const Plan alone = plan_of(1, 4, {{{0}, 1000}});
  CHECK(backward_layers(lowered(alone, Recompute::selective)).rings.empty());
  for (const std::size_t ranks : {2, 3, 8}) {
    std::vector<std::size_t> group(ranks);
    std::iota(group.begin(), group.end(), std::size_t{0});
    const MicroBatchProgram program =
        lowered(plan_of(static_cast<std::int64_t>(ranks), 4, {{group, 1000}}), Recompute::selective);
    CHECK(forward_layers(program).rings.size() == 1);
    CHECK(backward_layers(program).rings.size() == 2);
    for (const Block* block : {&forward_layers(program), &backward_layers(program)}) {
      std::size_t inside = 0;
      for (const BodyRange& ring : block->rings) {
        const Instruction& first = block->body[ring.first];
        CHECK((first.opcode == Opcode::exchange && first.ring_step == 1));
        std::size_t last = ring.first;
        for (std::size_t i = ring.first; i < ring.last; ++i) {
          if (block->body[i].opcode != Opcode::exchange) continue;
          ++inside;
          last = i;
        }
        const Instruction& behind = block->body[ring.last];
        const std::span<const Dependency> needed = behind.needed();
        CHECK(std::any_of(needed.begin(), needed.end(),
                          [&](const Dependency& d) { return d.instruction == last && d.iterations_back == 0; }));
      }
      CHECK(inside == count(*block, Opcode::exchange));
    }
  }
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
    INFO(test::recompute_text(recompute));
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

TEST_CASE("per-operation recompute has all but the sums over devices, attention and the last product",
          "[program][recompute][tp]") {
  using enum DensePart;
  using enum CollectiveKind;
  const Plan plan = plan_of(3, 4, {{{0, 1, 2}, 3000}});
  const auto again = [&](LayerKernels layers, std::int64_t tp) {
    const LoweringOptions options{.model = one_head_model(4),
                                  .mesh = {.hdp = 3, .tp = tp},
                                  .recipe = {.recompute = Recompute::per_operation, .layers = layers}};
    return again_of(Program(plan, options).micro_batch(MicroBatchId(0)));
  };
  const std::vector<DensePart> all = {attention_norm,     qkv_again, attention_output_again,
                                      attention_residual, mlp_norm,  mlp_again};
  for (const LayerKernels layers : {LayerKernels::eager, LayerKernels::compiled}) {
    CHECK(again(layers, 1).parts == all);
    CHECK(again(layers, 1).attention == 0);
  }
  CHECK(again(LayerKernels::eager, 2).parts == all);
  CHECK(again(LayerKernels::eager, 2).collectives == std::vector{all_gather, all_gather});
  // The sum over devices is kept: nobody reads its terms.
  CHECK(again(LayerKernels::compiled, 2).parts ==
        std::vector{attention_norm, qkv_again, attention_residual, mlp_norm, mlp_again});
}

TEST_CASE("PyTorch computes a layer again up to its last product", "[program][recompute][tp]") {
  using enum DensePart;
  using enum CollectiveKind;
  const Plan plan = plan_of(3, 4, {{{0, 1, 2}, 3000}});
  const LoweringOptions options{.model = one_head_model(4),
                                .mesh = {.hdp = 3, .tp = 2},
                                .recipe = {.recompute = Recompute::full, .layers = LayerKernels::eager}};
  const Again again = again_of(Program(plan, options).micro_batch(MicroBatchId(0)));
  CHECK(again.parts == std::vector{attention_norm, qkv, attention_output, attention_residual, mlp_norm, mlp_inner});
  CHECK(again.attention == 3);
  CHECK(again.collectives == std::vector{all_gather, reduce_scatter, all_gather});
  LoweringOptions to_the_end = options;
  to_the_end.recipe.early_stop = false;
  CHECK(again_of(Program(plan, to_the_end).micro_batch(MicroBatchId(0))).parts.back() == mlp_residual);
}

TEST_CASE("norms that are computed again leave the gather to a backward that gathers inputs itself",
          "[program][recompute][tp]") {
  using M = LayerModule;
  using enum CollectiveKind;
  const Plan plan = plan_of(3, 4, {{{0, 1, 2}, 3000}});
  const auto gathers = [&](Recompute recompute) {
    const LoweringOptions options{.model = one_head_model(4),
                                  .mesh = {.hdp = 3, .tp = 2},
                                  .recipe = {.recompute = recompute, .overlap_tp_gradients = true}};
    return again_of(Program(plan, options).micro_batch(MicroBatchId(0))).collectives;
  };
  CHECK(gathers({M::norm}).empty());
  // A product that is done again has its own.
  CHECK(gathers({M::norm, M::qkv}) == std::vector{all_gather});
  CHECK(gathers({M::norm, M::mlp}) == std::vector{all_gather, reduce_scatter});
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
  CHECK(offloaded(Recompute::none) - offloaded(Recompute::selective) == Bytes(1000 * 4 / 2));
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
        for (const Dependency& dependency : body[i].needed()) {
          if (dependency.iterations_back == 0 && waits[dependency.instruction]) waits[i] = true;
        }
      }
      const auto first =
          std::find_if(body.begin(), body.end(), [&](const Instruction& i) { return i.stream == stream; });
      CHECK(waits[static_cast<std::size_t>(first - body.begin())]);
    }
  }
}

}  // namespace
}  // namespace hdpsim
