// Attention backward, portable and of Hopper, tile by tile as a GPU would run it, against fp64.

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
#include "kernels/cuda/portable/backward.cuh"
#include "kernels/cuda/portable/query_gradient.cuh"
#include "tests/support/catch.h"
#include "tests/support/kernels.h"
#include "tests/unit/kernels/cuda_emulated/attention_case.h"

namespace hdpsim::kernels::cuda {
namespace {

using emulator::attention_case;
using emulator::AttentionCase;
using emulator::PackedRows;
using reference::AttentionGradients;
using test::relative_error;

struct Options {
  bool deterministic = false;  ///< Portable only.
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
  Accumulated(std::int64_t rows_, std::int64_t width_, std::int64_t padding, const Used& used, std::uint32_t seed)
      : rows(rows_), width(width_), memory(rows_, width_, padding) {
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

TileOrder order_of(const std::vector<AttentionTile>& tiles, std::int64_t heads) {
  return {static_cast<std::int32_t>(tiles.size()), static_cast<std::int32_t>(heads), 1};
}

struct Portable {
  static constexpr bool has_deterministic = true;
  static constexpr std::int64_t gradient_padding = 6;

  template <int dim>
  static void launch(const AttentionBackward& op, const Options& options) {
    using Shape = portable::BackwardShape<dim>;
    portable::BackwardArguments arguments = portable::backward_arguments(op, options.parts);
    const std::vector<AttentionTile> by_key = key_tiles(op.blocks, Shape::keys);
    const std::vector<std::byte> key_image = portable::queue_image(by_key);
    arguments.queue = portable::queue_at(key_image.data(), order_of(by_key, op.heads.kv_heads * options.parts));
    const auto backward = [&] {
      if (options.deterministic) {
        portable::attention_backward<Shape, false>(arguments);
      } else {
        portable::attention_backward<Shape, true>(arguments);
      }
    };
    emulator::launch({2}, Shape::threads, Shape::shared_bytes, backward, options.seed);
    if (!options.deterministic) return;
    using QueryShape = portable::QueryGradientShape<dim>;
    const std::vector<AttentionTile> by_query = query_tiles(op.blocks, QueryShape::queries);
    const std::vector<std::byte> query_image = portable::queue_image(by_query);
    arguments.queue = portable::queue_at(query_image.data(), order_of(by_query, op.heads.heads));
    emulator::launch(
        {2}, QueryShape::threads, QueryShape::shared_bytes,
        [&] { portable::attention_query_gradient<QueryShape>(arguments); }, options.seed);
  }
};

struct Hopper {
  static constexpr bool has_deterministic = false;
  static constexpr std::int64_t gradient_padding = 8;  ///< The copy engine adds to rows that begin at 16 bytes.

  template <int dim>
  static void launch(const AttentionBackward& op, const Options& options) {
    using Shape = hopper::BackwardShape<dim>;
    const std::vector<AttentionTile> tiles = key_tiles(op.blocks, Shape::keys);
    const std::vector<std::byte> image = portable::queue_image(tiles);
    const auto arguments = hopper::backward_arguments<Shape>(
        op, portable::queue_at(image.data(), order_of(tiles, op.heads.kv_heads * options.parts)), options.parts,
        emulator::tensor_map);
    emulator::launch_hopper(
        {2}, Shape::threads, hopper::BackwardShared<Shape>::bytes,
        [&] { hopper::attention_backward<Shape>(arguments); }, options.seed);
  }
};

template <class Kernel, int dim>
AttentionGradients run_backward(const AttentionCase& given, const RowResults& rows, const Options& options) {
  const AttentionHeads& heads = given.heads;
  const auto has_query = [&](std::int64_t row) { return given.has_query(row); };
  const auto has_key = [&](std::int64_t row) { return given.has_key(row); };
  PackedRows<bf16> q(given.q, given.query_rows, heads.heads * dim, 16);
  PackedRows<bf16> k(given.k, given.key_rows, heads.kv_heads * dim, 8);
  PackedRows<bf16> v(given.v, given.key_rows, heads.kv_heads * dim, 24);
  PackedRows<bf16> d_o(given.d_o, given.query_rows, heads.heads * dim, 32);
  PackedRows<float> lse(rows.lse, heads.heads, given.query_rows, 0);
  PackedRows<float> delta(rows.delta, heads.heads, given.query_rows, 0);
  Accumulated d_q(given.query_rows, heads.heads * dim, Kernel::gradient_padding, has_query, 101);
  Accumulated d_k(given.key_rows, heads.kv_heads * dim, Kernel::gradient_padding, has_key, 102);
  Accumulated d_v(given.key_rows, heads.kv_heads * dim, Kernel::gradient_padding, has_key, 103);
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
                             .d_v = {d_v.memory.data(), d_v.memory.stride()},
                             .deterministic = options.deterministic};
  Kernel::template launch<dim>(op, options);
  return {d_q.added(has_query), d_k.added(has_key), d_v.added(has_key)};
}

template <class Kernel>
AttentionGradients run_backward(const AttentionCase& given, const RowResults& rows, const Options& options = {}) {
  return given.heads.dim == 64 ? run_backward<Kernel, 64>(given, rows, options)
                               : run_backward<Kernel, 128>(given, rows, options);
}

/// Errors within twice those of an ordinary bf16 implementation, of each gradient.
template <class Kernel>
void check_backward(const AttentionCase& given, const RowResults& rows, const Options& options = {}) {
  const AttentionGradients right = reference::attention_backward(given.input(), given.d_o, rows.lse, rows.delta);
  const AttentionGradients ordinary = emulator::ordinary_backward(given, rows.lse, rows.delta);
  const AttentionGradients found = run_backward<Kernel>(given, rows, options);
  const auto bound = [](const std::vector<double>& inexact, const std::vector<double>& exact) {
    return 2 * relative_error(inexact, exact, 1e-3) + 1e-4;
  };
  REQUIRE(relative_error(found.d_v, right.d_v, 1e-3) <= bound(ordinary.d_v, right.d_v));
  REQUIRE(relative_error(found.d_k, right.d_k, 1e-3) <= bound(ordinary.d_k, right.d_k));
  REQUIRE(relative_error(found.d_q, right.d_q, 1e-3) <= bound(ordinary.d_q, right.d_q));
}
template <class Kernel>
void check_backward(const AttentionCase& given, const Options& options = {}) {
  check_backward<Kernel>(given, row_results(given), options);
}

AttentionHeads heads_of(std::int64_t heads, std::int64_t kv_heads, std::int64_t dim) {
  return {.heads = heads, .kv_heads = kv_heads, .dim = dim, .scale = 1 / std::sqrt(static_cast<float>(dim))};
}

}  // namespace

TEMPLATE_TEST_CASE("backward: lengths around every tile size, both masks, both head dimensions", "[attention]",
                   Portable, Hopper) {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::int64_t length : {1, 63, 64, 65, 127, 128, 129}) {
      for (const Mask mask : {Mask::full, Mask::causal}) {
        if (dim == 128 && length % 64 == 63) continue;  // a tile of either dimension is 64 or 128 rows
        CAPTURE(dim, length, mask == Mask::causal);
        check_backward<TestType>(attention_case(heads_of(1, 1, dim), {{0, length, 0, length, mask}}, 7));
      }
    }
  }
}

