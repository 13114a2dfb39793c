#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/exec/impl/ring_core.h"
#include "kernels/ring/scratch.h"
#include "kernels/ring/traded_heads.h"

namespace hdpsim::kernels::exec {

/// Ranks of a party trade tokens for heads (TradedHeads), and the ring is that of the parties.
class TradedCore final : public RingCore {
 public:
  TradedCore(Backend& backend, Transport& pool)
      : RingCore(backend, pool),
        backend_(backend),
        traded_(backend, pool),
        d_o_(backend),
        d_q_(backend),
        d_kv_(backend) {}

  void join(const Share& share, const AttentionHeads& heads, const Reach& reach) override;
  void prepare(const SharingCollective& op, const CoreTensors& tensors) override;
  void run(const SharingCollective& /*op*/) override { traded_.trade(under_way_); }
  void finish(const SharingCollective& op, const CoreTensors& tensors) override;
  void begin(const RingForward& op, const CoreTensors& tensors) override;
  void begin(const RingBackward& op, const CoreTensors& tensors) override;

 private:
  [[nodiscard]] bool trades() const { return share_->sharing.inner > 1; }
  [[nodiscard]] TradedTensor traded(const SharingCollective& op, const CoreTensors& tensors) const;
  void reserve_gradients();
  /// Bytes of the rows of a party, with its part of tensors whose rows have `width` numbers.
  [[nodiscard]] std::size_t party_bytes(std::int64_t width, std::size_t each) const;

  Backend& backend_;
  const Share* share_ = nullptr;
  AttentionHeads heads_;
  TradedHeads traded_;
  TradedTensor under_way_;
  // Gradients of a party's tensors: as `traded_*` of LayerActivations, those of queries, keys and values in fp32.
  Scratch d_o_;
  Scratch d_q_;
  Scratch d_kv_;
};

}  // namespace hdpsim::kernels::exec
