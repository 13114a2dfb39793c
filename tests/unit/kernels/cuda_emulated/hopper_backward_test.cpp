// The Hopper attention backward, tile by tile as a GPU would run it, against fp64.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/gpu/emulator.h"
#include "tests/support/gpu/hopper.h"
// The kernels follow the emulator, which stands for nvcc.
#include "kernels/cuda/hopper/backward.cuh"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/unit/kernels/cuda_emulated/attention_case.h"

namespace hdpsim::kernels::cuda::hopper {
namespace {

using emulator::attention_case;
using emulator::AttentionCase;
using emulator::PackedRows;
using reference::AttentionGradients;
using test::relative_error;

struct Options {
  std::int64_t parts = 1;
  std::uint64_t seed = 0;  ///< Of the order of threads.
};

/// LSE and delta of whole rows, of which the launch may see some keys only.
struct RowResults {
  std::vector<double> lse, delta;
};

/// Rounded to fp32, as a kernel gets them.
RowResults row_results(const AttentionCase& given) {
  const reference::AttentionResult forward = reference::attention_forward(given.input());
  RowResults rows{forward.lse, reference::attention_delta(given.heads, forward.o, given.d_o)};
  for (double& value : rows.lse) value = static_cast<float>(value);
  for (double& value : rows.delta) value = static_cast<float>(value);
  return rows;
}

/// A gradient [rows, width] to be added to: numbers where `used`, NaN elsewhere.
struct Accumulated {
  template <class Used>
  Accumulated(std::int64_t rows_, std::int64_t width_, const Used& used, std::uint32_t seed)
      : rows(rows_), width(width_), memory(rows_, width_, 8) {
    std::mt19937 random(seed);
    before = emulator::random_values<float>(random, static_cast<std::size_t>(rows * width), 0.1);
    for (std::int64_t i = 0; i < rows; ++i) {
      if (used(i)) memory.set_row(i, std::span(before).subspan(static_cast<std::size_t>(i * width)));
    }
  }
  /// What was added; 0 in rows that are not used. Requires that nothing else was written.
  template <class Used>
  [[nodiscard]] std::vector<double> added(const Used& used) const {
    REQUIRE(memory.rest_is_untouched(used));
    std::vector<double> values = memory.dense();
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = used(static_cast<std::int64_t>(i) / width) ? values[i] - before[i] : 0;
    }
    return values;
  }
  std::int64_t rows;
  std::int64_t width;
  std::vector<double> before;
  PackedRows<float> memory;
};

template <int dim>
AttentionGradients run_backward(const AttentionCase& given, const RowResults& rows, const Options& options) {
  using Shape = BackwardShape<dim>;
  const AttentionHeads& heads = given.heads;
  const auto has_query = [&](std::int64_t row) { return given.has_query(row); };
  const auto has_key = [&](std::int64_t row) { return given.has_key(row); };
  PackedRows<bf16> q(given.q, given.query_rows, heads.heads * dim, 16);
  PackedRows<bf16> k(given.k, given.key_rows, heads.kv_heads * dim, 8);
  PackedRows<bf16> v(given.v, given.key_rows, heads.kv_heads * dim, 24);
  PackedRows<bf16> d_o(given.d_o, given.query_rows, heads.heads * dim, 32);
  PackedRows<float> lse(rows.lse, heads.heads, given.query_rows, 0);
  PackedRows<float> delta(rows.delta, heads.heads, given.query_rows, 0);
  Accumulated d_q(given.query_rows, heads.heads * dim, has_query, 101);
  Accumulated d_k(given.key_rows, heads.kv_heads * dim, has_key, 102);
  Accumulated d_v(given.key_rows, heads.kv_heads * dim, has_key, 103);
  const AttentionBackward op{.heads = heads,
                             .blocks = given.blocks,
                             .q = {q.data(), q.stride()},
                             .k = {k.data(), k.stride()},
                             .v = {v.data(), v.stride()},
                             .d_o = {d_o.data(), d_o.stride()},
                             .lse = lse.data(),
                             .delta = delta.data(),
                             .lse_stride = given.query_rows,
                             .d_q = {d_q.memory.data(), d_q.memory.stride()},
                             .d_k = {d_k.memory.data(), d_k.memory.stride()},
                             .d_v = {d_v.memory.data(), d_v.memory.stride()}};
  const std::vector<AttentionTile> tiles = key_tiles(given.blocks, Shape::keys);
  const std::vector<std::byte> image = portable::queue_image(tiles);
  const TileOrder order{static_cast<std::int32_t>(tiles.size()),
                        static_cast<std::int32_t>(heads.kv_heads * options.parts), 1};
  const BackwardArguments arguments =
      backward_arguments<Shape>(op, portable::queue_at(image.data(), order), options.parts, emulator::tensor_map);
  emulator::launch_hopper(
      {2}, Shape::threads, BackwardShared<Shape>::bytes, [&] { attention_backward<Shape>(arguments); }, options.seed);
  return {d_q.added(has_query), d_k.added(has_key), d_v.added(has_key)};
}

AttentionGradients run_backward(const AttentionCase& given, const RowResults& rows, const Options& options = {}) {
  return given.heads.dim == 64 ? run_backward<64>(given, rows, options) : run_backward<128>(given, rows, options);
}

/// Errors within twice those of an ordinary bf16 implementation, of each gradient.
void check_backward(const AttentionCase& given, const RowResults& rows, const Options& options = {}) {
  const AttentionGradients right = reference::attention_backward(given.input(), given.d_o, rows.lse, rows.delta);
  const AttentionGradients ordinary = emulator::ordinary_backward(given, rows.lse, rows.delta);
  const AttentionGradients found = run_backward(given, rows, options);
  const auto bound = [](const std::vector<double>& inexact, const std::vector<double>& exact) {
    return 2 * relative_error(inexact, exact, 1e-3) + 1e-4;
  };
  REQUIRE(relative_error(found.d_v, right.d_v, 1e-3) <= bound(ordinary.d_v, right.d_v));
  REQUIRE(relative_error(found.d_k, right.d_k, 1e-3) <= bound(ordinary.d_k, right.d_k));
  REQUIRE(relative_error(found.d_q, right.d_q, 1e-3) <= bound(ordinary.d_q, right.d_q));
}
void check_backward(const AttentionCase& given, const Options& options = {}) {
  check_backward(given, row_results(given), options);
}

AttentionHeads heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim) {
  return {.heads = heads, .kv_heads = kv_heads, .dim = dim, .scale = 1 / std::sqrt(static_cast<float>(dim))};
}

}  // namespace

