// Attention forward, portable and of Hopper, tile by tile as a GPU would run it, against fp64.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/support/gpu/emulator.h"
#include "tests/support/gpu/hopper.h"
// The kernels follow the emulator, which stands for nvcc.
#include "kernels/cuda/hopper/forward.cuh"
#include "kernels/cuda/portable/forward.cuh"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/unit/kernels/cuda_emulated/attention_case.h"

namespace hdpsim::kernels::cuda {
namespace {

using emulator::attention_case;
using emulator::AttentionCase;
using emulator::PackedRows;
using test::relative_error;

constexpr float unusual_scale = 0.2F;

/// What a launch left behind, and what is right.
struct Outcome {
  std::vector<double> o, lse;  ///< Dense, as of the reference.
  emulator::Statistics statistics;
};

/// Of what the launch reads and writes, all but the inputs.
struct Memory {
  std::vector<double> o, lse;  ///< Before, where the launch accumulates.
  std::uint64_t seed = 0;      ///< Of the order of threads.
  unsigned blocks = 2;         ///< Fewer than items, so that blocks take several.
};

TileOrder order_of(const AttentionForward& op, const std::vector<AttentionTile>& tiles) {
  return {static_cast<std::int32_t>(tiles.size()), static_cast<std::int32_t>(op.heads.heads), 1};
}

struct Portable {
  template <int dim, bool accumulate>
  static emulator::Statistics launch(const AttentionForward& op, const Memory& memory) {
    const bool windowed = std::ranges::any_of(op.blocks, [](const AttentionBlock& block) { return block.window > 0; });
    return windowed ? launch_shape<portable::ForwardShape<dim, true>, accumulate>(op, memory)
                    : launch_shape<portable::ForwardShape<dim>, accumulate>(op, memory);
  }
  template <class Shape, bool accumulate>
  static emulator::Statistics launch_shape(const AttentionForward& op, const Memory& memory) {
    const std::vector<AttentionTile> tiles = query_tiles(op.blocks, Shape::queries);
    const std::vector<std::byte> image = portable::queue_image(tiles);
    const auto arguments = portable::forward_arguments(op, portable::queue_at(image.data(), order_of(op, tiles)));
    return emulator::launch(
        {memory.blocks}, Shape::threads, Shape::shared_bytes,
        [&] { portable::attention_forward<Shape, accumulate>(arguments); }, memory.seed);
  }
};

struct Hopper {
  template <int dim, bool accumulate>
  static emulator::Statistics launch(const AttentionForward& op, const Memory& memory) {
    using Shape = hopper::ForwardShape<dim>;
    const std::vector<AttentionTile> tiles = query_tiles(op.blocks, Shape::queries);
    const std::vector<std::byte> image = portable::queue_image(tiles);
    const auto arguments = hopper::forward_arguments<Shape>(op, portable::queue_at(image.data(), order_of(op, tiles)),
                                                            emulator::tensor_map);
    return emulator::launch_hopper(
        {memory.blocks}, Shape::threads, hopper::ForwardShared<Shape>::bytes,
        [&] { hopper::attention_forward<Shape, accumulate>(arguments); }, memory.seed);
  }
};

template <class Kernel, int dim, bool accumulate>
Outcome run_forward(const AttentionCase& given, const Memory& memory) {
  using Output = std::conditional_t<accumulate, float, bf16>;
  const std::int64_t width = given.heads.heads * dim;
  const std::int64_t kv_width = given.heads.kv_heads * dim;
  PackedRows<bf16> q(given.q, given.query_rows, width, 16);
  PackedRows<bf16> k(given.k, given.key_rows, kv_width, 8);
  PackedRows<bf16> v(given.v, given.key_rows, kv_width, 24);
  PackedRows<Output> o(given.query_rows, width, 32);
  PackedRows<float> lse(given.heads.heads, given.query_rows, 0);
  if (accumulate) {
    o = PackedRows<Output>(memory.o, given.query_rows, width, 32);
    lse = PackedRows<float>(memory.lse, given.heads.heads, given.query_rows, 0);
  }
  const AttentionForward op{.heads = given.heads,
                            .blocks = given.blocks,
                            .q = {q.data(), q.stride()},
                            .k = {k.data(), k.stride()},
                            .v = {v.data(), v.stride()},
                            .o = {o.data(), o.stride()},
                            .lse = lse.data(),
                            .lse_stride = given.query_rows,
                            .accumulate = accumulate};
  Outcome outcome;
  outcome.statistics = Kernel::template launch<dim, accumulate>(op, memory);
  REQUIRE(o.rest_is_untouched([&](std::int64_t row) { return given.has_query(row); }));
  outcome.o = o.dense();
  outcome.lse = lse.dense();
  return outcome;
}

template <class Kernel>
Outcome run_forward(const AttentionCase& given, const Memory& memory = {}) {
  const bool accumulate = !memory.o.empty();
  if (given.heads.dim == 64) {
    return accumulate ? run_forward<Kernel, 64, true>(given, memory) : run_forward<Kernel, 64, false>(given, memory);
  }
  return accumulate ? run_forward<Kernel, 128, true>(given, memory) : run_forward<Kernel, 128, false>(given, memory);
}

std::vector<double> used_rows(const AttentionCase& given, std::span<const double> dense) {
  return emulator::rows_of(dense, given.heads.heads * given.heads.dim,
                           [&](std::int64_t row) { return given.has_query(row); });
}
/// LSE of the rows that some block has.
std::vector<double> used_lse(const AttentionCase& given, std::span<const double> lse) {
  std::vector<double> values;
  for (std::size_t i = 0; i < lse.size(); ++i) {
    if (given.has_query(static_cast<std::int64_t>(i) % given.query_rows)) values.push_back(lse[i]);
  }
  return values;
}

/// A launch that writes, against the reference: o within twice what an ordinary bf16 implementation is off.
template <class Kernel>
void check_forward(const AttentionCase& given, std::uint64_t seed = 0) {
  const reference::AttentionResult expected = reference::attention_forward(given.input());
  const std::vector<double> right = used_rows(given, expected.o);
  const double ordinary = relative_error(used_rows(given, emulator::ordinary_forward(given)), right);
  const Outcome outcome = run_forward<Kernel>(given, {.o = {}, .lse = {}, .seed = seed});
  REQUIRE(relative_error(used_rows(given, outcome.o), right) <= 2 * ordinary + 1e-4);
  REQUIRE(relative_error(used_lse(given, outcome.lse), used_lse(given, expected.lse), 1) <= 1e-5);
}

AttentionHeads heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim) {
  return {.heads = heads, .kv_heads = kv_heads, .dim = dim, .scale = 1 / std::sqrt(static_cast<float>(dim))};
}

}  // namespace

