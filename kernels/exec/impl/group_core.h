#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/exec/impl/activations.h"
#include "kernels/exec/impl/layer_kinds.h"
#include "kernels/exec/share.h"
#include "kernels/ring/chunk_keys.h"
#include "kernels/ring/gathered_keys.h"
#include "kernels/ring/halo_keys.h"
#include "kernels/ring/ring_steps.h"
#include "kernels/ring/scratch.h"
#include "kernels/ring/traded_heads.h"
#include "kernels/spec/backend.h"
#include "kernels/transport/transport.h"
#include "sim/program/instruction.h"

namespace hdpsim::kernels::exec {

/// The attention core of a layer over the ranks of a group, however these share it (GroupSharing): the calls are the
/// instructions of a program, in its order. Where ranks trade heads, the ring is that of the parties. In a ring, layers
/// whose tokens see a window get a halo in place of all keys.
class GroupCore {
 public:
  /// The tensors of the layer and those that all layers share.
  struct Tensors {
    LayerActivations layer;
    SharedActivations shared;
    std::int64_t index = 0;  ///< Of the layer, among all layers of the model.
  };

  /// `pool` has the HDP ranks, `kinds` are those of this device's shard. All references must outlive this.
  GroupCore(Backend& backend, Transport& pool, const LayerKinds& kinds);

  /// From now on the group of this share, which must outlive its use.
  void join(const Share& share);

  /// A collective of the group, whose three parts are timed apart: what comes before it, itself, and what comes behind.
  /// DeviceError if a peer fails: which collective of which ranks, and whom the transport waits for.
  void prepare(const SharingCollective& op, const Tensors& tensors);
  void meet(const SharingCollective& op);
  void finish(const SharingCollective& op, const Tensors& tensors);
  /// Puts gathered keys and values in order.
  void put_in_order() { gathered_.put_in_order(); }

  /// Before the first exchange of a ring, or the first attention where there is none.
  void begin(Direction direction, const Tensors& tensors);
  void attend(int step);
  /// Attention to what the rank holds alone, whose rows come behind the others.
  void attend_local();
  /// The exchanges of the ring: see RingSteps, and HaloKeys.
  void exchange(int step) { has_halo_ ? halo_.exchange() : ring_.exchange(step); }
  void wait_for_exchange() { has_halo_ ? halo_.wait() : ring_.wait(); }
  void add_arrived() {
    if (!has_halo_) ring_.add_arrived();
  }

 private:
  /// What the attention of a kind of layers needs to know.
  struct Kind {
    AttentionHeads heads;  ///< Of the device.
    Reach reach;
  };
  [[nodiscard]] const AttentionHeads& heads() const { return of_kinds_[*kind_].heads; }
  [[nodiscard]] const Reach& reach() const { return of_kinds_[*kind_].reach; }
  /// From now on layers of the kind of this one.
  void take_kind_of(std::int64_t layer);
  [[nodiscard]] TradedTensor traded(const SharingCollective& op, const Tensors& tensors) const;
  void run_collective(const SharingCollective& op);
  void reserve_gradients();
  /// Bytes of the rows of a party, with its part of tensors whose rows have `width` numbers.
  [[nodiscard]] std::size_t party_bytes(std::int64_t width, std::size_t each) const;

  Backend& backend_;
  const LayerKinds& kinds_;
  std::vector<Kind> of_kinds_;
  const Share* share_ = nullptr;
  std::optional<std::size_t> kind_;  ///< Of the layer; empty between micro-batches.
  bool has_halo_ = false;            ///< Layers of this kind, in this group.
  RingSteps ring_;
  HaloKeys halo_;
  RingSteps local_;  ///< A ring of one: what the rank holds alone.
  ChunkKeys chunks_;
  GatheredKeys gathered_;
  TradedHeads traded_;
  Direction direction_ = Direction::forward;
  std::int64_t layer_ = 0;
  RingForward forward_;
  RingBackward backward_;
  TradedTensor under_way_;
  // Gradients of a party's tensors: as `traded_*` of LayerActivations, those of queries, keys and values in fp32.
  Scratch d_o_;
  Scratch d_q_;
  Scratch d_kv_;
};

}  // namespace hdpsim::kernels::exec
