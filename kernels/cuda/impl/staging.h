#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "kernels/cuda/impl/runtime.h"
#include "kernels/cuda/impl/table_slots.h"

namespace hdpsim::kernels::cuda {

/// Small tables on their way to the device, and the scratch memory of launches: Launch::stage and Launch::scratch of
/// one stream. Memory comes in few, growing pieces, because CUDA may wait for the device to allocate any. A table that
/// is staged again and again is in pinned memory already: nothing waits for its last copy.
class Staging {
 public:
  /// `before_waiting` is called before anything that may wait for the stream.
  Staging(cudaStream_t stream, std::function<void()> before_waiting);

  [[nodiscard]] const void* stage(const void* host, std::size_t bytes);
  [[nodiscard]] void* scratch(std::size_t bytes);

 private:
  struct Slot {
    PinnedMemory host;
    RawDeviceMemory device;
    std::size_t capacity = 0;
    EventHandle copied;
  };
  /// The slot whose pinned memory now holds the table.
  [[nodiscard]] std::size_t put(std::span<const std::byte> table);
  static void reserve(Slot& slot, std::size_t bytes);
  void wait_for_stream();

  static constexpr std::size_t slot_count = 16;

  cudaStream_t stream_;
  std::function<void()> before_waiting_;
  TableSlots tables_{slot_count};
  std::vector<Slot> slots_{slot_count};
  RawDeviceMemory scratch_;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace hdpsim::kernels::cuda
