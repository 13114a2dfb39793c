#pragma once

#include <vector>

#include "kernels/ring/ring_steps.h"
#include "kernels/ring/sharding.h"
#include "kernels/spec/attention.h"
#include "kernels/spec/backend.h"
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

  void forward(const RingGroup& group, const RingForward& op);
  void backward(const RingGroup& group, const RingBackward& op);

 private:
  [[nodiscard]] RingPlace place_in(const RingGroup& group) const;
  void run_steps(int steps);

  Backend& backend_;
  Transport& transport_;
  RingSteps steps_;
};

}  // namespace hdpsim::kernels