TEMPLATE_TEST_CASE("backward: more queries than keys, or fewer, aligned to the bottom right", "[attention]", Portable,
                   Hopper) {
  for (const std::int64_t dim : {64, 128}) {
    for (const auto& [queries, keys] : {std::pair{1, 200}, {200, 1}, {130, 70}, {70, 132}, {60, 186}, {256, 60}}) {
      for (const Mask mask : {Mask::full, Mask::causal}) {
        if (dim == 128 && mask == Mask::full) continue;
        CAPTURE(dim, queries, keys, mask == Mask::causal);
        const AttentionCase given = attention_case(heads_of(1, 1, dim), {{0, queries, 0, keys, mask}}, 11);
        check_backward<TestType>(given);
        if (TestType::has_deterministic) check_backward<TestType>(given, {.deterministic = true});
      }
    }
  }
}

TEMPLATE_TEST_CASE("backward: gradients of shared keys and values sum over their query heads, in any parts",
                   "[attention]", Portable, Hopper) {
  for (const std::int64_t dim : {64, 128}) {
    for (const auto& [heads, kv_heads, parts] : {std::tuple{4, 4, 1}, {4, 1, 1}, {8, 1, 8}, {8, 2, 2}}) {
      CAPTURE(dim, heads, kv_heads, parts);
      check_backward<TestType>(attention_case(heads_of(heads, kv_heads, dim), {{0, 66, 0, 66, Mask::causal}}, 13),
                               {.parts = parts});
    }
  }
}

TEMPLATE_TEST_CASE("backward: packed documents, some empty on one side, whatever the order of threads", "[attention]",
                   Portable, Hopper) {
  const std::vector<AttentionBlock> blocks = {{0, 40, 0, 40, Mask::causal}, {0, 0, 0, 9, Mask::full},
                                              {0, 9, 0, 0, Mask::full},     {0, 150, 0, 150, Mask::causal},
                                              {0, 33, 0, 90, Mask::full},   {0, 1, 0, 1, Mask::causal}};
  for (const std::int64_t dim : {64, 128}) {
    for (const std::uint64_t seed : {0, 1}) {
      CAPTURE(dim, seed);
      AttentionHeads heads = heads_of(2, 1, dim);
      heads.scale = 0.2F;
      check_backward<TestType>(attention_case(heads, blocks, 17),
                               {.deterministic = TestType::has_deterministic && seed % 2 == 1, .seed = seed});
    }
  }
}

