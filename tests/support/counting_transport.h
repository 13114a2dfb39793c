#pragma once

#include <span>
#include <vector>

#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// Another transport that records what each start() sends. Collectives are only recorded if they are those of a group.
class CountingTransport final : public Transport {
 public:
  explicit CountingTransport(Transport& transport) : transport_(transport) {}
  [[nodiscard]] int rank() const override { return transport_.rank(); }
  [[nodiscard]] int size() const override { return transport_.size(); }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override {
    started.emplace_back(sends.begin(), sends.end());
    return transport_.start(sends, receives);
  }
  void wait(Ticket ticket) override { transport_.wait(ticket); }
  void progress() override { transport_.progress(); }
  void all_reduce(float* data, std::size_t count) override { transport_.all_reduce(data, count); }
  void all_gather(const void* mine, void* all, std::size_t bytes) override { transport_.all_gather(mine, all, bytes); }
  void reduce_scatter(const float* all, float* mine, std::size_t n) override {
    transport_.reduce_scatter(all, mine, n);
  }
  void all_to_all(const void* from, void* to, std::size_t bytes) override { transport_.all_to_all(from, to, bytes); }
  void barrier() override { transport_.barrier(); }

  std::vector<std::vector<Send>> started;

 private:
  Transport& transport_;
};

}  // namespace hdpsim::kernels
