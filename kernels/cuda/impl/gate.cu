#include "kernels/cuda/impl/gated_timer.h"

#include "kernels/cuda/device/ptx.cuh"

namespace hdpsim::kernels::cuda {
namespace {

__global__ void spin(const volatile int* opened, int gate, unsigned long long limit_ns) {
  const unsigned long long begin = ptx::device_nanoseconds();
  while (*opened < gate && ptx::device_nanoseconds() - begin < limit_ns) {
    __nanosleep(200);
  }
}

}  // namespace

Gate::Gate() : opened_(allocate_pinned(sizeof(int))) {
  *static_cast<volatile int*>(opened_.get()) = 0;
}

void Gate::close(cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(static_cast<const volatile int*>(opened_.get()), ++closed_,
                            static_cast<unsigned long long>(time_limit.count()));
  check(cudaGetLastError(), "the launch of a gate");
}

void Gate::open() {
  *static_cast<volatile int*>(opened_.get()) = closed_;
}

}  // namespace hdpsim::kernels::cuda
