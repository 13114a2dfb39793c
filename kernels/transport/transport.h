#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/spec/error.h"

namespace hdpsim::kernels {

/// One message of a group.
struct Send {
  int peer = 0;
  const void* data = nullptr;
  std::size_t bytes = 0;
};
struct Receive {
  int peer = 0;
  void* data = nullptr;
  std::size_t bytes = 0;
};

/// Identifies a started group of messages.
using Ticket = std::uint64_t;

/// Moves messages between the ranks of one job. Each rank has one object, which belongs to one thread.
///
/// Order on a device: the messages of start() move after all work that was queued on the backend before, on both ends;
/// work queued after wait() sees the received data. The queue of a CPU is the program itself: there wait() blocks.
/// Messages between two ranks match in the order in which they were started; several groups may be under way. Within
/// one group, sends and receives have no order, so that no ring can deadlock.
///
/// DeviceError if a peer died, if sizes do not match, or if nothing moved for the time limit: the message says which
/// rank waits for which, with how many bytes.
class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;

  /// Starts all messages of a group and returns at once. The buffers belong to the transport until wait(). A message to
  /// the rank itself is a copy.
  [[nodiscard]] virtual Ticket start(std::span<const Send> sends, std::span<const Receive> receives) = 0;
  virtual void wait(Ticket ticket) = 0;
  /// Moves messages as far as possible without waiting. Transports with an engine of their own do nothing.
  virtual void progress() = 0;

  // Collectives over all ranks, in the same order on each. Sums are fp32, added in the order of ranks on the in-process
  // transport. Ordered with other work as wait() is.
  virtual void all_reduce(float* data, std::size_t count) = 0;
  virtual void all_gather(const void* mine, void* all, std::size_t bytes_per_rank) = 0;
  virtual void reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) = 0;
  virtual void all_to_all(const void* from, void* to, std::size_t bytes_per_rank) = 0;
  virtual void barrier() = 0;
};

/// How long a transport waits for a peer without progress before it gives up.
inline constexpr std::chrono::seconds default_time_limit{60};

}  // namespace hdpsim::kernels
