#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/support/twin_launch.h"

/// Attention on a device and in fp64, launch by launch.
namespace hdpsim::kernels {

/// Blocks of one launch; where their rows begin does not matter.
struct AttentionCase {
  std::string name;
  std::int64_t heads, kv_heads, dim;
  std::vector<AttentionBlock> blocks;
  double sinks = 0;  ///< Deviation of the heads' sinks; 0: none.
  double scale = 0;  ///< 0: 1 / sqrt(dim).
  /// Of the scores' sizes: how many standard deviations keys are moved, all alike, against queries.
  double shift = 0;

  [[nodiscard]] bool is_for(const TestedDevice& device) const {
    const bool windowed =
        std::any_of(blocks.begin(), blocks.end(), [](const AttentionBlock& block) { return block.window > 0; });
    const bool is_short = std::all_of(blocks.begin(), blocks.end(), [&](const AttentionBlock& block) {
      return std::max(block.queries, block.keys) <= device.longest;
    });
    return is_short && (device.has_windows || !windowed) && (device.has_sinks || (sinks == 0 && dim <= 128)) &&
           (device.is_fp32() ? scale < 10 && shift == 0 : scale >= 0);
  }
};

inline AttentionBlock block(std::int64_t queries, std::int64_t keys, Mask mask, std::int64_t window = 0,
                            std::int64_t lead = 0) {
  return {.queries = queries, .keys = keys, .mask = mask, .window = window, .lead = lead};
}

/// The tensors of a case, with rows of no block before, between and behind its blocks, and the launches over them.
class AttentionTwins {
 public:
  AttentionTwins(const TestedDevice& tested, const AttentionCase& given, std::uint64_t seed, bool accumulate = false)
      : device(*tested.backend), heads(heads_of(given)), blocks(placed(given.blocks)), random(seed) {
    // What is rounded to bf16 besides the results: P, and dS and P of gradients. CPUs round sums of fp32 alone.
    const bool fp32 = tested.is_fp32();
    const Tolerance exactly{};
    const Tolerance of_outputs{fp32 ? 2e-6 : accumulate ? 2e-3 : 4e-3};
    const Tolerance of_lse{fp32 ? 2e-6 : 1e-4, fp32 ? 0.0 : 1.0};
    // Gradients of a key are sums over queries of differences of equal terms: no smaller scale fits their errors.
    const Tolerance of_gradients{fp32 ? 5e-6 : 8e-3, fp32 ? 4.0 : 1e-3};
    const auto tensor = [&](std::int64_t rows, std::int64_t width, std::int64_t room, const Tolerance& tolerance,
                            bool is_fp32 = false) {
      return TwinTensor(device, {.rows = rows, .width = width, .room = room, .fp32 = is_fp32}, tolerance);
    };
    const std::int64_t values = heads.value_width();
    const std::int64_t with_sinks = given.sinks > 0 ? heads.heads : 0;
    tensors.push_back(tensor(query_rows, heads.heads * heads.dim, 16, exactly));
    tensors.push_back(tensor(key_rows, heads.kv_heads * heads.dim, 8, exactly));
    tensors.push_back(tensor(key_rows, heads.kv_heads * values, 24, exactly));
    tensors.push_back(tensor(query_rows, heads.heads * values, 32, exactly));
    tensors.push_back(tensor(query_rows, heads.heads * values, 40, of_outputs, accumulate));
    tensors.push_back(tensor(heads.heads, query_rows, 0, of_lse, true));
    tensors.push_back(tensor(heads.heads, query_rows, 0, {fp32 ? 2e-6 : 1e-5, 1}, true));
    tensors.push_back(tensor(query_rows, heads.heads * heads.dim, 4, of_gradients, true));
    tensors.push_back(tensor(key_rows, heads.kv_heads * heads.dim, 12, of_gradients, true));
    tensors.push_back(tensor(key_rows, heads.kv_heads * values, 20, of_gradients, true));
    tensors.push_back(tensor(1, with_sinks, 0, exactly, true));
    tensors.push_back(tensor(1, with_sinks, 0, of_gradients, true));
    for (const AttentionBlock& at : blocks) {
      for (const Name name : {q, d_o, d_q})
        tensors[name].draw(random, name == d_q ? 0.1 : 1, at.query_begin, at.queries);
      for (const Name name : {k, v, d_k, d_v}) tensors[name].draw(random, name >= d_k ? 0.1 : 1, at.key_begin, at.keys);
      if (given.shift == 0) continue;
      tensors[q].fill(4, at.query_begin, at.queries);
      tensors[k].set(at.key_begin, at.keys, [&](std::int64_t, std::int64_t column) {
        return given.shift + static_cast<double>(column % 7) / 64;
      });
    }
    if (with_sinks > 0) {
      tensors[sinks].draw(random, given.sinks);
      tensors[d_sinks].draw(random, 0.1);
    }
  }

