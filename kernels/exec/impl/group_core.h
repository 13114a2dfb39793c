#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/exec/impl/layer_kinds.h"
#include "kernels/exec/impl/shared_core.h"
#include "kernels/ring/chunk_keys.h"
#include "kernels/ring/ring_instructions.h"
#include "kernels/transport/transport.h"

namespace hdpsim::kernels::exec {

/// The attention core of a layer over the ranks of a group, however these share it: the calls are the instructions of a
/// program, in its order. What ranks exchange is a SharedCore's; chunks of a sequence in order, and what ranks hold
/// alone, need no exchange.
class GroupCore {
 public:
  using Tensors = CoreTensors;

  /// `pool` has the HDP ranks, `kinds` are those of this device's shard. All references must outlive this.
  GroupCore(Backend& backend, Transport& pool, const LayerKinds& kinds);

  /// From now on the group of this share, which must outlive its use.
  void join(const Share& share);

  /// A collective of the group, whose three parts are timed apart: what comes before it, itself, and what comes behind.
  /// DeviceError if a peer fails: which collective of which ranks, and whom the transport waits for.
  void prepare(const SharingCollective& op, const Tensors& tensors);
  void meet(const SharingCollective& op);
  void finish(const SharingCollective& op, const Tensors& tensors);
  void put_in_order() { core_->put_in_order(); }

  /// Before the first exchange of a ring, or the first attention where there is none.
  void begin(Direction direction, const Tensors& tensors);
  void attend(int step);
  /// Attention to what the rank holds alone, whose rows come behind the others.
  void attend_local();
  void exchange(int step) { core_->exchange(step); }
  void wait_for_exchange() { core_->wait(); }
  void add_arrived() { core_->add_arrived(); }

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

  Backend& backend_;
  Transport& pool_;
  const LayerKinds& kinds_;
  std::vector<Kind> of_kinds_;
  const Share* share_ = nullptr;
  std::optional<std::size_t> kind_;                               ///< Of the layer; empty between micro-batches.
  std::array<std::unique_ptr<SharedCore>, key_exchanges> cores_;  ///< Those that were needed so far.
  SharedCore* core_ = nullptr;                                    ///< Of the share's exchange.
  RingSteps local_;                                               ///< A ring of one: what the rank holds alone.
  ChunkKeys chunks_;
  Direction direction_ = Direction::forward;
  std::int64_t layer_ = 0;
  RingForward forward_;
  RingBackward backward_;
};

}  // namespace hdpsim::kernels::exec
