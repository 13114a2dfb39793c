#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/spec/backend.h"

namespace hdpsim::kernels {

/// Copies between the memory of a backend and its host's, which overlap with the backend's computation.
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

  /// Memory of the host that such copies access fast. It must not be freed before all copies from or to it have been
  /// waited for. DeviceError if there is not as much.
  [[nodiscard]] virtual DeviceMemory allocate(std::size_t bytes) = 0;
  /// Starts a batch, ordered after what is already queued on the backend and after earlier batches of the same
  /// direction. The memory belongs to the copies until wait().
  [[nodiscard]] virtual Ticket start(std::vector<Copy> batch, Way way) = 0;
  /// Orders all later work on the backend after a batch and all earlier ones. Every batch is waited for once, in the
  /// order of their starts.
  virtual Interval wait(Ticket ticket) = 0;
};

}  // namespace hdpsim::kernels
