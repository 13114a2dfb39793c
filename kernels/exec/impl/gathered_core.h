#pragma once

#include "kernels/exec/impl/shared_core.h"
#include "kernels/ring/gathered_keys.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::exec {

/// Attention to the keys of the whole group, which every rank gathers first: see GatheredKeys.
class GatheredCore final : public SharedCore {
 public:
  GatheredCore(Backend& backend, Transport& pool) : gathered_(backend, pool) {}

  void join(const Share& share, const AttentionHeads& heads, const Reach& /*reach*/) override {
    gathered_.join(share.together, share.launches, heads);
  }
  void prepare(const SharingCollective& op, const CoreTensors& tensors) override {
    op.gradients ? gathered_.prepare_reduce(half_of(op)) : gathered_.prepare_gather(half_of(op), tensors.layer.kv);
  }
  void run(const SharingCollective& op) override {
    op.gradients ? gathered_.reduce(half_of(op)) : gathered_.gather(half_of(op));
  }
  void finish(const SharingCollective& op, const CoreTensors& tensors) override {
    if (op.gradients) gathered_.finish_reduce(half_of(op), tensors.shared.d_kv);
  }
  void put_in_order() override { gathered_.put_in_order(); }
  void begin(const RingForward& op, const CoreTensors& /*tensors*/) override {
    forward_ = op;
    is_forward_ = true;
  }
  void begin(const RingBackward& op, const CoreTensors& /*tensors*/) override {
    backward_ = op;
    is_forward_ = false;
  }
  void attend(int /*step*/) override { is_forward_ ? gathered_.attend(forward_) : gathered_.attend(backward_); }

 private:
  static KeyOrValue half_of(const SharingCollective& op) {
    return op.tensor == SharedTensor::keys ? KeyOrValue::key : KeyOrValue::value;
  }

  GatheredKeys gathered_;
  bool is_forward_ = true;
  RingForward forward_;
  RingBackward backward_;
};

}  // namespace hdpsim::kernels::exec