TEST_CASE("Hopper backward: lengths around every tile size, both masks, both head dimensions", "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::int64_t length : {1, 63, 64, 65, 127, 128, 129}) {
      for (const Mask mask : {Mask::full, Mask::causal}) {
        CAPTURE(dim, length, mask == Mask::causal);
        check_backward(attention_case(heads_of(1, 1, dim), {{0, length, 0, length, mask}}, 7));
      }
    }
  }
}

TEST_CASE("Hopper backward: more queries than keys, or fewer, aligned to the bottom right", "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    for (const auto& [queries, keys] : {std::pair{1, 200}, {200, 1}, {130, 70}, {70, 130}, {60, 256}, {256, 60}}) {
      for (const Mask mask : {Mask::full, Mask::causal}) {
        CAPTURE(dim, queries, keys, mask == Mask::causal);
        check_backward(attention_case(heads_of(1, 1, dim), {{0, queries, 0, keys, mask}}, 11));
      }
    }
  }
}

TEST_CASE("Hopper backward: gradients of shared keys and values sum over their query heads, in any parts",
          "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    for (const auto& [heads, kv_heads, parts] : {std::tuple{4, 4, 1}, {4, 1, 1}, {8, 1, 8}, {8, 2, 2}}) {
      CAPTURE(dim, heads, kv_heads, parts);
      check_backward(attention_case(heads_of(heads, kv_heads, dim), {{0, 66, 0, 66, Mask::causal}}, 13),
                     {.parts = parts});
    }
  }
}

