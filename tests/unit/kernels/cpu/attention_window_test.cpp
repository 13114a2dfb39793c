#include <algorithm>
#include <numeric>

#include "kernels/cpu/cpu_backend.h"
#include "tests/support/catch.h"
#include "tests/unit/kernels/cpu/attention_checks.h"

using namespace hdpsim::kernels;
using namespace hdpsim::test;

namespace {

/// Tiles that forward and backward go through, counted by the progress hook.
struct Tiles {
  int forward = 0;
  int backward = 0;
};

Tiles tiles_of(std::int64_t tokens, std::int64_t window) {
  const AttentionProblem problem(40, heads_of(1, 1, 64), {{tokens, tokens, Mask::causal, window}});
  const auto backend = make_cpu_backend();
  AttentionRun run(problem);
  Tiles tiles;
  int* counted = &tiles.forward;
  backend->set_progress_hook([&] { ++*counted; });
  run.forward(*backend);
  counted = &tiles.backward;
  run.backward(*backend);
  return tiles;
}

}  // namespace

TEST_CASE("windows around the edges of strips, panels and tiles agree with fp64, forward and backward", "[attention]") {
  std::vector<BlockShape> shapes;
  for (const std::int64_t window : {1, 2, 15, 16, 17, 31, 33, 95, 97, 145, 193, 400}) {
    shapes.push_back({150, 150, Mask::causal, window});
  }
  SECTION("one key-value head a head, dimension 64") {
    check_problem({41, heads_of(2, 2, 64), shapes});
  }
  SECTION("four heads share a key-value head, dimension 128") {
    check_problem({42, heads_of(4, 1, 128), shapes});
  }
}

TEST_CASE("windows over more queries and keys than are packed at once agree with fp64", "[attention]") {
  SECTION("windows that end inside a chunk of keys and cross into the next") {
    check_problem({43, heads_of(1, 1, 64), {{3400, 3400, Mask::causal, 70}}});
  }
  SECTION("windows longer than a chunk of the backward pass") {
    check_problem({44, heads_of(1, 1, 64), {{2100, 2100, Mask::causal, 1000}}});
  }
  SECTION("few queries at the end of many keys, and many queries over few keys") {
    check_problem({45, heads_of(1, 1, 64), {{50, 3300, Mask::causal, 300}, {2000, 80, Mask::causal, 30}}});
  }
}

TEST_CASE("keys that come earlier in the document than the queries are seen as far as the window reaches",
          "[attention]") {
  check_problem({46,
                 heads_of(2, 1, 64),
                 {{100, 100, Mask::causal, 130, 100},   // the part of the document just before
                  {100, 100, Mask::causal, 130, 200},   // one further back: seen by the first queries alone
                  {100, 100, Mask::causal, 130, 300},   // out of reach
                  {100, 100, Mask::causal, 0, 300},     // no window: all seen
                  {100, 100, Mask::causal, 40, -30},    // keys that go on behind the queries
                  {60, 100, Mask::causal, 0, -120}}});  // all behind them
}

TEST_CASE("a document in parts of queries and keys, launch by launch, gives what one launch gives", "[attention]") {
  constexpr std::int64_t tokens = 300;
  const std::int64_t window = GENERATE(20, 130, 250);
  const AttentionProblem problem(47, heads_of(2, 1, 64), {{tokens, tokens, Mask::causal, window}});
  const AttentionTruth truth(problem);
  const AttentionBlock& whole = problem.blocks[0];
  constexpr std::int64_t parts = 3;
  constexpr std::int64_t part = tokens / parts;
  for (const InstructionSet set : instruction_sets()) {
    INFO(name_of(set) << ", window " << window);
    const auto backend = make_cpu_backend(set);
    AttentionRun run(problem);
    run.o.fill_rows(whole.query_begin, tokens, 0);
    for (std::int64_t head = 0; head < problem.heads.heads; ++head) {
      std::fill_n(run.lse.row(head).begin() + whole.query_begin, tokens, -HUGE_VALF);
    }
    // Launch `back` of a ring: every part of the queries with the keys so many parts back.
    const auto blocks = [&](std::int64_t back) {
      std::vector<AttentionBlock> result;
      for (std::int64_t to = back; to < parts; ++to) {
        result.push_back({whole.query_begin + to * part, part, whole.key_begin + (to - back) * part, part, Mask::causal,
                          window, back * part});
      }
      return result;
    };
    for (std::int64_t back = 0; back < parts; ++back) run.forward(*backend, blocks(back), true);
    for (std::int64_t back = 0; back < parts; ++back) run.backward(*backend, blocks(back));
    check_block(problem, run, truth, whole);
  }
}

TEST_CASE("random windows and leads agree with fp64", "[attention][property]") {
  for (std::uint64_t seed = 200; seed < 216; ++seed) {
    std::mt19937_64 engine(seed);
    std::vector<BlockShape> shapes;
    for (std::int64_t left = random_between(engine, 1, 6); left > 0; --left) {
      const std::int64_t window = random_between(engine, 0, 3) == 0 ? 0 : random_between(engine, 1, 250);
      const std::int64_t lead = random_between(engine, 0, 1) == 0 ? 0 : random_between(engine, -100, 300);
      shapes.push_back({random_between(engine, 0, 200), random_between(engine, 0, 250), Mask::causal, window, lead});
    }
    const std::int64_t kv_heads = random_between(engine, 1, 2);
    const std::int64_t heads = kv_heads * random_between(engine, 1, 3);
    INFO("seed " << seed);
    check_problem({seed, heads_of(heads, kv_heads, random_between(engine, 0, 1) == 0 ? 64 : 128), shapes});
  }
}

TEST_CASE("chunked attention is a causal block for every chunk", "[attention]") {
  AttentionProblem problem(48, heads_of(2, 1, 64), {{200, 200}, {90, 90}});
  std::vector<AttentionBlock> chunks;
  for (const AttentionBlock& document : problem.blocks) {
    const auto of_document = chunked_blocks(document, 64);
    chunks.insert(chunks.end(), of_document.begin(), of_document.end());
  }
  CHECK(chunks.size() == 4 + 2);  // 200 = 3 x 64 + 8, 90 = 64 + 26
  problem.blocks = chunks;
  check_problem(problem);
}

TEST_CASE("the tiles of a window grow with the tokens, those of a causal mask with their square", "[attention]") {
  // From 2,000 tokens on, every further 2,000 see as many keys under a window of 200.
  const Tiles short_window = tiles_of(2000, 200);
  const Tiles window = tiles_of(4000, 200);
  const Tiles long_window = tiles_of(6000, 200);
  const auto grows_linearly = [](int first, int second, int third) {
    return (third - second) - (second - first) <= (second - first) / 4;  // the edges of chunks do not repeat exactly
  };
  CHECK(grows_linearly(short_window.forward, window.forward, long_window.forward));
  CHECK(grows_linearly(short_window.backward, window.backward, long_window.backward));
  const Tiles causal = tiles_of(4000, 0);
  // Tiles are at most 192 keys wide and 144 queries high, so that a causal mask needs at least its area over theirs.
  CHECK(causal.forward >= 4000 * 4000 / 2 / (192 * 144));
  CHECK(window.forward <= causal.forward / 4);
  CHECK(window.backward <= causal.backward / 4);
}