TEMPLATE_TEST_CASE("forward: lengths around every tile size, both masks, both head dimensions", "[attention]", Portable,
                   Hopper) {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::int64_t length : {1, 63, 64, 65, 127, 128, 129}) {
      for (const Mask mask : {Mask::full, Mask::causal}) {
        if (dim == 128 && length % 64 == 63) continue;  // a tile of either dimension is 64 or 128 rows
        CAPTURE(dim, length, mask == Mask::causal);
        check_forward<TestType>(attention_case(heads_of(1, 1, dim), {{0, length, 0, length, mask}}, 7));
      }
    }
  }
}

TEMPLATE_TEST_CASE("forward: more queries than keys, or fewer, aligned to the bottom right", "[attention]", Portable,
                   Hopper) {
  for (const std::int64_t dim : {64, 128}) {
    for (const auto& [queries, keys] : {std::pair{1, 200}, {200, 1}, {130, 70}, {70, 130}, {128, 256}, {256, 128}}) {
      for (const Mask mask : {Mask::full, Mask::causal}) {
        if (dim == 128 && mask == Mask::full) continue;
        CAPTURE(dim, queries, keys, mask == Mask::causal);
        check_forward<TestType>(attention_case(heads_of(1, 1, dim), {{0, queries, 0, keys, mask}}, 11));
      }
    }
  }
}

