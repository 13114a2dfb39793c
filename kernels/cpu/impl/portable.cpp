#define HDPSIM_CPU_KERNELS portable
#include "kernels/cpu/impl/all_kernels.h"

namespace hdpsim::kernels::cpu {

const KernelTable* portable_kernels() {
  return &portable::table;
}

}  // namespace hdpsim::kernels::cpu
