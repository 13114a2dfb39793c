#pragma once

#include <cstdint>

#include "kernels/exec/impl/activations.h"
#include "kernels/exec/share.h"
#include "kernels/ring/rank_attention.h"
#include "kernels/spec/backend.h"
#include "sim/program/instruction.h"

namespace hdpsim::kernels::exec {

/// The tensors of a layer and those that all layers share.
struct CoreTensors {
  LayerActivations layer;
  SharedActivations shared;
  std::int64_t index = 0;  ///< Of the layer, among all layers of the model.
};

/// How ranks run a way to share a sequence (KeyExchange): the calls are the instructions of a program, in its order.
class SharedCore {
 public:
  SharedCore() = default;
  SharedCore(const SharedCore&) = delete;
  SharedCore& operator=(const SharedCore&) = delete;
  virtual ~SharedCore() = default;

  /// From now on layers of these heads and this reach, in the group of this share, which must outlive its use.
  virtual void join(const Share& share, const AttentionHeads& heads, const Reach& reach) = 0;

  /// The three parts of a collective of the group. Ways whose programs have none do nothing.
  virtual void prepare(const SharingCollective& /*op*/, const CoreTensors& /*tensors*/) {}
  virtual void run(const SharingCollective& /*op*/) {}
  virtual void finish(const SharingCollective& /*op*/, const CoreTensors& /*tensors*/) {}
  /// Puts gathered keys and values in order.
  virtual void put_in_order() {}

  /// Before the first exchange of a ring, or the first attention where there is none. `op` has the tensors of the
  /// rank's own tokens.
  virtual void begin(const RingForward& op, const CoreTensors& tensors) = 0;
  virtual void begin(const RingBackward& op, const CoreTensors& tensors) = 0;
  virtual void attend(int step) = 0;

  /// The exchanges of a ring; ways without one have none.
  virtual void exchange(int /*step*/) {}
  virtual void wait() {}
  virtual void add_arrived() {}
};

}  // namespace hdpsim::kernels::exec
