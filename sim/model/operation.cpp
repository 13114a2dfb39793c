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

}  // namespace hdpsim
