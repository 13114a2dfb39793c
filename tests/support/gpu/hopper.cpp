#include "tests/support/gpu/hopper.h"

#include <map>

#include "tests/support/gpu/hopper_units.h"

namespace hdpsim::emulator {
namespace {

/// The bits of an address that say which row of eight also move the chunk within its row.
std::uint32_t swizzled(std::uint32_t address) {
  return address ^ ((address >> 3U) & 0x70U);
}

struct HopperBlock {
  std::map<std::uint64_t, std::uint64_t> lingered;  // by warp: times that a lane may have
  std::uint64_t seed = 0;
  unsigned left = 0;
};
HopperBlock state;

void begin_block(std::uint64_t seed) {
  state = {.lingered = {}, .seed = seed, .left = 0};
  copy_engine::begin_block(seed % 2 == 1);
  tensor_cores::begin_block();
}

void leave_kernel() {
  copy_engine::end_thread();
  tensor_cores::end_thread();
  if (++state.left == blockDim.x) copy_engine::end_block();
}

}  // namespace

unsigned char* swizzled_chunk(std::uint32_t address) {
  return shared_memory(swizzled(address), chunk_bytes, chunk_bytes);
}

void linger() {
  if (state.seed == 0) return;
  const std::uint64_t warp = threadIdx.x / 32;
  const std::uint64_t times = state.lingered[warp]++ / 32;
  const std::uint64_t mixed = (state.seed * 0x9E3779B97F4A7C15U ^ (warp << 32U) ^ times) * 0xD6E8FEB86659FD93U;
  if ((mixed >> 40U) % 16 != 0) return;
  constexpr int turns = 100;
  const auto at_once = [](const void*) { return true; };
  for (int i = 0; i < turns; ++i) wait("nothing", at_once, nullptr);
}

Statistics launch_hopper(Index3 grid, unsigned threads, std::size_t shared_bytes, const std::function<void()>& kernel,
                         std::uint64_t seed) {
  begin_block(seed);
  const auto in_state = [&] {
    if (state.left == blockDim.x) begin_block(seed);
    kernel();
    leave_kernel();
  };
  return launch(grid, threads, shared_bytes, in_state, seed);
}

}  // namespace hdpsim::emulator
