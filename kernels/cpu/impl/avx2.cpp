#ifdef __AVX2__
#define HDPSIM_CPU_KERNELS avx2
#include "kernels/cpu/impl/all_kernels.h"
#else
#include "kernels/cpu/impl/kernel_table.h"
#endif

namespace hdpsim::kernels::cpu {

const KernelTable* avx2_kernels() {
#ifdef __AVX2__
  return &avx2::table;
#else
  return nullptr;
#endif
}

}  // namespace hdpsim::kernels::cpu
