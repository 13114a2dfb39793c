#pragma once

#include <cstdint>

#include "kernels/cuda/bf16.h"
#include "kernels/cuda/device/ptx.cuh"

// The instructions of Hopper (sm_90a): barriers in shared memory that count bytes, copies of boxes of a tensor by the
// copy engine (TMA), products by a warpgroup (four warps) straight from shared memory. Without nvcc,
// tests/support/gpu/hopper.h brings functions of the same names.
//
// The copy engine and wgmma reach shared memory through a proxy of their own, the async proxy. What threads store for
// it goes through store16_for_async() and store_matrix_for_async(), then fence_async(), then a barrier.

namespace hdpsim::kernels::cuda::ptx {

/// The copy engine's description of a tensor, made by the host (kernels/cuda/hopper/tensor_map.h). A kernel gets it in
/// its arguments.
#ifdef __CUDACC__
struct alignas(64) TensorMap {
#else
struct TensorMap {
#endif
  std::uint64_t opaque[16];
};

/// How an operand of wgmma lies in shared memory: its depth (the dimension that is summed over) along the rows of 128
/// bytes, or across them.
enum class Depth { along_rows, across_rows };

/// Describes an operand that begins at shared address 16 `start` of a matrix of 128-byte rows, swizzled as TMA does: in
/// each group of eight rows (1024 bytes, so aligned) chunk c, 16 bytes, of row r lies at place c ^ r. Groups of eight
/// rows follow each other. From 64 columns to the next 64 of an operand whose depth is across rows it is 16 `panel`
/// bytes.
[[nodiscard]] HDPSIM_ANYWHERE std::uint64_t operand_descriptor(std::uint32_t start, std::uint32_t panel) {
  // Fields (PTX ISA, "matrix descriptor"), offsets in units of 16 bytes: 0-13 start, 16-29 leading and 32-45 stride
  // byte offset, 62-63 swizzle (1: 128 bytes). The leading offset is not read where the depth is along rows.
  constexpr std::uint32_t upper = (1U << 30U) | (1024 / 16);
  return (std::uint64_t{upper} << 32U) | (start + (panel << 16U));
}

}  // namespace hdpsim::kernels::cuda::ptx

#ifdef __CUDACC__

namespace hdpsim::kernels::cuda::ptx {

// --- Roles

/// Registers of each thread of the warpgroup from here on, a multiple of 8.
template <int registers>
__device__ __forceinline__ void give_registers_back() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ __forceinline__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

// --- Barriers in shared memory, 8 bytes each

/// A phase is over after `arrivals` arrivals and when all bytes that they announced have come. Made known to other
/// threads and the copy engine by fence_mbarrier_init() and __syncthreads().
__device__ __forceinline__ void mbarrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// Earlier writes of this thread are visible to those who wait for the phase.
__device__ __forceinline__ void mbarrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives and announces bytes of the copy engine.
__device__ __forceinline__ void mbarrier_arrive_expecting(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
/// Waits for the end of the phase of this parity: phases alternate 0, 1, 0, ... A fresh barrier counts as one whose
/// phase of parity 1 is over.
__device__ __forceinline__ void mbarrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred over;\n"
      "AGAIN:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@over bra DONE;\n"
      "bra AGAIN;\n"
      "DONE:\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// Stores of this thread to shared memory are visible to the async proxy after the next barrier.
__device__ __forceinline__ void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ __forceinline__ void store16_for_async(std::uint32_t address, const Vector16& v) {
  store16_shared(address, v);
}
__device__ __forceinline__ void store8_for_async(std::uint32_t address, float first, float second) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(first), "f"(second) : "memory");
}
/// Four 8x8 matrices of 16-bit elements: lane l gives the address of row l % 8 of matrix l / 8 and holds, of each
/// matrix, the elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4.
__device__ __forceinline__ void store_matrix_for_async(std::uint32_t address, const std::uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]), "r"(r[1]),
               "r"(r[2]), "r"(r[3])
               : "memory");
}

// --- Copy engine; one thread calls these

