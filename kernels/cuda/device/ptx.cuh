#pragma once

#include <cstdint>

#include "kernels/cuda/bf16.h"

// The instructions that kernels use and C++ has no word for, one function each. Kernels are headers that say nothing
// else that only nvcc knows (besides __global__, __device__, threadIdx, __syncthreads and the like), so that a test
// without a GPU may compile them with an emulator, which brings functions of the same names
// (tests/support/gpu/emulator.h).
//
// Shared memory is addressed by its 32-bit address, as the instructions do.

#ifdef __CUDACC__

namespace hdpsim::kernels::cuda::ptx {

/// Sixteen bytes, moved by one instruction.
struct alignas(16) Vector16 {
  std::uint32_t word[4];
};

// --- Memory

/// The shared memory of the launch, aligned to 1024 bytes.
__device__ __forceinline__ unsigned char* dynamic_shared() {
  extern __shared__ __align__(1024) unsigned char hdpsim_dynamic_shared[];
  return hdpsim_dynamic_shared;
}
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ Vector16 load16(const void* from) {
  const uint4 v = *static_cast<const uint4*>(from);
  return {{v.x, v.y, v.z, v.w}};
}
/// Loads from memory that no thread writes while the kernel runs.
__device__ __forceinline__ Vector16 load16_constant(const void* from) {
  const uint4 v = __ldg(static_cast<const uint4*>(from));
  return {{v.x, v.y, v.z, v.w}};
}
__device__ __forceinline__ void store16(void* to, const Vector16& v) {
  *static_cast<uint4*>(to) = make_uint4(v.word[0], v.word[1], v.word[2], v.word[3]);
}
__device__ __forceinline__ Vector16 load16_shared(std::uint32_t address) {
  Vector16 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.word[0]), "=r"(v.word[1]), "=r"(v.word[2]), "=r"(v.word[3])
               : "r"(address));
  return v;
}
__device__ __forceinline__ float load_float_shared(std::uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address));
  return value;
}
__device__ __forceinline__ void store16_shared(std::uint32_t address, const Vector16& v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.word[0]), "r"(v.word[1]),
               "r"(v.word[2]), "r"(v.word[3])
               : "memory");
}
__device__ __forceinline__ void store4_shared(std::uint32_t address, std::uint32_t word) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}

/// Copies 16 bytes asynchronously to shared memory; zeros if !valid, and `from` is not read then.
__device__ __forceinline__ void cp_async_16(std::uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(valid ? 16 : 0)
               : "memory");
}
/// The same for 4 bytes.
__device__ __forceinline__ void cp_async_4(std::uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(valid ? 4 : 0)
               : "memory");
}
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits for this thread's groups except the last `pending`. Others see the data behind a barrier.
template <int pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

/// Adds to global memory; no order.
__device__ __forceinline__ void add(float* to, float value) {
  asm volatile("red.global.add.f32 [%0], %1;" ::"l"(__cvta_generic_to_global(to)), "f"(value) : "memory");
}
/// Two neighbours; `to` is aligned to 8 bytes.
__device__ __forceinline__ void add2(float* to, float first, float second) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "f"(first), "f"(second)
               : "memory");
#else
  add(to, first);
  add(to + 1, second);
#endif
}
__device__ __forceinline__ int fetch_add(int* to, int value) {
  return atomicAdd(to, value);
}

// --- Matrices

/// Four 8x8 matrices of 16-bit elements: lane l gives the address of row l % 8 of matrix l / 8 and receives, of each
/// matrix, the elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4.
__device__ __forceinline__ void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
/// The same of the transposed matrices: the elements (2 (l % 4), l / 4) and (2 (l % 4) + 1, l / 4).
__device__ __forceinline__ void ldmatrix_x4_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
/// d[16, 8] += a[16, 16] b[16, 8], bf16 in, fp32 out. With g = lane / 4 and t = lane % 4: a = (g, 2t), (g+8, 2t), (g,
/// 2t+8), (g+8, 2t+8) and the neighbour of each; b = (2t, g), (2t+8, g) and the one below each; d = (g, 2t), (g, 2t+1),
/// (g+8, 2t), (g+8, 2t+1).
__device__ __forceinline__ void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                            std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// --- Numbers

/// Two bf16 in a word, `low` in its lower half, rounded to nearest even.
__device__ __forceinline__ std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
__device__ __forceinline__ float low_bf16(std::uint32_t word) {
  return __uint_as_float(word << 16U);
}
__device__ __forceinline__ float high_bf16(std::uint32_t word) {
  return __uint_as_float(word & 0xFFFF0000U);
}
/// Within 2 ulp; exp2(-inf) = 0.
__device__ __forceinline__ float exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float log2(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
__device__ __forceinline__ float reciprocal_sqrt(float x) {
  return rsqrtf(x);
}
__device__ __forceinline__ float sqrt(float x) {
  return sqrtf(x);
}
__device__ __forceinline__ void sin_cos(float x, float& sine, float& cosine) {
  sincosf(x, &sine, &cosine);
}

// --- Time

/// The clock that all multiprocessors of the device share, in nanoseconds from an unknown origin (PTX ISA,
/// %globaltimer).
__device__ __forceinline__ unsigned long long device_nanoseconds() {
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// --- Registers

/// The same value, hidden from the compiler: computations from it happen here, instead of ahead of a loop where they
/// would occupy registers that the loop needs.
__device__ __forceinline__ int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
__device__ __forceinline__ std::uint32_t opaque(std::uint32_t value) {
  asm volatile("" : "+r"(value));
  return value;
}
template <class T>
__device__ __forceinline__ T* opaque(T* pointer) {
  asm volatile("" : "+l"(pointer));
  return pointer;
}

// --- Lanes and threads; all lanes of the warp take part

__device__ __forceinline__ float shuffle_xor(float value, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFU, value, mask);
}
__device__ __forceinline__ std::uint32_t shuffle_xor(std::uint32_t value, int mask) {
  return __shfl_xor_sync(0xFFFFFFFFU, value, mask);
}
__device__ __forceinline__ float shuffle(float value, int lane) {
  return __shfl_sync(0xFFFFFFFFU, value, lane);
}
__device__ __forceinline__ int shuffle(int value, int lane) {
  return __shfl_sync(0xFFFFFFFFU, value, lane);
}
__device__ __forceinline__ bool any(bool condition) {
  return __any_sync(0xFFFFFFFFU, condition) != 0;
}

/// Barrier `id` (1 ... 15; 0 is __syncthreads) of `threads` threads, a multiple of 32. arrive() does not wait.
__device__ __forceinline__ void barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ __forceinline__ void barrier_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace hdpsim::kernels::cuda::ptx

#endif
