#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/plan/impl/plan_builder.h"
#include "sim/plan/impl/pool_fit.h"

namespace hdpsim {

/// The tokens of a micro-batch in policies that derive the number of micro-batches from tokens, but then balance work,
/// so that a micro-batch of short sequences may have more.
class MicroBatchLimit {
 public:
  /// `tokens_of_rank`: what a rank should hold; if empty, its capacity.
  MicroBatchLimit(std::string policy, PoolFit& pool, std::int64_t cp, std::optional<std::int64_t> tokens_of_rank);

  /// Tokens that a micro-batch on all ranks of a replica should have.
  [[nodiscard]] std::int64_t tokens() const { return tokens_; }
  /// Refuses a micro-batch that its ranks cannot hold.
  void require_fit(const Batch& batch, const SequenceList& sequences) const;

 private:
  std::string policy_;
  Position position_;
  std::int64_t cp_;
  std::int64_t capacity_;
  std::int64_t tokens_;
};

}  // namespace hdpsim