TEMPLATE_TEST_CASE("forward: groups of query heads share the keys and values of one head", "[attention]", Portable,
                   Hopper) {
  for (const std::int64_t dim : {64, 128}) {
    for (const auto& [heads, kv_heads] : {std::pair{4, 4}, {4, 1}, {8, 1}, {8, 2}}) {
      CAPTURE(dim, heads, kv_heads);
      check_forward<TestType>(attention_case(heads_of(heads, kv_heads, dim), {{0, 66, 0, 66, Mask::causal}}, 13));
    }
  }
}

TEMPLATE_TEST_CASE("forward: packed documents, some empty on one side, whatever the order of threads", "[attention]",
                   Portable, Hopper) {
  const std::vector<AttentionBlock> blocks = {{0, 40, 0, 40, Mask::causal}, {0, 0, 0, 9, Mask::full},
                                              {0, 9, 0, 0, Mask::full},     {0, 150, 0, 150, Mask::causal},
                                              {0, 33, 0, 90, Mask::full},   {0, 1, 0, 1, Mask::causal}};
  for (const std::int64_t dim : {64, 128}) {
    for (const std::uint64_t seed : {0, 1}) {
      CAPTURE(dim, seed);
      AttentionHeads heads = heads_of(2, 1, dim);
      heads.scale = unusual_scale;
      check_forward<TestType>(attention_case(heads, blocks, 17), seed);
    }
  }
}

TEMPLATE_TEST_CASE("forward: long documents send the rings of buffers round, whatever the order of threads",
                   "[attention]", Portable, Hopper) {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::uint64_t seed : {0, 1}) {
      CAPTURE(dim, seed);
      check_forward<TestType>(attention_case(heads_of(1, 1, dim), {{0, 130, 0, 900, Mask::full}}, 19), seed);
    }
  }
}

TEMPLATE_TEST_CASE("forward: random packs of documents, in a random order of threads", "[attention]", Portable,
                   Hopper) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    std::vector<AttentionBlock> blocks(1 + random() % 3);
    for (AttentionBlock& block : blocks) {
      block.queries = static_cast<std::int64_t>(random() % 280);
      block.keys = static_cast<std::int64_t>(random() % 280);
      block.mask = random() % 2 == 0 ? Mask::full : Mask::causal;
    }
    const std::int64_t kv_heads = 1 + static_cast<std::int64_t>(random() % 2);
    const AttentionHeads heads = heads_of(2 * kv_heads, kv_heads, random() % 2 == 0 ? 64 : 128);
    CAPTURE(heads.dim, kv_heads);
    check_forward<TestType>(attention_case(heads, blocks, static_cast<std::uint32_t>(seed)), seed);
  }
}

TEMPLATE_TEST_CASE("forward: rows without a key have o = 0 and lse = -inf", "[attention]", Portable, Hopper) {
  const AttentionCase given =
      attention_case(heads_of(1, 1, 64), {{0, 9, 0, 4, Mask::causal}, {0, 3, 0, 0, Mask::full}}, 5);
  const Outcome outcome = run_forward<TestType>(given);
  for (const std::int64_t row : {2, 6, 13, 15}) {  // Queries 0 and 4 of the first document, 0 and 2 of the second.
    CAPTURE(row);
    CHECK(outcome.lse[static_cast<std::size_t>(row)] == -std::numeric_limits<double>::infinity());
    for (std::size_t x = 0; x < 64; ++x) REQUIRE(outcome.o[static_cast<std::size_t>(row) * 64 + x] == 0);
  }
  CHECK(std::isfinite(outcome.lse[7]));
}

