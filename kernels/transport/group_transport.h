#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/spec/backend.h"
#include "kernels/transport/message_transport.h"

namespace hdpsim::kernels {

/// The operations of a MessageTransport whose messages are in the memory of a backend: all of them are queued there.
class BackendSums {
 public:
  /// `backend` must outlive this.
  explicit BackendSums(Backend& backend) : backend_(backend) {}

  [[nodiscard]] float* reserve_parts(std::size_t count) {
    if (count > parts_count_) {
      backend_.synchronize();  // The old memory may be in use.
      parts_.reset();
      parts_ = backend_.allocate(count * sizeof(float));
      parts_count_ = count;
    }
    return static_cast<float*>(parts_.get());
  }
  void copy(void* to, const void* from, std::size_t bytes) {
    if (to != from && bytes > 0) backend_.copy(to, from, bytes);
  }
  void add(float* sum, const float* part, std::size_t count) {
    if (count == 0) return;
    backend_.run(Add{.count = static_cast<std::int64_t>(count), .a = sum, .b = part, .y = sum, .fp32 = true});
  }

 private:
  Backend& backend_;
  DeviceMemory parts_;
  std::size_t parts_count_ = 0;
};

/// Some of the ranks of a transport as a transport of their own that only uses messages: no communicator is made, so
/// that a rank may have any number of groups. Rank i of the group is rank members[i] of the transport, which must
/// outlive the group and may be used at the same time; messages between two ranks match in the order in which both
/// started them, whatever group they belong to. Buffers are in host memory or, if a backend is given, in its memory.
class GroupTransport final : public MessageTransport {
 public:
  /// UnsupportedInput if this rank is no member, or a member is no rank of the transport.
  GroupTransport(Transport& transport, std::vector<int> members, Backend* backend = nullptr);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(members_.size()); }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override;
  void wait(Ticket ticket) override { transport_.wait(ticket); }
  void progress() override { transport_.progress(); }

 protected:
  [[nodiscard]] float* reserve_parts(std::size_t count) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void add(float* sum, const float* part, std::size_t count) override;

 private:
  [[nodiscard]] int member(int rank) const { return members_.at(static_cast<std::size_t>(rank)); }

  Transport& transport_;
  std::vector<int> members_;
  std::optional<BackendSums> sums_;
  int rank_ = 0;
};

}  // namespace hdpsim::kernels
