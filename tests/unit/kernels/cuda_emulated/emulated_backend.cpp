// The kernels of GPUs behind the interface of a backend, launched as their hosts do, on the emulator.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "tests/support/gpu/emulator.h"
#include "tests/support/gpu/hopper.h"
// The kernels follow the emulator, which stands for nvcc.
#include "kernels/cuda/hopper/backward.cuh"
#include "kernels/cuda/hopper/forward.cuh"
#include "kernels/cuda/layer/attention_delta.cuh"
#include "kernels/cuda/layer/cross_entropy.cuh"
#include "kernels/cuda/layer/elementwise.cuh"
#include "kernels/cuda/layer/rms_norm.cuh"
#include "kernels/cuda/layer/rope.cuh"
#include "kernels/cuda/portable/backward.cuh"
#include "kernels/cuda/portable/forward.cuh"
#include "kernels/cuda/portable/query_gradient.cuh"
#include "tests/support/reference_backend.h"
#include "tests/support/twin_launch.h"

namespace hdpsim::kernels {
namespace {

using namespace cuda;

/// Few, so that blocks take several items and rows.
constexpr int multiprocessors = 2;

bool takes_chunks_of_8(std::initializer_list<const void*> tensors, std::initializer_list<std::int64_t> widths = {}) {
  const auto is_aligned = [](const void* tensor) { return reinterpret_cast<std::uintptr_t>(tensor) % 16 == 0; };
  return std::all_of(tensors.begin(), tensors.end(), is_aligned) &&
         std::all_of(widths.begin(), widths.end(), [](std::int64_t width) { return width % 8 == 0; });
}

/// A device of bf16 whose every launch has another order of threads.
class EmulatedBackend final : public ReferenceBackend {
 public:
  explicit EmulatedBackend(bool is_hopper) : ReferenceBackend(Element::bf16), is_hopper_(is_hopper) {}
  using ReferenceBackend::run;

  void run(const AttentionForward& op) override {
    const bool windowed = std::ranges::any_of(op.blocks, [](const AttentionBlock& block) { return block.window > 0; });
    const bool narrow = op.heads.dim == 64;
    if (is_hopper_) {
      narrow ? hopper_forward<hopper::ForwardShape<64>>(op) : hopper_forward<hopper::ForwardShape<128>>(op);
    } else if (windowed) {
      narrow ? forward<portable::ForwardShape<64, true>>(op) : forward<portable::ForwardShape<128, true>>(op);
    } else {
      narrow ? forward<portable::ForwardShape<64>>(op) : forward<portable::ForwardShape<128>>(op);
    }
  }
  void run(const AttentionBackward& op) override {
    const bool narrow = op.heads.dim == 64;
    if (is_hopper_) {
      narrow ? hopper_backward<hopper::BackwardShape<64>>(op) : hopper_backward<hopper::BackwardShape<128>>(op);
    } else {
      narrow ? backward<portable::BackwardShape<64>, portable::QueryGradientShape<64>>(op)
             : backward<portable::BackwardShape<128>, portable::QueryGradientShape<128>>(op);
    }
  }
  void run(const AttentionDelta& op) override {
    with_chunk(takes_chunks_of_8({op.o.data, op.d_o.data}, {op.o.stride, op.d_o.stride}), [&](auto count) {
      const int lanes = layer::delta_lanes<count()>(op.heads.dim);
      const layer::DeltaGrid grid = layer::delta_grid(op, lanes, multiprocessors);
      launch({grid.x, grid.y}, layer::delta_threads, 0, [&] { layer::attention_delta<count()>(op, lanes); });
    });
  }

