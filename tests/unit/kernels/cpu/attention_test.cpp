#include "kernels/cpu/cpu_backend.h"
#include "tests/support/catch.h"
#include "tests/unit/kernels/cpu/attention_checks.h"

using namespace hdpsim::kernels;
using namespace hdpsim::test;

namespace {

/// All pairs of lengths around the edges of tiles, with alternating masks: a third of them, which one by `turn`.
std::vector<BlockShape> edge_shapes(int turn) {
  std::vector<BlockShape> shapes;
  int number = 0;
  for (const std::int64_t queries : {1, 63, 64, 65, 127, 128, 129}) {
    for (const std::int64_t keys : {1, 63, 64, 65, 127, 128, 129}) {
      ++number;
      if (number % 3 != turn) continue;
      shapes.push_back({queries, keys, number % 2 == 0 ? Mask::full : Mask::causal});
    }
  }
  return shapes;
}

bool is_zero(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float value) { return value == 0; });
}

}  // namespace

TEST_CASE("lengths around the edges of tiles agree with fp64, forward and backward", "[attention]") {
  SECTION("one key-value head a head, dimension 64") {
    check_problem({1, heads_of(2, 2, 64), edge_shapes(0)});
  }
  SECTION("four heads share a key-value head, dimension 128") {
    check_problem({2, heads_of(4, 1, 128), edge_shapes(1)});
  }
  SECTION("eight heads share a key-value head, dimension 64") {
    check_problem({3, heads_of(8, 1, 64), edge_shapes(2)});
  }
}

TEST_CASE("more queries and keys than are packed at once agree with fp64", "[attention]") {
  SECTION("keys beyond a chunk of the forward pass") {
    check_problem({4, heads_of(1, 1, 64), {{70, 3200, Mask::causal}, {40, 3100, Mask::full}}});
  }
  SECTION("queries and keys beyond a chunk of the backward pass") {
    check_problem({5, heads_of(1, 1, 64), {{1000, 1950, Mask::causal}}});
  }
  SECTION("a causal block in which early queries see no key of the last chunk") {
    check_problem({6, heads_of(1, 1, 64), {{3200, 200, Mask::causal}, {50, 3120, Mask::causal}}});
  }
}

TEST_CASE("a scale other than 1 / sqrt(dim) is applied to scores and gradients", "[attention]") {
  AttentionHeads heads = heads_of(2, 1, 64);
  for (const float scale : {0.01F, 0.5F, -0.2F}) {
    CAPTURE(scale);
    heads.scale = scale;
    check_problem({7, heads, {{33, 47, Mask::causal}, {20, 90, Mask::full}}});
  }
}

TEST_CASE("random packed blocks agree with fp64", "[attention][property]") {
  for (std::uint64_t seed = 100; seed < 112; ++seed) {
    std::mt19937_64 engine(seed);
    std::vector<BlockShape> shapes;
    for (std::int64_t left = random_between(engine, 1, 9); left > 0; --left) {
      shapes.push_back({random_between(engine, 0, 150), random_between(engine, 0, 220),
                        random_between(engine, 0, 1) == 0 ? Mask::full : Mask::causal});
    }
    const std::int64_t kv_heads = random_between(engine, 1, 2);
    const std::int64_t heads = kv_heads * random_between(engine, 1, 3);
    INFO("seed " << seed);
    check_problem({seed, heads_of(heads, kv_heads, random_between(engine, 0, 1) == 0 ? 64 : 128), shapes});
  }
}

TEST_CASE("rows that see no key have no output, an LSE of -inf and no gradient", "[attention]") {
  const AttentionProblem problem(8, heads_of(2, 1, 64),
                                 {{5, 0, Mask::full}, {90, 7, Mask::causal}, {0, 9, Mask::full}});
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set));
    const auto backend = make_cpu_backend(set);
    AttentionRun run(problem);
    run.forward(*backend);
    run.backward(*backend);
    CHECK(is_zero(run.o.dense(problem.blocks[0].query_begin, 5)));
    CHECK(is_zero(run.d_q.dense(problem.blocks[0].query_begin, 5)));
    // Of 90 queries over 7 keys the first 83 see none.
    CHECK(is_zero(run.o.dense(problem.blocks[1].query_begin, 83)));
    CHECK(is_zero(run.d_q.dense(problem.blocks[1].query_begin, 83)));
    CHECK(run.lse.row(1)[static_cast<std::size_t>(problem.blocks[1].query_begin + 82)] == -HUGE_VALF);
    CHECK(std::isfinite(run.lse.row(1)[static_cast<std::size_t>(problem.blocks[1].query_begin + 83)]));
    CHECK(is_zero(run.d_k.dense(problem.blocks[2].key_begin, 9)));
  }
}
