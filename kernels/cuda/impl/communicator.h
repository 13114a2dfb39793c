#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "kernels/transport/transport.h"

namespace hdpsim::kernels::cuda {

/// What a transport needs of a library of device communication, of which NCCL is the one. Operations are queued on the
/// stream that the communicator was made with, in the same order on all ranks. DeviceError where the library refuses.
class Communicator {
 public:
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;
  virtual ~Communicator() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// As one group: no order among the messages.
  virtual void exchange(std::span<const Send> sends, std::span<const Receive> receives) = 0;
  virtual void all_reduce(float* data, std::size_t count) = 0;
  virtual void all_gather(const void* mine, void* all, std::size_t bytes_per_rank) = 0;
  virtual void reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) = 0;

  /// What has gone wrong since, behind the caller's back. Of any thread.
  [[nodiscard]] virtual std::optional<std::string> failure() = 0;
  /// Ends what is queued, wherever it is stuck. Nothing else may be called afterwards.
  virtual void abort() = 0;
};

}  // namespace hdpsim::kernels::cuda
