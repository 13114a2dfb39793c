#pragma once

#include <cstdint>
#include <vector>

#include "sim/model/operation.h"
#include "sim/model/transformer.h"
#include "sim/plan/plan.h"
#include "sim/program/ring_launches.h"

namespace hdpsim {

/// What ranks of a group hold alone (MicroBatch::local), as the busiest of them has it: the rank with most FLOPs of its
/// own, of all layers. Its group waits for it in every layer, where it shares the other spans' attention.
class LocalWork {
 public:
  /// The micro-batch must have local spans (checked) and outlive the object. O(its spans x kinds of layers).
  LocalWork(const MicroBatch& micro_batch, const Transformer& model);

  /// Tokens of the busiest rank, with its share of what the group shares, and the latter alone.
  [[nodiscard]] std::int64_t tokens() const { return shared_tokens_ + alone_.tokens(); }
  [[nodiscard]] std::int64_t shared_tokens() const { return shared_tokens_; }
  /// Its attention in a layer, on a device of `tp`.
  [[nodiscard]] RingAttention attention(const Transformer& layer, std::int64_t tp, Direction direction) const;
  /// The share of that launch, and of the rank's dense work, that the mean rank has not; 0 if the mean rank has more.
  [[nodiscard]] double idle_attention(const Transformer& layer) const;
  [[nodiscard]] double idle_dense() const;

 private:
  const MicroBatch& micro_batch_;
  std::int64_t shared_tokens_;  ///< Of a rank.
  MicroBatch alone_;            ///< The spans of the busiest rank.
};

}  // namespace hdpsim