TEMPLATE_TEST_CASE("forward accumulates into what other keys gave, -inf being nothing", "[attention]", Portable,
                   Hopper) {
  const std::vector<AttentionBlock> blocks = {{0, 70, 0, 70, Mask::causal},
                                              {0, 20, 0, 0, Mask::full},
                                              {0, 130, 0, 65, Mask::causal},
                                              {0, 30, 0, 129, Mask::full}};
  for (const std::int64_t dim : {64, 128}) {
    CAPTURE(dim);
    const AttentionCase given = attention_case(heads_of(2, 2, dim), blocks, 19);
    // Results over other keys, of which every third row has none, and some rows far more or less weight than here.
    std::mt19937 random(23);
    reference::AttentionResult before;
    before.o = emulator::random_values<float>(random, given.q.size(), 2);
    before.lse = emulator::random_values<float>(random, static_cast<std::size_t>(2 * given.query_rows), 8);
    for (std::size_t i = 0; i < before.lse.size(); ++i) {
      const std::size_t row = i % static_cast<std::size_t>(given.query_rows);
      if (row % 3 == 0) before.lse[i] = -std::numeric_limits<double>::infinity();
      if (row % 7 == 1) before.lse[i] += row % 2 == 0 ? 80 : -80;
      const std::size_t first =
          (row * 2 + i / static_cast<std::size_t>(given.query_rows)) * static_cast<std::size_t>(dim);
      for (std::size_t x = first; x < first + static_cast<std::size_t>(dim); ++x) {
        if (row % 3 == 0) before.o[x] = 0;
        if (!given.has_query(static_cast<std::int64_t>(row))) before.o[x] = std::numeric_limits<double>::quiet_NaN();
      }
    }
    reference::AttentionResult expected = before;
    reference::merge(given.heads, expected, reference::attention_forward(given.input()));
    const Outcome outcome = run_forward<TestType>(given, {.o = before.o, .lse = before.lse});
    // P alone is rounded to bf16: 2^-9 of each weight.
    CHECK(relative_error(used_rows(given, outcome.o), used_rows(given, expected.o)) <= 2e-3);
    CHECK(relative_error(used_lse(given, outcome.lse), used_lse(given, expected.lse), 1) <= 1e-5);
  }
}

TEMPLATE_TEST_CASE("forward: scores of any size neither overflow nor lose the largest", "[attention]", Portable,
                   Hopper) {
  for (const float scale : {1e-4F, 30.0F, 1000.0F}) {
    CAPTURE(scale);
    AttentionHeads heads = heads_of(1, 1, 64);
    heads.scale = scale;
    const AttentionCase given = attention_case(heads, {{0, 70, 0, 140, Mask::causal}}, 29);
    const Outcome outcome = run_forward<TestType>(given);
    const reference::AttentionResult expected = reference::attention_forward(given.input());
    CHECK(relative_error(used_lse(given, outcome.lse), used_lse(given, expected.lse), 1) <= 1e-5);
    // A bf16 row of o, and P where scores are so large that fp32 rounds them visibly.
    CHECK(relative_error(used_rows(given, outcome.o), used_rows(given, expected.o)) <= 8e-3);
  }
}

TEMPLATE_TEST_CASE("forward: a document's result does not depend on its place in the pack", "[attention]", Portable,
                   Hopper) {
  const AttentionHeads heads = heads_of(1, 1, 128);
  const AttentionCase both = attention_case(heads, {{0, 80, 0, 80, Mask::causal}, {0, 80, 0, 80, Mask::causal}}, 31, 0);
  constexpr std::ptrdiff_t document = std::ptrdiff_t{80} * 128;
  AttentionCase swapped = both;
  for (std::vector<double>* tensor : {&swapped.q, &swapped.k, &swapped.v}) {
    std::rotate(tensor->begin(), tensor->begin() + document, tensor->end());
  }
  std::vector<double> o = run_forward<TestType>(swapped).o;
  std::rotate(o.begin(), o.begin() + document, o.end());
  CHECK(o == run_forward<TestType>(both).o);
}

