#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/spec/backend.h"
#include "tests/support/fake_queues.h"

namespace hdpsim::kernels::cuda {

/// Makes an asynchronous device of a backend that computes at once: queued work runs when the fake device gets to it.
/// Programs that are only correct on a GPU if their order is right can then be tested without one.
class DeferredBackend final : public Backend {
 public:
  /// Computes on the compute queue of rank `rank` of the device; `copies` as for FakeQueues.
  DeferredBackend(FakeDevice& device, std::size_t rank, std::size_t copies, std::unique_ptr<Backend> backend)
      : device_(device), queue_(FakeQueues(device, rank).index(Queue::compute)), backend_(std::move(backend)) {
    for (const std::size_t of : {rank, copies}) {
      const FakeQueues queues(device, rank, of);
      for (const Queue queue : {Queue::compute, Queue::out, Queue::in}) own_queues_.push_back(queues.index(queue));
    }
  }
  DeferredBackend(FakeDevice& device, std::size_t rank, std::unique_ptr<Backend> backend)
      : DeferredBackend(device, rank, rank, std::move(backend)) {}

  [[nodiscard]] Element element() const override { return backend_->element(); }
  [[nodiscard]] DeviceInfo info() const override { return backend_->info(); }
  [[nodiscard]] DeviceState state() override { return backend_->state(); }

  [[nodiscard]] DeviceMemory allocate(std::size_t bytes) override {
    const std::shared_ptr<void> memory = backend_->allocate(bytes);
    return {memory.get(), [this, memory](void*) { finish(); }};  // freeing waits, as it does on a GPU
  }
  void fill_bytes(void* data, int value, std::size_t bytes) override {
    queue([=, this] { backend_->fill_bytes(data, value, bytes); });
  }
  void upload(void* device, const void* host, std::size_t bytes) override {
    synchronize();
    backend_->upload(device, host, bytes);
  }
  void upload_queued(void* device, const void* host, std::size_t bytes) override {
    const auto* const data = static_cast<const std::byte*>(host);
    queue([this, device, copy = std::vector<std::byte>(data, data + bytes)] {
      backend_->upload(device, copy.data(), copy.size());
    });
  }
  void download(void* host, const void* device, std::size_t bytes) override {
    synchronize();
    backend_->download(host, device, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    queue([=, this] { backend_->copy(to, from, bytes); });
  }
  void synchronize() override { device_.finish(queue_); }
  [[nodiscard]] bool runs_ahead() const override { return true; }
  [[nodiscard]] Mark mark() override { return device_.mark(queue_); }
  [[nodiscard]] std::chrono::steady_clock::time_point time_of(const Mark& mark) override {
    return device_.time_of(mark);
  }

  void run(const AttentionForward& op) override { queue_with_blocks(op); }
  void run(const AttentionDelta& op) override { queue_copy(op); }
  void run(const AttentionBackward& op) override { queue_with_blocks(op); }
  void run(const RmsNormForward& op) override { queue_copy(op); }
  void run(const RmsNormBackward& op) override { queue_copy(op); }
  void run(const Rope& op) override { queue_copy(op); }
  void run(const SwigluForward& op) override { queue_copy(op); }
  void run(const SwigluBackward& op) override { queue_copy(op); }
  void run(const Add& op) override { queue_copy(op); }
  void run(const EmbeddingForward& op) override { queue_copy(op); }
  void run(const EmbeddingBackward& op) override { queue_copy(op); }
  void run(const CrossEntropy& op) override { queue_copy(op); }
  void run(const LogSumExp& op) override { queue_copy(op); }
  void run(const JoinLogSumExp& op) override { queue_copy(op); }
  void run(const Adam& op) override { queue_copy(op); }
  void run(const Cast& op) override { queue_copy(op); }
  void run(const MatrixProduct& op) override { queue_copy(op); }

  void set_progress_hook(std::function<void()>) override {}
  void set_sm_margin(int) override {}
  [[nodiscard]] std::vector<double> time(int runs, bool cold, const std::function<void()>& work) override {
    return backend_->time(runs, cold, work);
  }

 private:
  void finish() {
    for (const std::size_t queue : own_queues_) device_.finish(queue);
  }
  void queue(std::function<void()> work) { device_.push(queue_, std::move(work)); }
  template <class Operation>
  void queue_copy(const Operation& op) {
    queue([this, op] { backend_->run(op); });
  }
  template <class Operation>
  void queue_with_blocks(Operation op) {
    queue([this, op, blocks = std::vector<AttentionBlock>(op.blocks.begin(), op.blocks.end())]() mutable {
      op.blocks = blocks;
      backend_->run(op);
    });
  }

  FakeDevice& device_;
  std::size_t queue_;
  std::vector<std::size_t> own_queues_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace hdpsim::kernels::cuda
