#include <cstring>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/catch.h"
#include "tests/unit/kernels/cpu/attention_problem.h"

using namespace hdpsim::kernels;
using namespace hdpsim::test;

namespace {

const AttentionHeads two_heads{2, 1, 64, 0.125F};

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Clears o and lse as a first step of a ring finds them.
void begin_accumulation(AttentionRun& run, const AttentionProblem& problem) {
  for (const AttentionBlock& block : problem.blocks) {
    run.o.fill_rows(block.query_begin, block.queries, 0);
    for (std::int64_t head = 0; head < problem.heads.heads; ++head) {
      for (std::int64_t i = 0; i < block.queries; ++i) {
        run.lse.row(head)[static_cast<std::size_t>(block.query_begin + i)] = -HUGE_VALF;
      }
    }
  }
}

/// Forward over the keys of a single full block in `parts` launches that accumulate, last keys first.
AttentionRun accumulated(const AttentionProblem& problem, int parts, Backend& backend) {
  AttentionRun run(problem);
  begin_accumulation(run, problem);
  const AttentionBlock whole = problem.blocks[0];
  for (int part = parts - 1; part >= 0; --part) {
    const std::int64_t begin = whole.keys * part / parts;
    const std::int64_t end = whole.keys * (part + 1) / parts;
    const AttentionBlock block{whole.query_begin, whole.queries, whole.key_begin + begin, end - begin, Mask::full};
    run.forward(backend, {&block, 1}, true);
  }
  return run;
}

}  // namespace

TEST_CASE("keys in k launches that accumulate give what one launch gives", "[attention]") {
  const AttentionProblem problem(20, two_heads, {{70, 250, Mask::full}});
  const AttentionTruth truth(problem);
  const AttentionBlock& block = problem.blocks[0];
  for (const InstructionSet set : instruction_sets()) {
    const auto backend = make_cpu_backend(set);
    for (const int parts : {1, 2, 3, 8}) {
      INFO(name_of(set) << ", " << parts << " parts");
      const AttentionRun run = accumulated(problem, parts, *backend);
      CHECK(relative_error(run.o.dense(block.query_begin, block.queries),
                           rows_of(truth.forward.o, block.query_begin, block.queries, problem.query_width())) <= 2e-6);
      CHECK(relative_error(run.lse_of(block), lse_of(truth, problem, block)) <= 2e-6);
    }
  }
}

TEST_CASE("accumulation survives parts whose LSE differ by 80 and more, in either order", "[attention]") {
  AttentionProblem problem(21, two_heads, {{40, 96, Mask::full}});
  const bool first_dominates = GENERATE(true, false);
  const AttentionBlock& block = problem.blocks[0];
  // A key along the query outweighs all others: q k scale = 0.125 x 8^2 x 64 x 0.2 > 100.
  for (float& value : problem.q) value = 8;
  const std::int64_t strong = block.key_begin + (first_dominates ? 5 : 90);
  for (std::int64_t i = 0; i < 64; ++i) problem.k[static_cast<std::size_t>(strong * 64 + i)] = 1.6F;
  const AttentionTruth truth(problem);
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set));
    const auto backend = make_cpu_backend(set);
    const AttentionRun run = accumulated(problem, 2, *backend);
    CHECK(relative_error(run.o.dense(block.query_begin, block.queries),
                         rows_of(truth.forward.o, block.query_begin, block.queries, problem.query_width())) <= 2e-6);
    CHECK(relative_error(run.lse_of(block), lse_of(truth, problem, block)) <= 2e-6);
  }
}

TEST_CASE("rows without keys are neutral: accumulating them changes no bit", "[attention]") {
  const AttentionProblem problem(22, two_heads, {{30, 50, Mask::full}});
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set));
    const auto backend = make_cpu_backend(set);
    AttentionRun run(problem);
    run.forward(*backend);
    const std::vector<float> before = run.o.dense(problem.blocks[0].query_begin, 30);
    const std::vector<float> lse_before = run.lse_of(problem.blocks[0]);
    AttentionBlock nothing = problem.blocks[0];
    nothing.keys = 0;
    run.forward(*backend, {&nothing, 1}, true);
    CHECK(same_bits(run.o.dense(problem.blocks[0].query_begin, 30), before));
    CHECK(same_bits(run.lse_of(problem.blocks[0]), lse_before));
  }
}

