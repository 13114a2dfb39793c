#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/exec/impl/activations.h"
#include "kernels/exec/share.h"

namespace hdpsim::kernels::exec {

/// The micro-batches that have run forward on one device and not yet backward: one without a pipeline, else as many as
/// the schedule has in flight. Later micro-batches reuse their memory.
class InFlight {
 public:
  /// `model` is the whole model.
  InFlight(Backend& backend, HostCopies& copies, const Transformer& model, const TensorShard& shard)
      : backend_(backend), copies_(copies), model_(model), shard_(shard), workspace_(backend) {}

  /// Adds a micro-batch, before its first pass on this device.
  void add(MicroBatchId id, Share share) { shares_.insert_or_assign(id, std::move(share)); }
  /// The share of a micro-batch. The reference is valid until the micro-batch's last pass has ended.
  [[nodiscard]] const Share& share(MicroBatchId id) const { return shares_.at(id); }

  /// Begins the activations of one chunk of the model, given by its number; they live from its forward pass on ...
  void begin(MicroBatchId id, std::int64_t number, const ModelChunk& chunk, const Keeping& keeping);
  [[nodiscard]] const Activations& activations(MicroBatchId id, std::int64_t number) const {
    return *held_.at({id, number});
  }
  /// ... until the end of its backward pass.
  void end(MicroBatchId id, std::int64_t number);

  /// Ends the activations of a chunk after a forward pass that is repeated: begin() follows before its backward pass.
  void drop(MicroBatchId id, std::int64_t number);
  /// Keeps what such a chunk has received from another stage, and puts it back.
  void keep_received(MicroBatchId id, std::int64_t number, const void* from, std::size_t bytes);
  void restore(MicroBatchId id, std::int64_t number, void* to);

  /// The largest number of chunks that had activations at once.
  [[nodiscard]] std::size_t most() const { return held_.size() + spare_.size(); }

 private:
  Backend& backend_;
  HostCopies& copies_;
  const Transformer& model_;
  TensorShard shard_;
  GrowingMemory workspace_;
  std::map<MicroBatchId, Share> shares_;
  std::map<std::pair<MicroBatchId, std::int64_t>, std::unique_ptr<Activations>> held_;
  std::vector<std::unique_ptr<Activations>> spare_;
  struct Received {
    DeviceMemory memory;
    std::size_t bytes = 0;
  };
  std::map<std::pair<MicroBatchId, std::int64_t>, Received> received_;
};

}  // namespace hdpsim::kernels::exec
