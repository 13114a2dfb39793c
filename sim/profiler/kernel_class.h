#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/profile/measured_samples.h"

namespace hdpsim {

/// What a kernel of a training step does, as far as its name says.
enum class KernelClass : std::uint8_t {
  attention_forward,
  attention_backward,
  product,       ///< Matrix products, and the sums of their split parts.
  collective,    ///< Collectives and messages: NCCL, RCCL, DeepEP, symmetric memory.
  memory_bound,  ///< Norms, activations, optimizers, casts, reductions, copies by kernels: they take as long as bytes.
  copy,          ///< By copy engines.
  fill,          ///< By copy engines.
  unknown,
};
inline constexpr std::size_t kernel_classes = 8;
/// The name for people: "attention forward", "products", ...
[[nodiscard]] std::string_view kernel_class_name(KernelClass kind);

/// The class of a kernel, and the word for kernels like it within the class: "cuBLAS", "norm", "optimizer".
struct KernelKind {
  KernelClass kind = KernelClass::unknown;
  std::string_view word;
};

/// What the name of a kernel says, demangled or not, of PyTorch, Apex, Transformer Engine, FlashAttention, cuDNN,
/// cuBLAS, CUTLASS, Triton, Composable Kernel, NCCL and others: the first row of the one table (kernel_class.cpp) of
/// which it holds the text. Case counts.
[[nodiscard]] KernelKind kernel_kind(std::string_view name);

/// The kind of a collective or message by the name of an NCCL kernel (ncclDevKernel_AllGather_RING_LL) or by PyTorch's
/// name of the operation (_allgather_base, reduce_scatter_tensor_coalesced). Empty for kinds that training here does
/// not use (broadcast, reduce, gather) and for names that say nothing.
[[nodiscard]] std::optional<MessageKind> message_kind_of(std::string_view name);

}  // namespace hdpsim
