#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "kernels/cuda/impl/communicator.h"
#include "kernels/cuda/impl/exchange_watch.h"
#include "kernels/cuda/impl/queues.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::cuda {

/// A transport over a communicator whose operations run on queue `out`: they start after earlier compute work, and
/// compute work queued after wait() starts after them. No call waits for the device.
///
/// A thread watches: if an operation is stuck for the limit, or the communicator reports a failure, it aborts the
/// communicator, which frees the queue, and every later call throws a DeviceError with the reason.
class CommunicatorTransport final : public Transport {
 public:
  CommunicatorTransport(std::unique_ptr<Communicator> communicator, Backend& backend, Queues& queues,
                        std::chrono::milliseconds limit);
  ~CommunicatorTransport() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return size_; }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override;
  void wait(Ticket ticket) override;
  void progress() override;

  void all_reduce(float* data, std::size_t count) override;
  void all_gather(const void* mine, void* all, std::size_t bytes_per_rank) override;
  void reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) override;
  void all_to_all(const void* from, void* to, std::size_t bytes_per_rank) override;
  void barrier() override;

 private:
  /// Queues an operation between two events; `text` names what it waits for.
  [[nodiscard]] Event queue(const std::string& text, const std::function<void(Communicator&)>& operation);
  void collective(const char* name, const std::function<void(Communicator&)>& operation);
  void require_whole() const;
  void watch(const std::stop_token& stop);
  /// The failure so far; empty if there is none.
  [[nodiscard]] std::optional<std::string> fault();
  void fail(const std::string& reason);
  [[nodiscard]] std::string exchange_text(std::span<const Send> sends, std::span<const Receive> receives) const;

  std::unique_ptr<Communicator> communicator_;
  Queues& queues_;
  const int rank_;
  const int size_;
  const std::chrono::milliseconds limit_;
  DeviceMemory barrier_word_;
  Ticket next_ticket_ = 1;
  std::map<Ticket, Event> exchanges_;

  std::mutex mutex_;  // guards the communicator, the watch and the failure
  ExchangeWatch watch_;
  std::optional<std::string> failure_;
  std::condition_variable_any ended_;
  std::jthread watcher_;  // last: it uses everything above
};

}  // namespace hdpsim::kernels::cuda