TEMPLATE_TEST_CASE("backward: long documents send the rings of buffers round, whatever the order of threads",
                   "[attention]", Portable, Hopper) {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::uint64_t seed : {0, 1}) {
      CAPTURE(dim, seed);
      const std::int64_t five_tiles = dim == 64 ? 5 * 128 : 5 * 64;
      check_backward<TestType>(attention_case(heads_of(1, 1, dim), {{0, five_tiles, 0, 130, Mask::full}}, 19),
                               {.seed = seed});
    }
  }
}

TEMPLATE_TEST_CASE("backward: random packs of documents, in a random order of threads", "[attention]", Portable,
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
    check_backward<TestType>(attention_case(heads, blocks, static_cast<std::uint32_t>(seed)), {.seed = seed});
  }
}

TEMPLATE_TEST_CASE("backward: rows that see no key, here or anywhere, get and give nothing", "[attention]", Portable,
                   Hopper) {
  // Queries 0 to 4 of the first document see no key.
  const AttentionCase given =
      attention_case(heads_of(1, 1, 128), {{0, 9, 0, 4, Mask::causal}, {0, 3, 0, 0, Mask::full}}, 5);
  for (const bool deterministic : {false, true}) {
    if (deterministic && !TestType::has_deterministic) continue;
    CAPTURE(deterministic);
    const RowResults rows = row_results(given);
    const AttentionGradients found = run_backward<TestType>(given, rows, {.deterministic = deterministic});
    const std::span<const double> of_blind_rows = std::span(found.d_q).subspan(2 * 128, 5 * 128);
    CHECK(std::all_of(of_blind_rows.begin(), of_blind_rows.end(), [](double x) { return x == 0; }));
    check_backward<TestType>(given, rows, {.deterministic = deterministic});
  }
}

TEMPLATE_TEST_CASE("backward: rows that pad a tile stay out of sums also where exp(-LSE) overflows", "[attention]",
                   Portable, Hopper) {
  for (const std::int64_t dim : {64, 128}) {
    CAPTURE(dim);
    AttentionCase given = attention_case(heads_of(1, 1, dim), {{0, 70, 0, 70, Mask::full}}, 43, 0);
    std::fill(given.q.begin(), given.q.end(), 4);
    for (double& value : given.k) value = -4 + value / 64;
    for (double& value : given.k) value = emulator::rounded(value);
    RowResults rows = row_results(given);
    REQUIRE(rows.lse[0] < -100);  // exp(100) is more than fp32 holds.
    check_backward<TestType>(given, rows);
    if (TestType::has_deterministic) check_backward<TestType>(given, rows, {.deterministic = true});
  }
}

TEMPLATE_TEST_CASE("backward: keys in two launches add up to the gradients of one", "[attention]", Portable, Hopper) {
  // As in a ring: LSE and delta of the whole row, each launch with a part of the keys.
  for (const std::int64_t dim : {64, 128}) {
    CAPTURE(dim);
    const AttentionCase whole = attention_case(heads_of(2, 1, dim), {{0, 70, 0, 160, Mask::full}}, 37, 0);
    const RowResults rows = row_results(whole);
    AttentionCase first = whole;
    AttentionCase second = whole;
    first.blocks = {{0, 70, 0, 90, Mask::full}};
    second.blocks = {{0, 70, 90, 70, Mask::full}};
    check_backward<TestType>(first, rows);
    check_backward<TestType>(second, rows);
    const AttentionGradients right = reference::attention_backward(whole.input(), whole.d_o, rows.lse, rows.delta);
    const AttentionGradients one = run_backward<TestType>(first, rows);
    const AttentionGradients two = run_backward<TestType>(second, rows);
    std::vector<double> sum;
    for (std::size_t i = 0; i < one.d_q.size(); ++i) sum.push_back(one.d_q[i] + two.d_q[i]);
    CHECK(relative_error(sum, right.d_q) <= 1e-2);
  }
}

TEST_CASE("portable backward: the deterministic one gives the same bits whatever the order of threads", "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    CAPTURE(dim);
    const AttentionCase given = attention_case(heads_of(2, 1, dim), {{0, 200, 0, 200, Mask::causal}}, 41);
    const RowResults rows = row_results(given);
    const AttentionGradients first = run_backward<Portable>(given, rows, {.deterministic = true, .seed = 1});
    const AttentionGradients again = run_backward<Portable>(given, rows, {.deterministic = true, .seed = 2});
    CHECK(again.d_q == first.d_q);
    CHECK(again.d_k == first.d_k);
    CHECK(again.d_v == first.d_v);
    check_backward<Portable>(given, rows, {.deterministic = true});
  }
}

