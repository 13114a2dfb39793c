#pragma once

#include <vector>

#include "kernels/transport/message_transport.h"

namespace hdpsim::kernels {

/// Some of the ranks of a transport as one of its own, with messages alone: no communicator is made, so that a rank may
/// have any number of groups. Rank i of the group is rank members[i] of the transport, which must outlive the group and
/// may be used beside it; messages between two ranks match in the order in which both started them, whatever group they
/// belong to. Buffers are in host memory.
class GroupTransport final : public MessageTransport {
 public:
  /// UnsupportedInput if this rank is no member, or a member is no rank of the transport.
  GroupTransport(Transport& transport, std::vector<int> members);

  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int size() const override { return static_cast<int>(members_.size()); }
  [[nodiscard]] Ticket start(std::span<const Send> sends, std::span<const Receive> receives) override;
  void wait(Ticket ticket) override { transport_.wait(ticket); }
  void progress() override { transport_.progress(); }

 private:
  [[nodiscard]] int member(int rank) const { return members_.at(static_cast<std::size_t>(rank)); }

  Transport& transport_;
  std::vector<int> members_;
  int rank_ = 0;
};

}  // namespace hdpsim::kernels
