#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/bf16.h"

/// Runs kernels written for a GPU on a CPU, to check their logic where there is no GPU.
///
/// A test includes this header and then the very headers that nvcc compiles. Every thread of a block is a fiber with a
/// stack of its own; blocks run one after another. What a GPU does behind a thread's back happens as late as it may: a
/// cp.async lands when it is waited for and leaves NaN until then, shared memory is NaN at first. Lanes that do not
/// meet at a warp instruction, shared addresses out of range and blocks that cannot go on end the launch with a Failure
/// that says who waits for what. Says nothing about speed, apart from bank conflicts, which it counts.
namespace hdpsim::emulator {

struct Index3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

class Failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Counts of a launch.
struct Statistics {
  std::int64_t ldmatrix = 0;
  std::int64_t ldmatrix_conflicts = 0;  ///< Extra passes that shared memory needs because rows meet in a bank.
  std::int64_t mma = 0;
};

/// Runs `kernel` once a thread. `seed` sets the order in which threads get their turn, so that a missing barrier shows
/// for some seed: 0 side by side, even seeds side by side in a random order, odd seeds one warp as far ahead of the
/// others as barriers let it. Throws Failure.
Statistics launch(Index3 grid, unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel,
                  std::uint64_t seed = 0);

// --- The parts of instructions (called by the kernel's threads)

/// Lets other threads run until `ready`. `what` is what the thread reports to wait for if it waits for ever.
template <class Ready>
void yield_until(const char* what, Ready ready);

/// The threads that execute an instruction together: 32 of a warp or 128 of a warpgroup.
struct Group;
[[nodiscard]] Group& warp();
[[nodiscard]] Group& warpgroup();
[[nodiscard]] unsigned index_in(const Group& group);

/// All threads of the group bring an operand; the last to arrive performs the instruction for all:
/// perform(span of pointers to the operands, by thread of the group).
template <class Operand, class Perform>
void together(Group& group, const char* instruction, Operand& operand, Perform perform);

/// `bytes` of shared memory at a 32-bit shared address; Failure where they are not the launch's or not aligned.
[[nodiscard]] unsigned char* shared_memory(std::uint32_t address, std::size_t bytes, std::size_t alignment);
[[nodiscard]] Statistics& statistics();

// --- Implementation of the templates

void wait(const char* what, bool (*ready)(const void*), const void* argument);
/// Deposits an operand; true for the last to arrive, who performs and then calls leave().
bool arrive(Group& group, const char* instruction, void* operand);
[[nodiscard]] std::span<void* const> operands(const Group& group);
void leave(Group& group);

template <class Ready>
void yield_until(const char* what, Ready ready) {
  if (!ready()) {
    wait(
        what, [](const void* argument) { return (*static_cast<const Ready*>(argument))(); }, &ready);
  }
}

template <class Operand, class Perform>
void together(Group& group, const char* instruction, Operand& operand, Perform perform) {
  if (arrive(group, instruction, &operand)) {
    perform(operands(group));
    leave(group);
  }
}

}  // namespace hdpsim::emulator

// --- The built-in names of CUDA C++

// NOLINTBEGIN(bugprone-reserved-identifier): the names are those of CUDA.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __grid_constant__

extern hdpsim::emulator::Index3 threadIdx;
extern hdpsim::emulator::Index3 blockIdx;
extern hdpsim::emulator::Index3 blockDim;
extern hdpsim::emulator::Index3 gridDim;

void __syncthreads();
void __syncwarp();
// NOLINTEND(bugprone-reserved-identifier)

namespace hdpsim::kernels::cuda::ptx {

struct alignas(16) Vector16 {
  std::uint32_t word[4];
};

unsigned char* dynamic_shared();
std::uint32_t shared_address(const void* pointer);
Vector16 load16(const void* from);
Vector16 load16_constant(const void* from);
void store16(void* to, const Vector16& v);
Vector16 load16_shared(std::uint32_t address);
float load_float_shared(std::uint32_t address);
void store16_shared(std::uint32_t address, const Vector16& v);
void store4_shared(std::uint32_t address, std::uint32_t word);

void cp_async_16(std::uint32_t to, const void* from, bool valid);
void cp_async_4(std::uint32_t to, const void* from, bool valid);
void cp_async_commit();
void cp_async_wait_for(int pending);
template <int pending>
void cp_async_wait() {
  cp_async_wait_for(pending);
}

void add(float* to, float value);
void add2(float* to, float first, float second);
int fetch_add(int* to, int value);

void ldmatrix_x4(std::uint32_t (&r)[4], std::uint32_t address);
void ldmatrix_x4_transposed(std::uint32_t (&r)[4], std::uint32_t address);
void mma_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);

std::uint32_t pack_bf16(float low, float high);
float low_bf16(std::uint32_t word);
float high_bf16(std::uint32_t word);
float exp2(float x);
float log2(float x);
float reciprocal_sqrt(float x);
float sqrt(float x);
void sin_cos(float x, float& sine, float& cosine);

inline int opaque(int value) {
  return value;
}
inline std::uint32_t opaque(std::uint32_t value) {
  return value;
}
template <class T>
T* opaque(T* pointer) {
  return pointer;
}

float shuffle_xor(float value, int mask);
std::uint32_t shuffle_xor(std::uint32_t value, int mask);
float shuffle(float value, int lane);
int shuffle(int value, int lane);
bool any(bool condition);

void barrier_sync(int id, int threads);
void barrier_arrive(int id, int threads);

}  // namespace hdpsim::kernels::cuda::ptx
