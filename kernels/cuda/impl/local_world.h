#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/cuda/impl/queues.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/group_transport.h"
#include "kernels/transport/impl/describe.h"
#include "kernels/transport/message_transport.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::cuda {

/// Matches the sends and receives of ranks that are threads of this process and share one device, and queues the
/// copies: the logic of the local-gpu transport, without a device of its own.
///
/// A message is one copy within the device, on the `in` queue of its receiver, queued by whichever end starts it last.
/// It is ordered after the compute work that either end had queued when it started, and before the compute work that
/// either end queues after wait(). Ends match in the order in which they were started, separately for each pair of
/// ranks.
class LocalWorld {
 public:
  /// `queues` are those of each rank; they must live until the rank has left.
  LocalWorld(std::vector<Queues*> queues, std::chrono::milliseconds limit);

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }

  [[nodiscard]] Ticket start(int rank, std::span<const Send> sends, std::span<const Receive> receives);
  /// Waits until the other ends of all messages have started, but not for the device. DeviceError if they do not within
  /// the limit, if a peer has left, or if sizes differ; the rank has then left, and its later work is ordered after the
  /// copies that still touch its buffers.
  void wait(int rank, Ticket ticket);
  /// Leaves, so that no rank waits for this one any more. Returns the copies that may still touch its buffers.
  [[nodiscard]] std::vector<Event> leave(int rank);

 private:
  struct Message : SharedMessage {
    const void* source = nullptr;
    void* target = nullptr;
    Event sender_ready;
    Event receiver_ready;
    Event arrived;  // once the copy is queued
  };
  using MessagePointer = std::shared_ptr<Message>;
  struct Rank {
    Queues* queues = nullptr;
    bool here = true;
    std::string last_words;  // the reason of a rank that has failed
    Ticket next_ticket = 1;
    std::optional<Ticket> waiting;
    std::map<Ticket, std::vector<MessagePointer>> exchanges;
    std::condition_variable changed;
  };
  using Lock = std::unique_lock<std::mutex>;

  Rank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Rank& at(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  void started(Message& message);
  void require_here(int rank) const;
  [[nodiscard]] bool hopeless(const Message& message) const;
  [[nodiscard]] const Message* first_unmatched(int rank) const;
  [[nodiscard]] static std::vector<Event> queued_copies(const Rank& rank);
  void remove(int rank);
  [[noreturn]] void fail(int rank, const std::string& reason);
  [[nodiscard]] std::string state_text() const;

  const std::chrono::milliseconds limit_;
  std::mutex mutex_;
  std::vector<Rank> ranks_;
  Matching<Message> matching_;
};

/// One rank of a LocalWorld. Collectives are its messages, summed by the backend's Add in the order of ranks.
class LocalTransport : public MessageTransport {
 public:
  /// `backend` computes on the queue that `queues` calls `compute`.
  LocalTransport(std::shared_ptr<LocalWorld> world, int rank, Backend& backend, Queues& queues);
  ~LocalTransport() override;

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return world_->size(); }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override {
    return world_->start(rank_, sends, receives);
  }
  void wait(Ticket ticket) override { world_->wait(rank_, ticket); }
  void progress() override {}

 protected:
  [[nodiscard]] float* reserve_parts(std::size_t count) override { return sums_.reserve_parts(count); }
  void copy(void* to, const void* from, std::size_t bytes) override { sums_.copy(to, from, bytes); }
  void add(float* sum, const float* part, std::size_t count) override { sums_.add(sum, part, count); }

 private:
  std::shared_ptr<LocalWorld> world_;
  int rank_;
  Backend& backend_;
  Queues& queues_;
  BackendSums sums_;
};

}  // namespace hdpsim::kernels::cuda
