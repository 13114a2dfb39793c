#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "sim/model/operation.h"
#include "sim/profiler/profiler_readers.h"

namespace hdpsim {

/// One matrix product.
struct TracedProduct {
  Gemm op;
  std::int64_t element_bytes = 2;  ///< Of what is multiplied.
  friend auto operator<=>(const TracedProduct&, const TracedProduct&) = default;
};

/// One launch of attention over `count` equal sequences. The causal mask only with as many queries as keys.
struct TracedAttention {
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t count = 1;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  Mask mask = Mask::full;
  Direction direction = Direction::forward;
  friend auto operator<=>(const TracedAttention&, const TracedAttention&) = default;
};

/// One kernel that memory bounds.
struct TracedTraffic {
  std::string kernel;      ///< The name that profiles have for it, or PyTorch's.
  std::int64_t bytes = 0;  ///< Read and written.
  friend auto operator<=>(const TracedTraffic&, const TracedTraffic&) = default;
};

/// What the kernels of one operation of a framework compute; std::monostate: the trace does not tell.
using OperationShape = std::variant<std::monostate, TracedProduct, TracedAttention, TracedTraffic>;

/// The shape of an operation ("cpu_op") by its name and its recorded inputs: products (aten::mm, addmm, linear, ...,
/// Linear of Transformer Engine), attention (scaled_dot_product_*, _flash_attention_*, flash_attn, FlashAttention-3)
/// and element-wise operations. std::monostate for other operations, and where inputs leave open what was computed:
/// packed documents of unknown lengths, a mask that was not recorded, types that are not known, batched products.
[[nodiscard]] OperationShape shape_of(const ProfilerEvent& operation);

/// Bytes of an element of this type, by the names of PyTorch's tensors ("c10::BFloat16") and of its collectives
/// ("BFloat16"); 0: unknown.
[[nodiscard]] std::int64_t bytes_of_type(std::string_view type);

}  // namespace hdpsim
