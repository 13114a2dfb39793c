#pragma once

#include "kernels/exec/impl/shared_core.h"
#include "kernels/ring/halo_keys.h"
#include "kernels/ring/ring_instructions.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::exec {

/// A ring of the parties of a group; a rank alone is a ring of one. Layers whose tokens see a window get a halo in
/// place of all keys: see RingSteps, and HaloKeys.
class RingCore : public SharedCore {
 public:
  RingCore(Backend& backend, Transport& pool) : ring_(backend, pool), halo_(backend, pool) {}

  void join(const Share& share, const AttentionHeads& heads, const Reach& reach) override;
  void begin(const RingForward& op, const CoreTensors& tensors) override;
  void begin(const RingBackward& op, const CoreTensors& tensors) override;
  void attend(int step) override { has_halo_ ? halo_.attend() : ring_.attend(step); }
  void exchange(int step) override { has_halo_ ? halo_.exchange() : ring_.exchange(step); }
  void wait() override { has_halo_ ? halo_.wait() : ring_.wait(); }
  void add_arrived() override {
    if (!has_halo_) ring_.add_arrived();
  }

 private:
  template <class Op>
  void begin_ring(Op op);

  bool has_halo_ = false;  ///< Layers of this kind, in this group.
  bool is_alone_ = true;
  RingSteps ring_;
  HaloKeys halo_;
};

}  // namespace hdpsim::kernels::exec