  [[nodiscard]] AttentionForward forward_op(Side at) {
    return {.heads = heads,
            .blocks = blocks,
            .q = tensors[q][at],
            .k = tensors[k][at],
            .v = tensors[v][at],
            .o = tensors[o][at],
            .lse = tensors[lse][at],
            .lse_stride = query_rows,
            .sinks = tensors[sinks][at]};
  }
  [[nodiscard]] AttentionBackward backward_op(Side at) {
    return {.heads = heads,
            .blocks = blocks,
            .q = tensors[q][at],
            .k = tensors[k][at],
            .v = tensors[v][at],
            .d_o = tensors[d_o][at],
            .lse = tensors[lse][at],
            .delta = tensors[delta][at],
            .lse_stride = query_rows,
            .d_q = tensors[d_q][at],
            .d_k = tensors[d_k][at],
            .d_v = tensors[d_v][at],
            .sinks = tensors[sinks][at],
            .d_sinks = tensors[d_sinks][at]};
  }

  void forward(std::span<const AttentionBlock> some, bool accumulate, bool with_sinks = true) {
    const auto launch = [&](Side at) {
      AttentionForward op = forward_op(at);
      op.blocks = some;
      op.accumulate = accumulate;
      if (!with_sinks) op.sinks = nullptr;
      return op;
    };
    run_twins(device, launch, {&tensors[o], &tensors[lse], &tensors[q], &tensors[k], &tensors[v]});
  }
  void forward() { forward(blocks, false); }

  [[nodiscard]] AttentionDelta delta_op(Side at) {
    return {
        .heads = heads, .rows = query_rows, .o = tensors[o][at], .d_o = tensors[d_o][at], .delta = tensors[delta][at]};
  }
  void delta_of_rows() {
    run_twins(device, [&](Side at) { return delta_op(at); }, {&tensors[delta]});
  }
  void backward(std::span<const AttentionBlock> some, bool deterministic) {
    const auto launch = [&](Side at) {
      AttentionBackward op = backward_op(at);
      op.blocks = some;
      op.deterministic = deterministic;
      return op;
    };
    run_twins(device, launch, {&tensors[d_q], &tensors[d_k], &tensors[d_v], &tensors[d_sinks]});
  }

  /// The bits of all that a block got.
  [[nodiscard]] std::vector<std::vector<float>> results_of(const AttentionBlock& at) {
    std::vector<std::vector<float>> bits;
    for (const Name name : {o, d_q}) bits.push_back(tensors[name].on_device(at.query_begin, at.queries));
    for (const Name name : {d_k, d_v}) bits.push_back(tensors[name].on_device(at.key_begin, at.keys));
    return bits;
  }

  enum Name : std::size_t { q, k, v, d_o, o, lse, delta, d_q, d_k, d_v, sinks, d_sinks };
  Backend& device;
  AttentionHeads heads;
  std::int64_t query_rows = 3;
  std::int64_t key_rows = 2;
  std::vector<AttentionBlock> blocks;
  std::mt19937_64 random;
  std::vector<TwinTensor> tensors;

 private:
  static AttentionHeads heads_of(const AttentionCase& given) {
    const double scale = given.scale != 0 ? given.scale : 1 / std::sqrt(static_cast<double>(given.dim));
    return {.heads = given.heads,
            .kv_heads = given.kv_heads,
            .dim = given.dim,
            .scale = static_cast<float>(scale),
            .value_dim = given.dim == 192 ? 128 : 0};
  }
  std::vector<AttentionBlock> placed(std::vector<AttentionBlock> shapes) {
    for (AttentionBlock& shape : shapes) {
      shape.query_begin = query_rows;
      shape.key_begin = key_rows;
      query_rows += shape.queries + 1;
      key_rows += shape.keys + 2;
    }
    return shapes;
  }
};

}  // namespace hdpsim::kernels
