#pragma once

#include <cstddef>
#include <cstdint>

/// The interface between the units of the emulated Hopper. Every thread belongs to one block at a time, whose state the
/// units keep.
namespace hdpsim::emulator {

inline constexpr std::size_t chunk_bytes = 16;  ///< Unit that a swizzle moves.

/// A chunk of shared memory where the swizzle of 128 bytes puts it.
[[nodiscard]] unsigned char* swizzled_chunk(std::uint32_t address);

/// Sometimes gives the other threads many turns. The choice is the same for all lanes, unless they have diverged.
void linger();

/// Barriers, boxes and stores of the async proxy.
namespace copy_engine {

/// Eager: everything happens at once, and not as late as it may.
void begin_block(bool eager);
/// Failure where this thread leaves something under way.
void end_thread();
/// Failure where the block does.
void end_block();

}  // namespace copy_engine

/// Products of warpgroups.
namespace tensor_cores {

void begin_block();
/// Failure where this thread leaves something under way.
void end_thread();

}  // namespace tensor_cores
}  // namespace hdpsim::emulator
