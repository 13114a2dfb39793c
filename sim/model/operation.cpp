#include "sim/model/operation.h"

namespace hdpsim {

static_assert(memory_kernels == static_cast<std::size_t>(MemoryKernel::adam) + 1, "adam is the last of the kernels");

std::string_view memory_kernel_name(MemoryKernel kernel) {
  switch (kernel) {
    case MemoryKernel::other:
      return "other";
    case MemoryKernel::rms_norm_forward:
      return "rms_norm_forward";
    case MemoryKernel::rms_norm_backward:
      return "rms_norm_backward";
    case MemoryKernel::rope:
      return "rope";
    case MemoryKernel::swiglu_forward:
      return "swiglu_forward";
    case MemoryKernel::swiglu_backward:
      return "swiglu_backward";
    case MemoryKernel::add:
      return "add";
    case MemoryKernel::embedding_forward:
      return "embedding_forward";
    case MemoryKernel::cross_entropy:
      return "cross_entropy";
    case MemoryKernel::fp32_loss:
      return "fp32_loss";
    case MemoryKernel::adam:
      return "adam";
  }
  return "";
}

double pairs_of(const AttentionBlock& block) {
  const auto queries = static_cast<double>(block.queries);
  const auto keys = static_cast<double>(block.keys);
  const double area = block.mask == Mask::causal ? queries * (queries + 1) / 2 : queries * keys;
  return static_cast<double>(block.count) * area;
}

double pairs_of(const Attention& launch) {
  double pairs = 0;
  for (const AttentionBlock& block : launch.blocks) pairs += pairs_of(block);
  return pairs;
}

Flops flops_of(const Gemm& product) {
  return Flops(2.0 * static_cast<double>(product.count) * static_cast<double>(product.m) *
               static_cast<double>(product.n) * static_cast<double>(product.k));
}

Flops attention_flops(std::int64_t columns, double pairs, Direction direction) {
  const Flops forward(2 * static_cast<double>(columns) * pairs);
  return direction == Direction::forward ? forward : backward_attention * forward;
}

Flops flops_of(const Attention& launch) {
  return attention_flops(2 * launch.heads * launch.head_dim, pairs_of(launch), launch.direction);
}

}  // namespace hdpsim