  void run(const Add& op) override {
    with_chunk(takes_chunks_of_8({op.a, op.b, op.y}), [&](auto count) {
      elements<count()>(op.count, [&] {
        op.fp32 ? layer::add_elements<count(), float>(op) : layer::add_elements<count(), bf16>(op);
      });
    });
  }
  void run(const Cast& op) override {
    with_chunk(takes_chunks_of_8({op.from, op.to}), [&](auto count) {
      elements<count()>(op.count, [&] {
        op.to_fp32 ? layer::cast_elements<count(), bf16, float>(op) : layer::cast_elements<count(), float, bf16>(op);
      });
    });
  }
  void run(const Adam& op) override {
    with_chunk(takes_chunks_of_8({op.master, op.gradient, op.m, op.v, op.parameter}), [&](auto count) {
      elements<count()>(op.count, [&] { layer::adam_step<count()>(op, layer::adam_correction(op)); });
    });
  }
  void run(const SwigluForward& op) override {
    with_chunk(takes_chunks_of_8({op.gate_up, op.y}, {op.width}),
               [&](auto count) { rows<count()>(op, [&] { layer::swiglu_forward<count()>(op); }); });
  }
  void run(const SwigluBackward& op) override {
    with_chunk(takes_chunks_of_8({op.gate_up, op.d_y, op.d_gate_up}, {op.width}),
               [&](auto count) { rows<count()>(op, [&] { layer::swiglu_backward<count()>(op); }); });
  }
  void run(const EmbeddingForward& op) override {
    with_chunk(takes_chunks_of_8({op.table, op.y}, {op.width}),
               [&](auto count) { rows<count()>(op, [&] { layer::embedding_forward<count()>(op); }); });
  }
  void run(const EmbeddingBackward& op) override {
    with_chunk(takes_chunks_of_8({op.d_y, op.d_table}, {op.width}),
               [&](auto count) { rows<count()>(op, [&] { layer::embedding_backward<count()>(op); }); });
  }
  void run(const Rope& op) override {
    const layer::RopeFrequencies frequencies = layer::rope_frequencies(op);
    with_chunk(takes_chunks_of_8({op.x}, {op.stride, op.dim / 2}), [&](auto count) {
      const unsigned blocks = std::min(layer::rope_blocks(op.tokens, multiprocessors), 2U);
      launch({blocks}, layer::rope_threads, layer::rope_shared_bytes, [&] { layer::rotate<count()>(op, frequencies); });
    });
  }
  void run(const RmsNormForward& op) override {
    with_chunk(takes_chunks_of_8({op.x, op.weight, op.y}, {op.width}), [&](auto count) {
      const unsigned threads = layer::row_threads(op.width, count());
      launch({layer::row_blocks(op.tokens, threads, multiprocessors, 64)}, threads, layer::row_shared_bytes,
             [&] { layer::rms_norm_forward<count()>(op); });
    });
  }
  void run(const RmsNormBackward& op) override {
    with_chunk(takes_chunks_of_8({op.x, op.weight, op.d_y, op.d_x}, {op.width}), [&](auto count) {
      const unsigned threads = layer::row_threads(op.width, count());
      const unsigned blocks = layer::row_blocks(op.tokens, threads, multiprocessors, 64);
      std::vector<ptx::Vector16> partial((blocks * static_cast<std::size_t>(op.width) + 3) / 4);
      auto* const sums = reinterpret_cast<float*>(partial.data());
      launch({blocks}, threads, layer::row_shared_bytes, [&] { layer::rms_norm_backward<count()>(op, sums); });
      const auto columns = static_cast<unsigned>((op.width + layer::warp_lanes - 1) / layer::warp_lanes);
      launch({columns}, layer::warp_lanes * layer::column_shares, layer::column_sum_shared_bytes,
             [&] { layer::add_column_sums<layer::column_shares>(sums, blocks, op.width, op.d_weight); });
    });
  }
  void run(const CrossEntropy& op) override {
    with_chunk(takes_chunks_of_8({op.logits}, {op.vocabulary}),
               [&](auto count) { vocabulary(op.tokens, [&] { layer::cross_entropy<count()>(op); }); });
  }
  void run(const LogSumExp& op) override {
    with_chunk(takes_chunks_of_8({op.logits}, {op.vocabulary}),
               [&](auto count) { vocabulary(op.tokens, [&] { layer::log_sum_exp<count()>(op); }); });
  }
  void run(const JoinLogSumExp& op) override {
    launch({1}, layer::cross_entropy_threads, 0, [&] { layer::join_log_sum_exp(op); });
  }

 private:
  template <class Kernel>
  emulator::Statistics launch(emulator::Index3 grid, unsigned threads, std::size_t shared_bytes, const Kernel& kernel) {
    return emulator::launch(grid, threads, shared_bytes, kernel, seed_++);
  }
  template <class Launch>
  static void with_chunk(bool of_8, const Launch& launch) {
    of_8 ? launch(std::integral_constant<int, 8>{}) : launch(std::integral_constant<int, 1>{});
  }
  template <int count, class Kernel>
  void elements(std::int64_t total, const Kernel& kernel) {
    launch({layer::element_blocks(total, count, 1)}, layer::element_threads, 0, kernel);
  }
  template <int count, class Operation, class Kernel>
  void rows(const Operation& op, const Kernel& kernel) {
    const layer::RowGrid grid = layer::row_grid(op.tokens, op.width, count, 1);
    launch({grid.x, grid.y}, layer::element_threads, 0, kernel);
  }
  template <class Kernel>
  void vocabulary(std::int64_t tokens, const Kernel& kernel) {
    launch({layer::cross_entropy_blocks(tokens, multiprocessors)}, layer::cross_entropy_threads,
           layer::cross_entropy_shared_bytes, kernel);
  }

  static TileOrder order_of(const std::vector<AttentionTile>& tiles, std::int64_t heads) {
    return tile_order(tiles.size(), heads, 1, 0);
  }
  /// Tiles of queries; over no keys there is nothing to add.
  static std::vector<AttentionTile> tiles_of(const AttentionForward& op, std::int64_t rows) {
    std::vector<AttentionTile> tiles = query_tiles(op.blocks, rows);
    if (op.accumulate) std::erase_if(tiles, [](const AttentionTile& tile) { return tile.keys == 0; });
    return tiles;
  }
  /// In how many parts a backward launch computes the heads of a group.
  static std::int64_t parts_of(const AttentionBackward& op, std::size_t tiles) {
    const std::int64_t items = static_cast<std::int64_t>(tiles) * op.heads.kv_heads;
    return parts_of_group(op.heads.heads / op.heads.kv_heads, items, 2 * multiprocessors);
  }

