#include "kernels/exec/impl/ring_core.h"

namespace hdpsim::kernels::exec {

void RingCore::join(const Share& share, const AttentionHeads& heads, const Reach& reach) {
  AttentionHeads own = heads;
  own.heads /= share.sharing.inner;
  own.kv_heads /= share.sharing.inner;
  const RingPlace place{&share.documents, &share.members, share.position};
  is_alone_ = share.sharing.parties == 1;
  has_halo_ = !is_alone_ && reach.limits(share.documents.longest());
  has_halo_ ? halo_.join(place, own, reach.window) : ring_.join(place, own);
}

// Where all keys pass by, no layer of the group sees fewer.
template <class Op>
void RingCore::begin_ring(Op op) {
  if (!is_alone_ && !has_halo_) op.reach = {};
  has_halo_ ? halo_.begin(op) : ring_.begin(op);
}

void RingCore::begin(const RingForward& op, const CoreTensors& /*tensors*/) {
  begin_ring(op);
}

void RingCore::begin(const RingBackward& op, const CoreTensors& /*tensors*/) {
  begin_ring(op);
}

}  // namespace hdpsim::kernels::exec
