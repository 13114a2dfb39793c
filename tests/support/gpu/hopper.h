#pragma once

#include "kernels/cuda/device/hopper.cuh"
#include "kernels/cuda/hopper/tensor_map.h"
#include "tests/support/gpu/emulator.h"

/// The instructions of Hopper (kernels/cuda/device/hopper.cuh) for the emulator, as late as their rules allow:
///
/// - boxes of the copy engine land when somebody waits for them and could go on otherwise; NaN lies there until then;
/// - products of a warpgroup read shared memory and write their registers when each of its warps waits for them.
///   Registers that were touched in between end the launch, and so do products that no fence precedes;
/// - what was stored for the async proxy is in shared memory when fence_async() has been called;
/// - boxes that are added are read from shared memory when that is waited for.
///
/// With an odd seed the copy engine does everything at once instead, and with any seed but 0 warps linger now and then,
/// so that others run ahead of them.
///
/// Operands are found through the descriptors, bit by bit as the PTX ISA defines them.
namespace hdpsim::emulator {

/// launch() for kernels that use these instructions.
Statistics launch_hopper(Index3 grid, unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel,
                         std::uint64_t seed = 0);

/// The same as the driver's cuTensorMapEncodeTiled.
[[nodiscard]] kernels::cuda::ptx::TensorMap tensor_map(const kernels::cuda::hopper::TensorShape& shape);

/// The operands of one lane for a product of a warp; n / 8 x 4 accumulators per lane.
struct WgmmaLane {
  int n;
  float* d;
  const std::uint32_t* a_registers;  ///< Null: a_descriptor is used.
  std::uint64_t a_descriptor;
  kernels::cuda::ptx::Depth a_depth;
  std::uint64_t b_descriptor;
  kernels::cuda::ptx::Depth b_depth;
  bool add;
};
void wgmma(WgmmaLane lane);
void wgmma_wait_for(int pending);

}  // namespace hdpsim::emulator

namespace hdpsim::kernels::cuda::ptx {

template <int registers>
void give_registers_back() {}
template <int registers>
void take_registers() {}

void mbarrier_init(std::uint32_t barrier, std::uint32_t arrivals);
inline void fence_mbarrier_init() {}
void mbarrier_arrive(std::uint32_t barrier);
void mbarrier_arrive_expecting(std::uint32_t barrier, std::uint32_t bytes);
void mbarrier_wait(std::uint32_t barrier, std::uint32_t parity);

void fence_async();
void store16_for_async(std::uint32_t address, const Vector16& v);
void store8_for_async(std::uint32_t address, float first, float second);
void store_matrix_for_async(std::uint32_t address, const std::uint32_t (&r)[4]);

void load_box(std::uint32_t to, const TensorMap& map, int column, int row, std::uint32_t barrier);
void add_box(const TensorMap& map, int column, int row, std::uint32_t from);
void commit_boxes();
void wait_for_boxes_read();
void wait_for_boxes();

void fence_products();
void commit_products();
template <class... Registers>
void wgmma_fence(Registers&...) {
  fence_products();
}
inline void wgmma_commit() {
  commit_products();
}
template <int pending, class... Registers>
void wgmma_wait(Registers&...) {
  emulator::wgmma_wait_for(pending);
}
template <Depth a_depth, Depth b_depth, int n8>
void wgmma(float (&d)[n8][4], std::uint64_t a, std::uint64_t b, bool add) {
  emulator::wgmma({8 * n8, &d[0][0], nullptr, a, a_depth, b, b_depth, add});
}
template <Depth b_depth, int n8>
void wgmma(float (&d)[n8][4], const std::uint32_t (&a)[4], std::uint64_t b, bool add) {
  emulator::wgmma({8 * n8, &d[0][0], a, 0, Depth::along_rows, b, b_depth, add});
}

}  // namespace hdpsim::kernels::cuda::ptx
