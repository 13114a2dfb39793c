#include "sim/plan/impl/micro_batch_limit.h"

#include <fmt/format.h>

#include <utility>

#include "sim/base/quantity_text.h"

namespace hdpsim {

MicroBatchLimit::MicroBatchLimit(std::string policy, PoolFit& pool, std::int64_t cp,
                                 std::optional<std::int64_t> tokens_of_rank)
    : policy_(std::move(policy)),
      position_(pool.where("cp").position),
      cp_(cp),
      capacity_(pool.context().capacity),
      tokens_(tokens_of_rank.value_or(capacity_) * cp) {
  if (tokens_of_rank.value_or(0) <= capacity_) return;
  pool.error(pool.where("max_tokens"),
             fmt::format("'max_tokens' is {}, a rank holds {}", count_text(*tokens_of_rank), count_text(capacity_)),
             "use a larger capacity, or leave it out");
}

void MicroBatchLimit::require_fit(const Batch& batch, const SequenceList& sequences) const {
  std::int64_t tokens = 0;
  for (const std::size_t sequence : sequences) tokens += batch.sequences[sequence].tokens;
  if (tokens <= capacity_ * cp_) return;
  throw InputError(position_,
                   fmt::format("{} makes a micro-batch of {} tokens, but {} x {} tokens fit (cp x capacity)", policy_,
                               count_text(tokens), cp_, count_text(capacity_)),
                   "use a larger capacity, a larger cp, or a smaller 'max_tokens'");
}

}  // namespace hdpsim