TEST_CASE("gradients are added: two passes give twice one pass", "[attention]") {
  const AttentionProblem problem(23, two_heads, {{50, 80, Mask::causal}});
  const AttentionBlock& block = problem.blocks[0];
  const AttentionTruth truth(problem);
  const auto backend = make_cpu_backend();
  AttentionRun run(problem);
  run.forward(*backend);
  run.backward(*backend);
  run.backward(*backend);
  std::vector<double> twice = rows_of(truth.gradients.d_k, block.key_begin, block.keys, problem.key_width());
  for (double& value : twice) value *= 2;
  CHECK(relative_error(run.d_k.dense(block.key_begin, block.keys), twice) <= 5e-6);
}

TEST_CASE("permuting packed documents changes no bit of any document", "[attention]") {
  const std::vector<BlockShape> shapes = {{130, 130}, {1, 1}, {64, 64}, {97, 97}, {33, 33}};
  const AttentionProblem problem(24, two_heads, shapes);
  std::vector<AttentionBlock> reversed(problem.blocks.rbegin(), problem.blocks.rend());
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set));
    const auto backend = make_cpu_backend(set);
    AttentionRun together(problem);
    together.forward(*backend);
    together.backward(*backend);
    AttentionRun permuted(problem);
    permuted.forward(*backend, reversed, false);
    permuted.backward(*backend, reversed);
    AttentionRun alone(problem);
    for (const AttentionBlock& block : problem.blocks) alone.forward(*backend, {&block, 1}, false);
    for (const AttentionBlock& block : problem.blocks) alone.backward(*backend, {&block, 1});
    for (const AttentionRun* other : {&permuted, &alone}) {
      for (const AttentionBlock& block : problem.blocks) {
        CHECK(same_bits(together.o.dense(block.query_begin, block.queries),
                        other->o.dense(block.query_begin, block.queries)));
        CHECK(same_bits(together.lse_of(block), other->lse_of(block)));
        CHECK(same_bits(together.d_q.dense(block.query_begin, block.queries),
                        other->d_q.dense(block.query_begin, block.queries)));
        CHECK(
            same_bits(together.d_k.dense(block.key_begin, block.keys), other->d_k.dense(block.key_begin, block.keys)));
      }
    }
  }
}

TEST_CASE("the same document gives the same bits wherever in the packing it lies, and every time", "[attention]") {
  AttentionProblem problem(25, two_heads, {{77, 77}, {20, 20}, {77, 77}});
  const auto repeat = [&](std::vector<float>& tensor, std::int64_t from, std::int64_t to, std::int64_t width) {
    std::copy_n(tensor.begin() + from * width, 77 * width, tensor.begin() + to * width);
  };
  const AttentionBlock& first = problem.blocks[0];
  const AttentionBlock& last = problem.blocks[2];
  repeat(problem.q, first.query_begin, last.query_begin, problem.query_width());
  repeat(problem.d_o, first.query_begin, last.query_begin, problem.query_width());
  repeat(problem.k, first.key_begin, last.key_begin, problem.key_width());
  repeat(problem.v, first.key_begin, last.key_begin, problem.key_width());
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set));
    const auto backend = make_cpu_backend(set);
    std::vector<float> earlier;
    for (int time = 0; time < 3; ++time) {
      AttentionRun run(problem);
      run.forward(*backend);
      run.backward(*backend);
      CHECK(same_bits(run.o.dense(first.query_begin, 77), run.o.dense(last.query_begin, 77)));
      CHECK(same_bits(run.d_v.dense(first.key_begin, 77), run.d_v.dense(last.key_begin, 77)));
      std::vector<float> now = run.d_q.dense(first.query_begin, 77);
      if (time > 0) CHECK(same_bits(now, earlier));
      earlier = std::move(now);
    }
  }
}

