#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// A transport between GPUs for callers with host memory: what they give is copied to the device, what they receive
/// from it when they wait. Laws of transports that look at host memory then hold for those of GPUs.
class MirroredTransport final : public Transport {
 public:
  MirroredTransport(Backend& backend, Transport& transport) : backend_(backend), transport_(transport) {}

  [[nodiscard]] int rank() const override { return transport_.rank(); }
  [[nodiscard]] int size() const override { return transport_.size(); }

  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override {
    Exchange exchange;
    std::vector<Send> device_sends;
    std::vector<Receive> device_receives;
    for (const Send& send : sends) {
      const DeviceMemory& memory = exchange.memory.emplace_back(on_device(send.data, send.bytes));
      device_sends.push_back({send.peer, memory.get(), send.bytes});
    }
    for (const Receive& receive : receives) {
      const DeviceMemory& memory = exchange.memory.emplace_back(on_device(nullptr, receive.bytes));
      device_receives.push_back({receive.peer, memory.get(), receive.bytes});
      exchange.arriving.push_back({receive.data, memory.get(), receive.bytes});
    }
    const Ticket ticket = transport_.start(device_sends, device_receives);
    exchanges_[ticket] = std::move(exchange);
    return ticket;
  }
  void wait(Ticket ticket) override {
    transport_.wait(ticket);
    for (const auto& [host, device, bytes] : exchanges_[ticket].arriving) backend_.download(host, device, bytes);
    exchanges_.erase(ticket);
  }
  void progress() override { transport_.progress(); }

  void all_reduce(float* data, std::size_t count) override {
    const DeviceMemory device = on_device(data, count * sizeof(float));
    transport_.all_reduce(static_cast<float*>(device.get()), count);
    backend_.download(data, device.get(), count * sizeof(float));
  }
  void all_gather(const void* mine, void* all, std::size_t bytes_per_rank) override {
    const std::size_t bytes = bytes_per_rank * static_cast<std::size_t>(size());
    const DeviceMemory device_mine = on_device(mine, bytes_per_rank);
    const DeviceMemory device_all = on_device(nullptr, bytes);
    transport_.all_gather(device_mine.get(), device_all.get(), bytes_per_rank);
    backend_.download(all, device_all.get(), bytes);
  }
  void reduce_scatter(const float* all, float* mine, std::size_t count_per_rank) override {
    const std::size_t bytes = count_per_rank * sizeof(float);
    const DeviceMemory device_all = on_device(all, bytes * static_cast<std::size_t>(size()));
    const DeviceMemory device_mine = on_device(nullptr, bytes);
    transport_.reduce_scatter(static_cast<const float*>(device_all.get()), static_cast<float*>(device_mine.get()),
                              count_per_rank);
    backend_.download(mine, device_mine.get(), bytes);
  }
  void all_to_all(const void* from, void* to, std::size_t bytes_per_rank) override {
    const std::size_t bytes = bytes_per_rank * static_cast<std::size_t>(size());
    const DeviceMemory device_from = on_device(from, bytes);
    const DeviceMemory device_to = on_device(nullptr, bytes);
    transport_.all_to_all(device_from.get(), device_to.get(), bytes_per_rank);
    backend_.download(to, device_to.get(), bytes);
  }
  void barrier() override { transport_.barrier(); }

 private:
  struct Arriving {
    void* host;
    const void* device;
    std::size_t bytes;
  };
  struct Exchange {
    std::vector<DeviceMemory> memory;
    std::vector<Arriving> arriving;
  };

  [[nodiscard]] DeviceMemory on_device(const void* host, std::size_t bytes) {
    DeviceMemory memory = backend_.allocate(bytes);
    if (host != nullptr && bytes > 0) backend_.upload(memory.get(), host, bytes);
    return memory;
  }

  Backend& backend_;
  Transport& transport_;
  std::map<Ticket, Exchange> exchanges_;
};

}  // namespace hdpsim::kernels
