#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/model/product_format.h"

namespace hdpsim {

enum class Direction { forward, backward };
enum class Mask { causal, full };

/// One matrix product on one device: (m x k) times (k x n), summed in fp32.
struct Gemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  ProductFormat format = ProductFormat::elements;
  /// Bytes of a number of the sum to which the product adds its result; 0: it writes the result as elements.
  std::int64_t sum_bytes = 0;
  /// Products of this shape that run at the same time, in one kernel or on streams of their own, and share waves of
  /// tiles: those of the experts of a device (Transformer Engine, common/gemm/cublaslt_gemm.cu,
  /// nvte_multi_tensor_gemm).
  std::int64_t count = 1;
  friend auto operator<=>(const Gemm&, const Gemm&) = default;
};

/// The part of one document in one attention launch: `queries` rows against `keys` columns. `count` equal blocks are
/// stated once. A causal block has queries == keys and area q (q + 1) / 2.
struct AttentionBlock {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  Mask mask = Mask::full;
  std::int64_t count = 1;
};

/// One launch of a variable-length attention kernel on one device, over all its blocks.
struct Attention {
  std::vector<AttentionBlock> blocks;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  ///< Width of queries, keys and values; the mean of keys and values if they differ.
  Direction direction = Direction::forward;
  bool dropout = false;  ///< Of scores; only unfused attention has a kernel for it.
  /// Head dimension of the kernel whose rate it has, where it computes a part of its products only; 0: `head_dim`.
  std::int64_t kernel_dim = 0;

  [[nodiscard]] std::int64_t dim_of_kernel() const { return kernel_dim > 0 ? kernel_dim : head_dim; }
};

/// The (query, key) pairs of a block, of all `count`, and of all blocks of a launch.
[[nodiscard]] double pairs_of(const AttentionBlock& block);
[[nodiscard]] double pairs_of(const Attention& launch);

/// FLOPs of attention's backward in those of its forward: five products of a block in place of two.
inline constexpr double backward_attention = 2.5;

/// FLOPs of attention over so many pairs, whose heads have `columns` columns of keys and of values in all: forward
/// 2 x columns x pairs.
[[nodiscard]] Flops attention_flops(std::int64_t columns, double pairs, Direction direction);
/// FLOPs of all products, 2 m n k each, and of a launch of attention.
[[nodiscard]] Flops flops_of(const Gemm& product);
[[nodiscard]] Flops flops_of(const Attention& launch);

/// Memory-bound kernels, by the names under which profiles have them: they do not all reach the same bandwidth. A
/// kernel that the profile lacks, such as another norm or activation, takes the bandwidth of the kernels like it.
enum class MemoryKernel : std::uint8_t {
  other,
  rms_norm_forward,
  rms_norm_backward,
  rope,
  swiglu_forward,
  swiglu_backward,
  add,
  embedding_forward,
  cross_entropy,
  fp32_loss,  ///< Kernels of a cross-entropy on an fp32 copy of the logits.
  adam,
};
inline constexpr std::size_t memory_kernels = 11;
[[nodiscard]] std::string_view memory_kernel_name(MemoryKernel kernel);

/// Memory-bound kernels of one kind, with all bytes that they read and write.
struct MemoryBound {
  Bytes traffic;
  std::int64_t kernels = 1;  ///< Launches that share the traffic.
  MemoryKernel kind = MemoryKernel::other;
};

}  // namespace hdpsim
