#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include "kernels/cuda/impl/queues.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::cuda {

/// Notices stuck communication. Operations of one stream run one after another; one is stuck when everything before it
/// has happened, and nothing more for the limit. Waiting for slow kernels before it does not count.
class ExchangeWatch {
 public:
  using Clock = std::chrono::steady_clock;

  ExchangeWatch(std::chrono::milliseconds limit, std::function<bool(const Event&)> happened)
      : limit_(limit), happened_(std::move(happened)) {}

  /// Adds an operation that may start at `ready` and ends at `done`; `text` names what it waits for if it is stuck.
  void add(std::string text, Event ready, Event done) {
    operations_.push_back({std::move(text), std::move(ready), std::move(done), {}});
  }
  /// The text of the operation that is stuck at `now`; empty if none is. Call it more often than the limit.
  [[nodiscard]] std::optional<std::string> stuck(Clock::time_point now);
  /// Operations that had not ended when stuck() was last called.
  [[nodiscard]] std::size_t under_way() const { return operations_.size(); }

 private:
  struct Operation {
    std::string text;
    Event ready;
    Event done;
    std::optional<Clock::time_point> runnable_since;
  };

  std::chrono::milliseconds limit_;
  std::function<bool(const Event&)> happened_;
  std::deque<Operation> operations_;
};

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