TEST_CASE("a NaN spoils the rows that see it and no other document", "[attention]") {
  AttentionProblem problem(26, two_heads, {{60, 60}, {60, 60}});
  const AttentionBlock& spoiled = problem.blocks[0];
  const AttentionBlock& sound = problem.blocks[1];
  const bool in_keys = GENERATE(true, false);
  std::vector<float>& tensor = in_keys ? problem.k : problem.q;
  const std::int64_t row = (in_keys ? spoiled.key_begin : spoiled.query_begin) + 17;
  tensor[static_cast<std::size_t>(row * (in_keys ? problem.key_width() : problem.query_width()))] = NAN;
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set) << (in_keys ? ", NaN in a key" : ", NaN in a query"));
    const auto backend = make_cpu_backend(set);
    AttentionRun run(problem);
    run.forward(*backend);
    run.backward(*backend);
    for (std::int64_t i = 17; i < (in_keys ? 60 : 18); ++i) {
      CHECK(std::isnan(run.o.row(spoiled.query_begin + i)[0]));
      CHECK(std::isnan(run.lse.row(0)[static_cast<std::size_t>(spoiled.query_begin + i)]));
      CHECK(std::isnan(run.d_q.row(spoiled.query_begin + i)[0]));
    }
    CHECK(std::isnan(run.d_k.row(spoiled.key_begin + 17)[0]));
    for (std::int64_t i = 0; i < 60; ++i) {
      CHECK(std::isfinite(run.o.row(sound.query_begin + i)[0]));
      CHECK(std::isfinite(run.d_k.row(sound.key_begin + i)[0]));
    }
  }
}

TEST_CASE("the progress hook is called for every tile of keys", "[attention]") {
  const AttentionProblem problem(27, two_heads, {{50, 900, Mask::full}});
  const auto backend = make_cpu_backend();
  AttentionRun run(problem);
  int calls = 0;
  backend->set_progress_hook([&] { ++calls; });
  run.forward(*backend);
  CHECK(calls >= 2 * 4);  // two heads, tiles of at most 256 keys
  calls = 0;
  run.backward(*backend);
  CHECK(calls >= 2 * 4);
  backend->set_progress_hook({});
  calls = 0;
  run.forward(*backend);
  CHECK(calls == 0);
}

TEST_CASE("what attention does not take is refused by name", "[attention]") {
  const AttentionProblem problem(28, two_heads, {{4, 4}});
  const auto backend = make_cpu_backend();
  AttentionRun run(problem);
  AttentionForward op{.heads = two_heads,
                      .blocks = problem.blocks,
                      .q = {run.q.data(), run.q.stride()},
                      .k = {run.k.data(), run.k.stride()},
                      .v = {run.v.data(), run.v.stride()},
                      .o = {run.o.data(), run.o.stride()},
                      .lse = run.lse.data(),
                      .lse_stride = run.lse.stride()};
  op.heads.dim = 96;
  CHECK_THROWS_WITH(backend->run(op),
                    "attention: head dimension 96 is not supported; 64, 128, 256, and 192 with values of 128 are");
  op.heads.dim = 128;
  CHECK_THROWS_WITH(backend->run(op), "attention: a row of queries does not fit in its stride");
  op.heads = {1, 1, 192, 1, 128};
  op.q.stride = op.k.stride = 192;
  op.v.stride = 127;
  CHECK_THROWS_WITH(backend->run(op), "attention: a row of values does not fit in its stride");
  op.v.stride = 128;
  op.o.stride = 127;
  CHECK_THROWS_WITH(backend->run(op), "attention: a row of outputs does not fit in its stride");
  op.o.stride = 128;
  op.heads = two_heads;
  op.lse_stride = 5;
  CHECK_THROWS_WITH(backend->run(op), "attention: a block ends beyond the rows of LSE");
}
