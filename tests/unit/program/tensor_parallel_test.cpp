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

enum class Overlap { none, chunks, input_gradient, weight_gradient };

// A product sums over the tokens for the gradient of a weight alone.
Overlap overlap_of(const TensorParallelCollective& op, const MicroBatchProgram& program) {
  if (!op.overlapped) return Overlap::none;
  if (op.overlapped->in_chunks) return Overlap::chunks;
  const Gemm& product = program.dense[op.overlapped->dense].gemms[op.overlapped->gemm];
  return product.k == 1000 ? Overlap::weight_gradient : Overlap::input_gradient;
}

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

TEST_CASE("backward gathers the inputs that are kept cut beside a product, and sums their gradient beside the next",
          "[program][tp]") {
  const Plan plan = plan_of(1, 4, {{{0}, 1000}});
  LoweringOptions options{
      .model = one_head_model(4), .mesh = {.hdp = 1, .tp = 2}, .recipe = {.overlap_tp_gradients = true}};
  const MicroBatchProgram program = Program(plan, options).micro_batch(MicroBatchId(0));
  using enum DensePart;
  using enum CollectiveKind;
  using Meeting = std::tuple<CollectiveKind, DensePart, Overlap>;
  const auto meetings = [](const MicroBatchProgram& of, const Block& block) {
    std::vector<Meeting> found;
    for (const Instruction& i : block.body) {
      if (i.opcode != Opcode::collective) continue;
      const TensorParallelCollective& op = of.collectives[i.work];
      CHECK(op.bytes == hidden_bytes(one_head_model(4), 1000));
      found.emplace_back(op.kind, op.part, overlap_of(op, of));
    }
    return found;
  };
  const auto gathered = [](DensePart part) { return Meeting{all_gather, part, Overlap::none}; };
  const auto gathered_again = [](DensePart part) { return Meeting{all_gather, part, Overlap::input_gradient}; };
  const auto summed = [](DensePart part, Overlap overlap) { return Meeting{reduce_scatter, part, overlap}; };
  const std::vector<Meeting> of_layer = {gathered(mlp),
                                         gathered_again(mlp),
                                         summed(mlp, Overlap::weight_gradient),
                                         gathered(attention_output),
                                         gathered_again(qkv),
                                         summed(qkv, Overlap::weight_gradient)};
  CHECK(meetings(program, program.blocks[4]) ==
        std::vector<Meeting>{gathered_again(head), summed(head, Overlap::weight_gradient)});
  CHECK(meetings(program, program.blocks[5]) == of_layer);
  // What runs in chunks elsewhere runs whole beside these products.
  options.recipe.overlap_tp = true;
  const MicroBatchProgram chunks = Program(plan, options).micro_batch(MicroBatchId(0));
  const auto in_chunks = [](DensePart part) { return Meeting{all_gather, part, Overlap::chunks}; };
  CHECK(meetings(chunks, chunks.blocks[5]) == std::vector<Meeting>{in_chunks(mlp), of_layer[1], of_layer[2],
                                                                   in_chunks(attention_output), of_layer[4],
                                                                   of_layer[5]});
}

TEST_CASE("a sum in chunks hides behind the product whose output it sums: in backward an input's gradient",
          "[program][tp]") {
  const Plan plan = plan_of(1, 4, {{{0}, 1000}});
  LoweringOptions options{.model = one_head_model(4), .mesh = {.hdp = 1, .tp = 2}};
  options.recipe.overlap_tp = true;
  const MicroBatchProgram program = Program(plan, options).micro_batch(MicroBatchId(0));
  std::size_t sums = 0;
  for (const TensorParallelCollective& op : program.collectives) {
    if (op.kind != CollectiveKind::reduce_scatter || !op.overlapped) continue;
    REQUIRE(op.overlapped->in_chunks);
    // A product that sums over the tokens makes the gradient of a weight.
    CHECK(program.dense[op.overlapped->dense].gemms[op.overlapped->gemm].k != 1000);
    ++sums;
  }
  CHECK(sums == 4);  // of attention and of the MLP, forward and backward
}

// The kernels between products and collectives that are no part of a layer, by what they read and write.
std::vector<Bytes> copies(const Recipe& recipe) {
  Transformer model = one_head_model(4);
  model.gated_mlp = true;
  const LoweringOptions options{.model = model, .mesh = {.hdp = 1, .tp = 2}, .recipe = recipe};
  const MicroBatchProgram program = Program(plan_of(1, 4, {{{0}, 1000}}), options).micro_batch(MicroBatchId(0));
  std::vector<Bytes> found;
  for (const LinearPart& work : program.dense) {
    if (work.parts.empty() && work.gemms.empty()) found.push_back(work.traffic());
  }
  return found;
}

TEST_CASE("DTensor copies all that it gathers, and all before it reduces", "[program][tp]") {
  using enum LayerKernels;
  const Bytes all = hidden_bytes(one_head_model(4), 1000);
  // Four in a layer's forward and in its backward, and those of the embedding and of the head.
  CHECK(copies({.layers = eager}) == std::vector<Bytes>(4 + 4 + 4, all * 2));
  CHECK(copies({.layers = compiled}) == std::vector<Bytes>(4 + 4 + 4, all * 2));
  CHECK(copies({.layers = fused}).empty());
}

TEST_CASE("async TP adds up what products have sent, and copies what no single product makes", "[program][tp]") {
  std::vector<Bytes> found = copies({.overlap_tp = true, .layers = LayerKernels::compiled});
  const Bytes all = hidden_bytes(one_head_model(4), 1000);
  const auto added = std::count(found.begin(), found.end(), all + all / 2);
  const auto copied = std::count(found.begin(), found.end(), all * 2);
  CHECK(added == 2);           // forward of a layer
  CHECK(copied == 2 + 2 + 2);  // gradients of several products, and both ways of the embedding and of the head
  CHECK(found.size() == static_cast<std::size_t>(added + copied));
}

TEST_CASE("without sequence parallelism nothing is gathered again, and sums of gradients stay beside a product",
          "[program][tp]") {
  const Plan plan = plan_of(1, 4, {{{0}, 1000}});
  LoweringOptions options{
      .model = one_head_model(4), .mesh = {.hdp = 1, .tp = 2}, .recipe = {.overlap_tp_gradients = true}};
  options.recipe.sequence_parallel = false;
  const MicroBatchProgram program = Program(plan, options).micro_batch(MicroBatchId(0));
  const auto beside_weight_gradient = [&](const Block& block) {
    return std::count_if(block.body.begin(), block.body.end(), [&](const Instruction& i) {
      return i.opcode == Opcode::collective &&
             overlap_of(program.collectives[i.work], program) == Overlap::weight_gradient;
    });
  };
  CHECK(count(backward_layers(program), Opcode::collective) == 2);
  CHECK(beside_weight_gradient(backward_layers(program)) == 2);
  CHECK(beside_weight_gradient(forward_layers(program)) == 0);
  options.mesh.tp = 1;
  CHECK(Program(plan, options).micro_batch(MicroBatchId(0)).collectives.empty());
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

}  // namespace
}  // namespace hdpsim
