#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "kernels/transport/transport.h"

namespace hdpsim::kernels::cuda {

/// The operations that a transport needs of a library of device communication; NCCL is the only one. They are queued on
/// the stream that the communicator was made with, in the same order on all ranks. DeviceError if the library refuses.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Messages as one group, without an order among them.
  virtual void exchange(std::span<const Send> sends, std::span<const Receive> receives) = 0;
  virtual void all_reduce(float* data, std::size_t count) = 0;
  virtual void all_gather(const void* mine, void* all, std::size_t bytes_per_rank) = 0;
  virtual void reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) = 0;

  /// An asynchronous failure, if there is one. May be called from any thread.
  [[nodiscard]] virtual std::optional<std::string> failure() = 0;
  /// Ends all queued operations, wherever they are stuck. Nothing else may be called afterwards.
  virtual void abort() = 0;
};

}  // namespace hdpsim::kernels::cuda
