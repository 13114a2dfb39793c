#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels {

/// Copies between the memory of a backend and its host's, beside what the backend computes.
class HostCopies {
 public:
  struct Copy {
    void* to = nullptr;
    const void* from = nullptr;
    std::size_t bytes = 0;
  };
  /// When a batch was copied.
  struct Interval {
    Mark begin;
    Mark end;
  };
  enum class Way { to_host, to_device };
  using Ticket = std::uint64_t;

  HostCopies() = default;
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;
  virtual ~HostCopies() = default;

  /// Memory of the host that such copies are fast with. It must not be freed before what was copied from or to it has
  /// been waited for. DeviceError where there is not so much.
  [[nodiscard]] virtual DeviceMemory allocate(std::size_t bytes) = 0;
  /// Starts a batch: after what was queued on the backend before, and after earlier batches of the same way. The memory
  /// belongs to the copies until wait().
  [[nodiscard]] virtual Ticket start(std::vector<Copy> batch, Way way) = 0;
  /// What is queued on the backend from now on comes after a batch and all before it. Every batch is waited for once,
  /// in the order of their starts.
  virtual Interval wait(Ticket ticket) = 0;
};

}  // namespace hdpsim::kernels
