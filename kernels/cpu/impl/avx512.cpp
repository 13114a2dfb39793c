#ifdef __AVX512F__
#define HDPSIM_CPU_KERNELS avx512
#include "kernels/cpu/impl/all_kernels.h"
#else
#include "kernels/cpu/impl/kernel_table.h"
#endif

namespace hdpsim::kernels::cpu {

const KernelTable* avx512_kernels() {
#ifdef __AVX512F__
  return &avx512::table;
#else
  return nullptr;
#endif
}

}  // namespace hdpsim::kernels::cpu
