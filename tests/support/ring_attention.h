#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "kernels/ring/ring_instructions.h"
#include "kernels/ring/sharding.h"
#include "kernels/spec/attention.h"
#include "kernels/spec/backend.h"
#include "kernels/spec/error.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels {

/// The ranks that work on some documents. members: the ranks of the transport in the order of the ring, the calling
/// rank among them; its index there is its position in `documents`. Rings over disjoint members run in parallel, and a
/// rank may be in another ring with every call: nothing is set up for a group.
struct RingGroup {
  AttentionHeads heads;
  const ShardedDocuments* documents = nullptr;
  std::vector<int> members;
};

/// Causal attention of packed documents whose rows are spread over a ring of n ranks: what one device would compute on
/// the whole documents. All steps of RingSteps in one call.
///
/// Step t (0 ... n - 1) attends to the keys and values of the rank t places before this one; while it computes, they
/// are sent on to the next rank and those of step t + 1 arrive. The send/recv starts before the attention of its step
/// and is waited for after it; meanwhile the backend's progress hook drives the transport. Only key-value heads are
/// sent.
///
/// DeviceError if a rank fails or stays away: which exchange of which ring, and whom the transport waits for.
/// UnsupportedInput if the group does not fit the transport or the documents. An object belongs to the thread of its
/// backend and transport, which must outlive it.
class RingAttention {
 public:
  RingAttention(Backend& backend, Transport& transport)
      : backend_(backend), transport_(transport), steps_(backend, transport) {}

  void forward(const RingGroup& group, const RingForward& op) {
    steps_.join(place_in(group), group.heads);
    steps_.begin(op);
    run_steps(group.documents->ranks());
  }

  void backward(const RingGroup& group, const RingBackward& op) {
    steps_.join(place_in(group), group.heads);
    steps_.begin(op);
    run_steps(group.documents->ranks());
  }

 private:
  [[nodiscard]] RingPlace place_in(const RingGroup& group) const {
    require_valid(group.heads, {});
    const std::vector<int>& members = group.members;
    if (group.documents == nullptr) throw UnsupportedInput("ring: no documents");
    if (std::cmp_not_equal(members.size(), group.documents->ranks())) {
      throw UnsupportedInput(fmt::format("ring: {} members for documents sharded over {} ranks", members.size(),
                                         group.documents->ranks()));
    }
    const std::set<int> distinct(members.begin(), members.end());
    if (distinct.size() != members.size() || *distinct.begin() < 0 || *distinct.rbegin() >= transport_.size() ||
        !distinct.contains(transport_.rank())) {
      throw UnsupportedInput(fmt::format("ring: ranks {} are not a ring with rank {} among {} ranks",
                                         fmt::join(members, " "), transport_.rank(), transport_.size()));
    }
    const auto self = std::find(members.begin(), members.end(), transport_.rank());
    return {group.documents, &members, static_cast<int>(self - members.begin())};
  }

  // Each launch has under it the exchange that the next one needs, if there is any.
  void run_steps(int steps) {
    const MessageDriver progress(backend_, transport_);
    for (int step = 0; step < steps; ++step) {
      if (step < steps_.last_exchange()) steps_.exchange(step + 1);
      steps_.attend(step);
      steps_.wait();
      steps_.add_arrived();
    }
    if (steps_.last_exchange() <= steps) return;
    steps_.exchange(steps_.last_exchange());  // The gradient of this rank's own keys comes home.
    steps_.wait();
  }

  Backend& backend_;
  Transport& transport_;
  RingSteps steps_;
};

}  // namespace hdpsim::kernels
