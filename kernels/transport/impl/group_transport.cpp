#include "kernels/transport/group_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hdpsim::kernels {

GroupTransport::GroupTransport(Transport& transport, std::vector<int> members, Backend* backend)
    : transport_(transport), members_(std::move(members)) {
  for (const int member : members_) {
    if (member >= 0 && member < transport.size()) continue;
    throw UnsupportedInput(fmt::format("a group has rank {}, but there are {} ranks", member, transport.size()));
  }
  const auto self = std::find(members_.begin(), members_.end(), transport.rank());
  if (self == members_.end()) throw UnsupportedInput(fmt::format("rank {} is not in its group", transport.rank()));
  rank_ = static_cast<int>(self - members_.begin());
  if (backend != nullptr) sums_.emplace(*backend);
}

float* GroupTransport::reserve_parts(std::size_t count) {
  return sums_ ? sums_->reserve_parts(count) : MessageTransport::reserve_parts(count);
}

void GroupTransport::copy(void* to, const void* from, std::size_t bytes) {
  sums_ ? sums_->copy(to, from, bytes) : MessageTransport::copy(to, from, bytes);
}

void GroupTransport::add(float* sum, const float* part, std::size_t count) {
  sums_ ? sums_->add(sum, part, count) : MessageTransport::add(sum, part, count);
}

Ticket GroupTransport::start(std::span<const Send> sends, std::span<const Receive> receives) {
  std::vector<Send> to_members(sends.begin(), sends.end());
  std::vector<Receive> from_members(receives.begin(), receives.end());
  for (Send& send : to_members) send.peer = member(send.peer);
  for (Receive& receive : from_members) receive.peer = member(receive.peer);
  return transport_.start(to_members, from_members);
}

}  // namespace hdpsim::kernels