TEST_CASE("portable forward: windows around tiles, and keys from earlier in the document", "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::int64_t window : {1, 64, 65, 129, 200}) {
      CAPTURE(dim, window);
      check_forward<Portable>(attention_case(heads_of(1, 1, dim), {{0, 300, 0, 300, Mask::causal, window}}, 37));
    }
    CAPTURE(dim);
    check_forward<Portable>(attention_case(heads_of(2, 1, dim),
                                           {{0, 130, 0, 130, Mask::causal, 150, 130},
                                            {0, 130, 0, 130, Mask::causal, 150, 260},  // seen by the first queries
                                            {0, 40, 0, 40, Mask::causal, 30, 500},     // by none
                                            {0, 140, 0, 70, Mask::causal, 20, -15}},
                                           41));
  }
}

TEMPLATE_TEST_CASE("forward: keys from earlier in the document than the queries, without a window", "[attention]",
                   Portable, Hopper) {
  check_forward<TestType>(attention_case(heads_of(2, 1, 64),
                                         {{0, 140, 0, 130, Mask::causal, 0, 70},
                                          {0, 140, 0, 130, Mask::causal, 0, 1000},
                                          {0, 140, 0, 130, Mask::causal, 0, -60}},
                                         43));
}

TEST_CASE("portable forward: random windows and leads, in a random order of threads", "[attention]") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    const auto below = [&](std::uint32_t n) { return static_cast<std::int64_t>(random() % n); };
    std::vector<AttentionBlock> blocks(static_cast<std::size_t>(1 + below(3)));
    for (AttentionBlock& block : blocks) {
      block = {0, below(280), 0, below(280), Mask::causal, below(150), below(2) * (below(300) - 100)};
    }
    const AttentionHeads heads = heads_of(2, 1 + below(2), below(2) == 0 ? 64 : 128);
    CAPTURE(heads.dim, heads.kv_heads);
    check_forward<Portable>(attention_case(heads, blocks, static_cast<std::uint32_t>(seed)), seed);
  }
}

TEST_CASE("Hopper forward refuses windows", "[attention]") {
  const AttentionBlock windowed[] = {{0, 4, 0, 4, Mask::causal, 2}};
  const AttentionForward op{.heads = heads_of(1, 1, 64),
                            .blocks = windowed,
                            .q = {nullptr, 64},
                            .k = {nullptr, 64},
                            .v = {nullptr, 64},
                            .o = {nullptr, 64}};
  CHECK_THROWS_WITH(hopper::forward_arguments<hopper::ForwardShape<64>>(op, {}, emulator::tensor_map),
                    "attention: kernels for Hopper know no windows yet; the portable ones do");
}

TEST_CASE("portable forward reads shared memory without bank conflicts", "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    const Outcome outcome =
        run_forward<Portable>(attention_case(heads_of(1, 1, dim), {{0, 128, 0, 128, Mask::full}}, 1));
    CHECK(outcome.statistics.ldmatrix > 0);
    CHECK(outcome.statistics.ldmatrix_conflicts == 0);
  }
}

TEST_CASE("portable forward refuses rows that its copies cannot read, and scales that turn the maximum round",
          "[attention]") {
  AttentionForward op{.heads = heads_of(1, 1, 64),
                      .blocks = {},
                      .q = {nullptr, 64},
                      .k = {nullptr, 64},
                      .v = {nullptr, 64},
                      .o = {nullptr, 64}};
  CHECK_NOTHROW(portable::forward_arguments(op, {}));
  op.k.stride = 68;
  CHECK_THROWS_WITH(portable::forward_arguments(op, {}), "attention: rows of k must begin at multiples of 16 bytes");
  op.k.stride = 72;
  op.heads.scale = -1;
  CHECK_THROWS_AS(portable::forward_arguments(op, {}), UnsupportedInput);
}

TEST_CASE("forward on a GPU refuses sinks", "[attention]") {
  const float sink = 0;
  AttentionForward op{.heads = heads_of(1, 1, 64),
                      .blocks = {},
                      .q = {nullptr, 64},
                      .k = {nullptr, 64},
                      .v = {nullptr, 64},
                      .o = {nullptr, 64}};
  op.sinks = &sink;
  CHECK_THROWS_WITH(portable::forward_arguments(op, {}), "attention: kernels for GPUs know no sinks yet");
}

}  // namespace hdpsim::kernels::cuda
