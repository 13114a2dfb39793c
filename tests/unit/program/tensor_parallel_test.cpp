#include "tests/support/catch.h"
#include "tests/support/small_world.h"
#include "tests/unit/program/lowered.h"

namespace hdpsim {
namespace {

using test::lowered;
using test::one_head_model;
using test::plan_of;

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

}  // namespace
}  // namespace hdpsim
