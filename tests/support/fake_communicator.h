#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/impl/communicator_transport.h"
#include "tests/support/fake_queues.h"

namespace hdpsim::kernels::cuda {

/// The shared state of the communicators of ranks on one fake device. As with NCCL, an operation holds its rank's queue
/// until all peers have reached theirs, while their programs continue.
class FakeFabric {
 public:
  FakeFabric(FakeDevice& device, std::size_t ranks) : device_(device), operations_(ranks), ranks_(ranks) {}

  struct Message {
    const void* source = nullptr;
    std::shared_ptr<bool> ready = std::make_shared<bool>(false);
    std::shared_ptr<bool> arrived = std::make_shared<bool>(false);
  };
  /// The next message from one rank to another, counted by the sender (`sends`) or the receiver.
  std::shared_ptr<Message> message(int from, int to, bool sends) {
    const std::lock_guard lock(mutex_);
    auto& [sent, received, messages] = lanes_[{from, to}];
    std::size_t& next = sends ? sent : received;
    if (messages.size() == next) messages.push_back(std::make_shared<Message>());
    return messages[next++];
  }

  /// An operation of all ranks.
  struct Collective {
    explicit Collective(std::size_t ranks) : sources(ranks) {
      for (std::size_t i = 0; i < ranks; ++i) {
        come.push_back(std::make_shared<bool>(false));
        read.push_back(std::make_shared<bool>(false));
      }
    }
    std::vector<const void*> sources;
    std::vector<std::shared_ptr<bool>> come, read;
  };
  std::shared_ptr<Collective> collective(int rank) {
    const std::lock_guard lock(mutex_);
    const std::size_t next = operations_[static_cast<std::size_t>(rank)]++;
    if (collectives_.size() == next) collectives_.push_back(std::make_shared<Collective>(ranks_));
    return collectives_[next];
  }

  [[nodiscard]] FakeDevice& device() { return device_; }
  [[nodiscard]] std::size_t ranks() const { return ranks_; }

 private:
  struct Lane {
    std::size_t sent = 0;
    std::size_t received = 0;
    std::deque<std::shared_ptr<Message>> messages;
  };
  FakeDevice& device_;
  std::mutex mutex_;
  std::map<std::pair<int, int>, Lane> lanes_;
  std::deque<std::shared_ptr<Collective>> collectives_;
  std::vector<std::size_t> operations_;
  std::size_t ranks_;
};

/// One rank of a fabric, on its queue `out`.
class FabricCommunicator final : public Communicator {
 public:
  FabricCommunicator(FakeFabric& fabric, int rank, FakeQueues& queues)
      : fabric_(fabric), rank_(rank), out_(queues.index(Queue::out)) {}

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(fabric_.ranks()); }

  void exchange(std::span<const Send> sends, std::span<const Receive> receives) override {
    std::vector<std::shared_ptr<FakeFabric::Message>> sent;
    for (const Send& send : sends) {
      const auto message = sent.emplace_back(fabric_.message(rank_, send.peer, true));
      push([message, data = send.data] {
        message->source = data;
        *message->ready = true;
      });
    }
    for (const Receive& receive : receives) {
      const auto message = fabric_.message(receive.peer, rank_, false);
      wait(message->ready);
      push([message, receive] {
        if (receive.bytes > 0) std::memcpy(receive.data, message->source, receive.bytes);
        *message->arrived = true;
      });
    }
    for (const auto& message : sent) wait(message->arrived);
  }
  void all_reduce(float* data, std::size_t count) override {
    collective(data, data, [count](const auto& sources) { return sum(sources, 0, count); });
  }
  void reduce_scatter(const float* all, float* mine, std::size_t count) override {
    const std::size_t begin = static_cast<std::size_t>(rank_) * count;
    collective(all, mine, [=](const auto& sources) { return sum(sources, begin, count); });
  }
  void all_gather(const void* mine, void* all, std::size_t bytes) override {
    collective(mine, all, [bytes](const auto& sources) {
      std::vector<std::byte> result;
      for (const void* const source : sources) {
        const auto* const first = static_cast<const std::byte*>(source);
        result.insert(result.end(), first, first + bytes);
      }
      return result;
    });
  }
  [[nodiscard]] std::optional<std::string> failure() override { return std::nullopt; }
  void abort() override {}

 private:
  void push(std::function<void()> work) { fabric_.device().push(out_, std::move(work)); }
  void wait(const std::shared_ptr<bool>& event) { fabric_.device().wait(out_, event); }

  static std::vector<float> sum(const std::vector<const void*>& sources, std::size_t begin, std::size_t count) {
    std::vector<float> result(count, 0);
    for (const void* const source : sources) {
      const float* const part = static_cast<const float*>(source) + begin;
      for (std::size_t i = 0; i < count; ++i) result[i] += part[i];
    }
    return result;
  }
  // All ranks arrive, all read, then all write.
  template <class Result>
  void collective(const void* from, void* to, const Result& result) {
    const auto operation = fabric_.collective(rank_);
    const auto self = static_cast<std::size_t>(rank_);
    push([=] {
      operation->sources[self] = from;
      *operation->come[self] = true;
    });
    for (const auto& come : operation->come) wait(come);
    using Values = decltype(result(operation->sources));
    const auto values = std::make_shared<Values>();
    push([=] {
      *values = result(operation->sources);
      *operation->read[self] = true;
    });
    for (const auto& read : operation->read) wait(read);
    push([=] {
      if (!values->empty()) std::memcpy(to, values->data(), values->size() * sizeof((*values)[0]));
    });
  }

  FakeFabric& fabric_;
  int rank_;
  std::size_t out_;
};

}  // namespace hdpsim::kernels::cuda
