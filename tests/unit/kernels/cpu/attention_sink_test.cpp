#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/catch.h"
#include "tests/unit/kernels/cpu/attention_checks.h"

using namespace hdpsim::kernels;
using namespace hdpsim::test;

namespace {

AttentionProblem with_sinks(AttentionProblem problem, std::uint64_t seed) {
  problem.sinks = random_tensor(seed, static_cast<std::size_t>(problem.heads.heads), 2);
  return problem;
}

}  // namespace

TEST_CASE("sinks under every mask agree with fp64, forward and backward", "[attention]") {
  const std::vector<BlockShape> shapes = {
      {70, 70},           {33, 100, Mask::full},         {90, 7, Mask::causal}, {150, 150, Mask::causal, 20},
      {5, 0, Mask::full}, {60, 60, Mask::causal, 40, 50}};
  SECTION("dimension 64, two heads share keys") {
    check_problem(with_sinks({60, heads_of(4, 2, 64), shapes}, 61));
  }
  SECTION("dimension 128") {
    check_problem(with_sinks({62, heads_of(2, 2, 128), shapes}, 63));
  }
  SECTION("keys beyond a chunk of the forward pass") {
    check_problem(with_sinks({64, heads_of(1, 1, 64), {{40, 3200, Mask::full}}}, 65));
  }
}

TEST_CASE("sinks far above and far below all scores leave nothing, or change nothing", "[attention]") {
  const AttentionProblem plain(66, heads_of(2, 1, 64), {{80, 80}});
  const AttentionBlock& block = plain.blocks[0];
  AttentionProblem problem = plain;
  problem.sinks = {-HUGE_VALF, 300};
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set));
    const auto backend = make_cpu_backend(set);
    AttentionRun without(plain);
    without.forward(*backend);
    without.backward(*backend);
    AttentionRun run(problem);
    run.forward(*backend);
    run.backward(*backend);
    CHECK(run.d_sinks[0] == 0);
    for (std::int64_t i = block.query_begin; i < block.query_begin + block.queries; ++i) {
      const auto row = run.o.row(i);
      CHECK(std::equal(row.begin(), row.begin() + 64, without.o.row(i).begin()));
      CHECK(std::all_of(row.begin() + 64, row.end(), [](float value) { return std::abs(value) <= 1e-30F; }));
      CHECK(run.lse.row(1)[static_cast<std::size_t>(i)] == Approx(300).epsilon(1e-6));
    }
  }
}

TEST_CASE("of launches that accumulate, one has the sinks, whichever", "[attention]") {
  const AttentionProblem problem = with_sinks({67, heads_of(2, 1, 64), {{50, 120, Mask::full}}}, 68);
  const AttentionTruth truth(problem);
  const AttentionBlock& whole = problem.blocks[0];
  const bool sinks_first = GENERATE(true, false);
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set) << (sinks_first ? ", in the first launch" : ", in the last launch"));
    const auto backend = make_cpu_backend(set);
    AttentionRun run(problem);
    run.o.fill_rows(whole.query_begin, whole.queries, 0);
    for (std::int64_t head = 0; head < 2; ++head) {
      std::fill_n(run.lse.row(head).begin() + whole.query_begin, whole.queries, -HUGE_VALF);
    }
    const AttentionBlock parts[] = {{whole.query_begin, 50, whole.key_begin, 80, Mask::full},
                                    {whole.query_begin, 50, whole.key_begin + 80, 40, Mask::full}};
    run.forward(*backend, {&parts[0], 1}, true, sinks_first);
    run.forward(*backend, {&parts[1], 1}, true, !sinks_first);
    run.backward(*backend, {&parts[0], 1}, sinks_first);
    run.backward(*backend, {&parts[1], 1}, !sinks_first);
    check_block(problem, run, truth, whole);
    CHECK(relative_error(run.d_sinks, truth.gradients.d_sinks, gradient_terms) <= gradient_error);
  }
}

TEST_CASE("random masks with sinks agree with fp64", "[attention][property]") {
  for (std::uint64_t seed = 300; seed < 308; ++seed) {
    std::mt19937_64 engine(seed);
    std::vector<BlockShape> shapes;
    for (std::int64_t left = random_between(engine, 1, 5); left > 0; --left) {
      const std::int64_t window = random_between(engine, 0, 1) == 0 ? 0 : random_between(engine, 1, 100);
      const std::int64_t lead = random_between(engine, 0, 1) == 0 ? 0 : random_between(engine, -60, 120);
      shapes.push_back({random_between(engine, 0, 150), random_between(engine, 0, 150), Mask::causal, window, lead});
    }
    INFO("seed " << seed);
    check_problem(with_sinks({seed, heads_of(4, random_between(engine, 1, 2) * 2, 64), shapes}, seed + 50));
  }
}

TEST_CASE("sinks without a place for their gradient are refused", "[attention]") {
  const AttentionProblem problem(69, heads_of(1, 1, 64), {{4, 4}});
  const auto backend = make_cpu_backend();
  const float sink = 0;
  CHECK_THROWS_WITH(backend->run(AttentionBackward{.heads = problem.heads,
                                                   .blocks = {},
                                                   .q = {nullptr, 64},
                                                   .k = {nullptr, 64},
                                                   .v = {nullptr, 64},
                                                   .d_o = {nullptr, 64},
                                                   .d_q = {nullptr, 64},
                                                   .d_k = {nullptr, 64},
                                                   .d_v = {nullptr, 64},
                                                   .sinks = &sink}),
                    "attention: sinks without gradients, or without values");
}