TEST_CASE("portable backward: windows around tiles, and keys from earlier in the document", "[attention]") {
  for (const std::int64_t dim : {64, 128}) {
    for (const std::int64_t window : {1, 64, 65, 129}) {
      CAPTURE(dim, window);
      const AttentionCase given = attention_case(heads_of(1, 1, dim), {{0, 200, 0, 200, Mask::causal, window}}, 37);
      check_backward<Portable>(given, {.deterministic = window % 2 == 0});
    }
    CAPTURE(dim);
    const AttentionCase given = attention_case(heads_of(2, 1, dim),
                                               {{0, 130, 0, 130, Mask::causal, 150, 130},
                                                {0, 130, 0, 130, Mask::causal, 150, 260},  // seen by the first queries
                                                {0, 40, 0, 40, Mask::causal, 30, 500},     // by none
                                                {0, 140, 0, 70, Mask::causal, 20, -15}},
                                               41);
    check_backward<Portable>(given);
    check_backward<Portable>(given, {.deterministic = true});
  }
}

TEMPLATE_TEST_CASE("backward: keys from earlier in the document than the queries, without a window", "[attention]",
                   Portable, Hopper) {
  check_backward<TestType>(attention_case(heads_of(2, 1, 64),
                                          {{0, 140, 0, 130, Mask::causal, 0, 70},
                                           {0, 140, 0, 130, Mask::causal, 0, 1000},
                                           {0, 140, 0, 130, Mask::causal, 0, -60}},
                                          43));
}

TEST_CASE("portable backward: random windows and leads, in a random order of threads", "[attention]") {
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
    check_backward<Portable>(attention_case(heads, blocks, static_cast<std::uint32_t>(seed)),
                             {.deterministic = seed % 2 == 0, .seed = seed});
  }
}

// Four query heads of two key-value heads, rows without gaps, no memory.
AttentionBackward packed_rows() {
  return {.heads = heads_of(4, 2, 64),
          .blocks = {},
          .q = {nullptr, 256},
          .k = {nullptr, 128},
          .v = {nullptr, 128},
          .d_o = {nullptr, 256},
          .d_q = {nullptr, 256},
          .d_k = {nullptr, 128},
          .d_v = {nullptr, 128}};
}

TEST_CASE("portable backward refuses rows that its copies and additions cannot take", "[attention]") {
  AttentionBackward op = packed_rows();
  CHECK(portable::backward_arguments(op, 2).heads_per_part == 1);
  op.d_v.stride = 129;
  CHECK_THROWS_WITH(portable::backward_arguments(op, 1), "attention: rows of d_v must begin at multiples of 8 bytes");
  op.d_o.stride = 260;
  CHECK_THROWS_WITH(portable::backward_arguments(op, 1), "attention: rows of d_o must begin at multiples of 16 bytes");
}

TEST_CASE("backward on a GPU refuses sinks, and widths of heads that it has no kernel for", "[attention]") {
  AttentionBackward op = packed_rows();
  op.heads.value_dim = 32;
  CHECK_THROWS_WITH(portable::backward_arguments(op, 1),
                    "attention: kernels for GPUs know heads of 64 and 128 alone, with values as wide as keys");
  op.heads.value_dim = 0;
  const float sinks[4] = {};
  op.sinks = sinks;
  CHECK_THROWS_WITH(portable::backward_arguments(op, 1), "attention: kernels for GPUs know no sinks yet");
  CHECK_THROWS_WITH(hopper::backward_arguments<hopper::BackwardShape<64>>(op, {}, 2, emulator::tensor_map),
                    "attention: kernels for GPUs know no sinks yet");
}

TEST_CASE("Hopper backward refuses windows", "[attention]") {
  AttentionBackward op = packed_rows();
  const AttentionBlock windowed[] = {{0, 4, 0, 4, Mask::causal, 2}};
  op.blocks = windowed;
  CHECK_THROWS_WITH(hopper::backward_arguments<hopper::BackwardShape<64>>(op, {}, 2, emulator::tensor_map),
                    "attention: kernels for Hopper know no windows yet; the portable ones do");
}

TEST_CASE("Hopper backward refuses a query gradient whose rows the copy engine cannot add to", "[attention]") {
  AttentionBackward op = packed_rows();
  const auto arguments = [&] {
    return hopper::backward_arguments<hopper::BackwardShape<64>>(op, {}, 2, emulator::tensor_map);
  };
  CHECK(arguments().common.heads_per_part == 1);
  op.d_q.stride = 258;
  CHECK_THROWS_WITH(arguments(), "attention: rows of d_q must begin at multiples of 16 bytes");
}

}  // namespace hdpsim::kernels::cuda