  template <class Shape>
  void forward(const AttentionForward& op) {
    const std::vector<AttentionTile> tiles = tiles_of(op, Shape::queries);
    const std::vector<std::byte> image = portable::queue_image(tiles);
    const auto arguments =
        portable::forward_arguments(op, portable::queue_at(image.data(), order_of(tiles, op.heads.heads)));
    if (tiles.empty()) return;
    const auto statistics = launch({multiprocessors}, Shape::threads, Shape::shared_bytes, [&] {
      op.accumulate ? portable::attention_forward<Shape, true>(arguments)
                    : portable::attention_forward<Shape, false>(arguments);
    });
    if (statistics.ldmatrix_conflicts > 0) throw std::logic_error("rows of shared memory meet in a bank");
  }
  template <class Shape>
  void hopper_forward(const AttentionForward& op) {
    const std::vector<AttentionTile> tiles = tiles_of(op, Shape::queries);
    const std::vector<std::byte> image = portable::queue_image(tiles);
    const auto arguments = hopper::forward_arguments<Shape>(
        op, portable::queue_at(image.data(), order_of(tiles, op.heads.heads)), emulator::tensor_map);
    if (tiles.empty()) return;
    const auto kernel = [&] {
      op.accumulate ? hopper::attention_forward<Shape, true>(arguments)
                    : hopper::attention_forward<Shape, false>(arguments);
    };
    emulator::launch_hopper({multiprocessors}, Shape::threads, hopper::ForwardShared<Shape>::bytes, kernel, seed_++);
  }
  template <class Shape, class QueryShape>
  void backward(const AttentionBackward& op) {
    const std::vector<AttentionTile> tiles = key_tiles(op.blocks, Shape::keys);
    const std::int64_t parts = op.deterministic ? 1 : parts_of(op, tiles.size());
    portable::BackwardArguments arguments = portable::backward_arguments(op, parts);
    if (tiles.empty()) return;
    const std::vector<std::byte> image = portable::queue_image(tiles);
    arguments.queue = portable::queue_at(image.data(), order_of(tiles, op.heads.kv_heads * parts));
    launch({multiprocessors}, Shape::threads, Shape::shared_bytes, [&] {
      op.deterministic ? portable::attention_backward<Shape, false>(arguments)
                       : portable::attention_backward<Shape, true>(arguments);
    });
    if (!op.deterministic) return;
    std::vector<AttentionTile> by_query = query_tiles(op.blocks, QueryShape::queries);
    std::erase_if(by_query, [](const AttentionTile& tile) { return tile.keys == 0; });
    if (by_query.empty()) return;
    const std::vector<std::byte> query_image = portable::queue_image(by_query);
    arguments.queue = portable::queue_at(query_image.data(), order_of(by_query, op.heads.heads));
    launch({multiprocessors}, QueryShape::threads, QueryShape::shared_bytes,
           [&] { portable::attention_query_gradient<QueryShape>(arguments); });
  }
  template <class Shape>
  void hopper_backward(const AttentionBackward& op) {
    const std::vector<AttentionTile> tiles = key_tiles(op.blocks, Shape::keys);
    const std::int64_t parts = parts_of(op, tiles.size());
    const std::vector<std::byte> image = portable::queue_image(tiles);
    const auto arguments = hopper::backward_arguments<Shape>(
        op, portable::queue_at(image.data(), order_of(tiles, op.heads.kv_heads * parts)), parts, emulator::tensor_map);
    if (tiles.empty()) return;
    emulator::launch_hopper(
        {multiprocessors}, Shape::threads, hopper::BackwardShared<Shape>::bytes,
        [&] { hopper::attention_backward<Shape>(arguments); }, seed_++);
  }

  bool is_hopper_;
  std::uint64_t seed_ = 0;
};

}  // namespace

std::vector<TestedDevice> tested_devices() {
  TestedDevice portable{.name = "portable kernels", .backend = std::make_shared<EmulatedBackend>(false), .shapes = {}};
  portable.has_sinks = portable.has_products = false;
  TestedDevice hopper = portable;
  hopper.name = "kernels of Hopper";
  hopper.backend = std::make_shared<EmulatedBackend>(true);
  hopper.has_windows = hopper.has_deterministic = false;
  // Rows of whole chunks and of others, below and above what a block takes at once; kernels of layers are the same.
  portable.shapes = {{1, 8},      {3, 64}, {9, 72}, {1, 1024}, {1, 1032}, {1, 4104},
                     {1, 16'392}, {1, 1},  {2, 63}, {1, 513},  {3, 1025}, {1, 64, 1}};
  return {portable, hopper};
}

}  // namespace hdpsim::kernels