/// Copies the map's box at (column, row) of a tensor to shared memory, swizzled as operand_descriptor() says; what lies
/// outside of the tensor becomes zeros. All bytes of the box count for the barrier.
__device__ __forceinline__ void load_box(std::uint32_t to, const TensorMap& map, int column, int row,
                                         std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::
          "r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}
/// Adds a box of fp32, swizzled likewise, to a tensor; what lies outside of the tensor is left out.
__device__ __forceinline__ void add_box(const TensorMap& map, int column, int row, std::uint32_t from) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),
      "r"(column), "r"(row), "r"(from)
      : "memory");
}
__device__ __forceinline__ void commit_boxes() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Waits until this thread's added boxes have been read from shared memory.
__device__ __forceinline__ void wait_for_boxes_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
/// Waits until they have been added.
__device__ __forceinline__ void wait_for_boxes() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// --- Products of a warpgroup; all of its threads take part
//
// d [64, n] (+)= a [64, 16] b [16, n], bf16 in, fp32 out. Warp w of the warpgroup holds rows 16 w to 16 w + 15, as
// mma_16x8x16 does: with g = lane / 4 and t = lane % 4, d[j] are (g, 8j + 2t), (g, 8j + 2t + 1), (g + 8, 8j + 2t), (g +
// 8, 8j + 2t + 1) and a in registers is (g, 2t), (g+8, 2t), (g, 2t+8), (g+8, 2t+8) and the neighbour of each.
//
// Runs behind the threads' back: registers d and a may not be touched, nor shared memory be overwritten, until
// wgmma_wait() says so. wgmma_fence() comes first whenever registers were touched since the last product.

namespace detail {

template <int n>
__device__ __forceinline__ void pin(float (&d)[n][4]) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+f"(d[j][e]));
  }
}
template <int n>
__device__ __forceinline__ void pin(std::uint32_t (&a)[n][4]) {
#pragma unroll
  for (int j = 0; j < n; ++j) {
#pragma unroll
    for (int e = 0; e < 4; ++e) asm volatile("" : "+r"(a[j][e]));
  }
}

}  // namespace detail

/// Names the registers that the next products use, so that the compiler has written them.
template <class... Registers>
__device__ __forceinline__ void wgmma_fence(Registers&... registers) {
  (detail::pin(registers), ...);
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ __forceinline__ void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits for all groups of products but the last `pending`. Names the registers that are free to touch from here on.
template <int pending, class... Registers>
__device__ __forceinline__ void wgmma_wait(Registers&... registers) {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
  (detail::pin(registers), ...);
}

/// Both operands in shared memory; add: d += a b, else d = a b.
template <Depth a_depth, Depth b_depth>
__device__ __forceinline__ void wgmma(float (&d)[8][4], std::uint64_t a, std::uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31 "
      "}, %32, %33, add, 1, 1, %35, %36;\n"
      "}"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]),
        "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]),
        "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]),
        "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]), "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
        "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3])
      : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(a_depth == Depth::across_rows ? 1 : 0),
        "n"(b_depth == Depth::across_rows ? 1 : 0));
}
template <Depth a_depth, Depth b_depth>
__device__ __forceinline__ void wgmma(float (&d)[16][4], std::uint64_t a, std::uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
      "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63 "
      "}, %64, %65, add, 1, 1, %67, %68;\n"
      "}"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]),
        "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]),
        "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]),
        "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]), "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
        "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]), "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]),
        "+f"(d[8][3]), "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]), "+f"(d[10][0]), "+f"(d[10][1]),
        "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]), "+f"(d[12][0]),
        "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
        "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]), "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]),
        "+f"(d[15][3])
      : "l"(a), "l"(b), "r"(static_cast<int>(add)), "n"(a_depth == Depth::across_rows ? 1 : 0),
        "n"(b_depth == Depth::across_rows ? 1 : 0));
}
/// a in registers.
template <Depth b_depth>
__device__ __forceinline__ void wgmma(float (&d)[8][4], const std::uint32_t (&a)[4], std::uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31 "
      "}, {%32, %33, %34, %35}, %36, add, 1, 1, %38;\n"
      "}"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]),
        "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]),
        "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]),
        "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]), "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
        "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)),
        "n"(b_depth == Depth::across_rows ? 1 : 0));
}
template <Depth b_depth>
__device__ __forceinline__ void wgmma(float (&d)[16][4], const std::uint32_t (&a)[4], std::uint64_t b, bool add) {
  asm volatile(
      "{\n"
      ".reg .pred add;\n"
      "setp.ne.b32 add, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "
      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, "
      "%42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, "
      "%62, %63 "
      "}, {%64, %65, %66, %67}, %68, add, 1, 1, %70;\n"
      "}"
      : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]),
        "+f"(d[1][3]), "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]),
        "+f"(d[3][2]), "+f"(d[3][3]), "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]),
        "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]), "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]),
        "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]), "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]),
        "+f"(d[8][3]), "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]), "+f"(d[10][0]), "+f"(d[10][1]),
        "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]), "+f"(d[11][3]), "+f"(d[12][0]),
        "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]), "+f"(d[13][2]), "+f"(d[13][3]),
        "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]), "+f"(d[15][0]), "+f"(d[15][1]), "+f"(d[15][2]),
        "+f"(d[15][3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(add)),
        "n"(b_depth == Depth::across_rows ? 1 : 0));
}

}  // namespace hdpsim::kernels::cuda::ptx

#endif