TEST_CASE("Hopper backward: packed documents, some empty on one side, whatever the order of threads", "[attention]") {
  const std::vector<AttentionBlock> blocks = {{0, 40, 0, 40, Mask::causal}, {0, 0, 0, 9, Mask::full},
                                              {0, 9, 0, 0, Mask::full},     {0, 150, 0, 150, Mask::causal},
                                              {0, 33, 0, 90, Mask::full},   {0, 1, 0, 1, Mask::causal}};
  for (const std::int64_t dim : {64, 128}) {
    for (const std::uint64_t seed : {0, 1, 2, 3}) {
      CAPTURE(dim, seed);
      AttentionHeads heads = heads_of(2, 1, dim);
      heads.scale = 0.2F;
      check_backward(attention_case(heads, blocks, 17), {.seed = seed});
    }
  }
}

TEST_CASE("Hopper backward: long documents send the rings of buffers round, whatever the order of threads",
          "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::uint64_t seed : {0, 1, 2, 3}) {
      CAPTURE(dim, seed);
      const std::int64_t seven_tiles = dim == 64 ? 7 * 128 : 7 * 64;
      check_backward(attention_case(heads_of(1, 1, dim), {{0, seven_tiles, 0, 130, Mask::full}}, 19), {.seed = seed});
    }
  }
}

TEST_CASE("Hopper backward: random packs of documents, in a random order of threads", "[attention]") {
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
    check_backward(attention_case(heads, blocks, static_cast<std::uint32_t>(seed)), {.seed = seed});
  }
}

TEST_CASE("Hopper backward: rows that see no key, here or anywhere, get and give nothing", "[attention]") {
  // Queries 0 to 4 of the first document see no key.
  const AttentionCase given =
      attention_case(heads_of(1, 1, 128), {{0, 9, 0, 4, Mask::causal}, {0, 3, 0, 0, Mask::full}}, 5);
  const RowResults rows = row_results(given);
  const AttentionGradients found = run_backward(given, rows);
  const std::span<const double> of_five_queries =
      std::span(found.d_q).subspan(std::size_t{2} * 128, std::size_t{5} * 128);
  CHECK(std::all_of(of_five_queries.begin(), of_five_queries.end(), [](double x) { return x == 0; }));
  check_backward(given, rows);
}

TEST_CASE("Hopper backward: keys in two launches add up to the gradients of one", "[attention]") {
  // As in a ring: LSE and delta of the whole row, each launch with a part of the keys.
  for (const std::int64_t dim : {64, 128}) {
    CAPTURE(dim);
    const AttentionCase whole = attention_case(heads_of(2, 1, dim), {{0, 70, 0, 160, Mask::full}}, 37, 0);
    const RowResults rows = row_results(whole);
    AttentionCase first = whole;
    AttentionCase second = whole;
    first.blocks = {{0, 70, 0, 90, Mask::full}};
    second.blocks = {{0, 70, 90, 70, Mask::full}};
    check_backward(first, rows);
    check_backward(second, rows);
    const AttentionGradients right = reference::attention_backward(whole.input(), whole.d_o, rows.lse, rows.delta);
    const AttentionGradients one = run_backward(first, rows);
    const AttentionGradients two = run_backward(second, rows);
    std::vector<double> sum;
    for (std::size_t i = 0; i < one.d_q.size(); ++i) sum.push_back(one.d_q[i] + two.d_q[i]);
    CHECK(relative_error(sum, right.d_q) <= 1e-2);
  }
}

TEST_CASE("Hopper backward refuses a query gradient whose rows the copy engine cannot add to", "[attention]") {
  AttentionBackward op{.heads = heads_of(4, 2, 64),
                       .blocks = {},
                       .q = {nullptr, 256},
                       .k = {nullptr, 128},
                       .v = {nullptr, 128},
                       .d_o = {nullptr, 256},
                       .d_q = {nullptr, 256},
                       .d_k = {nullptr, 128},
                       .d_v = {nullptr, 128}};
  const auto arguments = [&] { return backward_arguments<BackwardShape<64>>(op, {}, 2, emulator::tensor_map); };
  CHECK(arguments().common.heads_per_part == 1);
  op.d_q.stride = 258;
  CHECK_THROWS_WITH(arguments(), "attention: rows of d_q must begin at multiples of 16 bytes");
}

}  // namespace hdpsim::kernels::cuda::hopper
