#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "kernels/cuda/impl/queues.h"

namespace hdpsim::kernels::cuda {

/// A device that runs queued work only when a thread waits for it, and then in an order drawn from a seed: any order
/// that the queues and their events allow. A forgotten event shows as wrong data for some seed.
class FakeDevice {
 public:
  /// `patience` is how long nothing may happen during a wait, for ranks whose programs reach an operation late.
  FakeDevice(std::size_t queues, unsigned seed, std::chrono::milliseconds patience = {})
      : patience_(patience), queues_(queues), random_(seed) {}

  void push(std::size_t queue, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queues_[queue].push_back({.work = std::move(work), .after = nullptr});
  }
  [[nodiscard]] Event record(std::size_t queue) {
    auto happened = std::make_shared<bool>(false);
    push(queue, [happened] { *happened = true; });
    return happened;
  }
  [[nodiscard]] Mark mark(std::size_t queue) {
    auto reached = std::make_shared<Reached>();
    push(queue, [reached] { *reached = std::chrono::steady_clock::now(); });
    return {{}, reached};
  }
  [[nodiscard]] std::chrono::steady_clock::time_point time_of(const Mark& mark) {
    const auto reached = std::static_pointer_cast<const Reached>(mark.event);
    run_until([&] { return reached->has_value(); });
    return **reached;
  }
  void wait(std::size_t queue, const Event& event) {
    const std::lock_guard lock(mutex_);
    if (event) queues_[queue].push_back({.work = [] {}, .after = std::static_pointer_cast<const bool>(event)});
  }

  [[nodiscard]] bool happened(const Event& event) {
    const std::lock_guard lock(mutex_);
    return !event || *std::static_pointer_cast<const bool>(event);
  }

  /// Runs work of any queue until `queue` is empty.
  void finish(std::size_t queue) {
    run_until([&] { return queues_[queue].empty(); });
  }
  void finish() {
    for (std::size_t queue = 0; queue < queues_.size(); ++queue) finish(queue);
  }
  /// Runs some operations, as a device does while the program continues.
  void run_some(std::size_t operations) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < operations && run_one(); ++i) {
    }
  }

 private:
  using Reached = std::optional<std::chrono::steady_clock::time_point>;
  struct Operation {
    std::function<void()> work;
    std::shared_ptr<const bool> after;
  };

  template <class Done>
  void run_until(const Done& done) {
    std::unique_lock lock(mutex_);
    auto last = std::chrono::steady_clock::now();
    while (!done()) {
      if (run_one()) {
        last = std::chrono::steady_clock::now();
      } else if (std::chrono::steady_clock::now() - last >= patience_) {
        throw std::logic_error("every queue waits for an event that nobody will record");
      } else {
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        lock.lock();
      }
    }
  }
  // Runs one operation; false if none can run.
  bool run_one() {
    std::vector<std::size_t> ready;
    for (std::size_t queue = 0; queue < queues_.size(); ++queue) {
      if (queues_[queue].empty()) continue;
      const auto& after = queues_[queue].front().after;
      if (!after || *after) ready.push_back(queue);
    }
    if (ready.empty()) return false;
    // A chosen queue is more likely to be chosen again: forgotten events only show if one queue is far ahead of
    // another.
    const bool stays = std::find(ready.begin(), ready.end(), last_) != ready.end() && random_() % 8 != 0;
    last_ = stays ? last_ : ready[random_() % ready.size()];
    const Operation next = std::move(queues_[last_].front());
    queues_[last_].pop_front();
    next.work();
    return true;
  }

  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::vector<std::deque<Operation>> queues_;
  std::mt19937 random_;
  std::size_t last_ = 0;
};

/// The queues of one rank on a fake device that ranks share, three each. Copies may have queues of their own besides
/// these: those of an unused rank.
class FakeQueues final : public Queues {
 public:
  explicit FakeQueues(FakeDevice& device, std::size_t rank = 0) : FakeQueues(device, rank, rank) {}
  FakeQueues(FakeDevice& device, std::size_t rank, std::size_t copies)
      : device_(device), compute_(rank * 3), copies_(copies * 3) {}

  [[nodiscard]] Event record(Queue queue) override { return device_.record(index(queue)); }
  [[nodiscard]] Mark mark(Queue queue) override { return device_.mark(index(queue)); }
  void wait(Queue queue, const Event& event) override { device_.wait(index(queue), event); }
  [[nodiscard]] bool happened(const Event& event) override { return device_.happened(event); }
  void copy(Queue queue, void* to, const void* from, std::size_t bytes) override {
    copied_bytes[static_cast<std::size_t>(queue)] += bytes;
    device_.push(index(queue), [=] { std::memcpy(to, from, bytes); });
  }

  [[nodiscard]] std::size_t index(Queue queue) const {
    return queue == Queue::compute ? compute_ : copies_ + static_cast<std::size_t>(queue);
  }

  std::size_t copied_bytes[3] = {};

 private:
  FakeDevice& device_;
  std::size_t compute_;
  std::size_t copies_;
};

}  // namespace hdpsim::kernels::cuda
