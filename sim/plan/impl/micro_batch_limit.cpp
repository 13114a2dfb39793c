#include "sim/plan/impl/micro_batch_limit.h"

#include <fmt/format.h>

#include "sim/base/quantity_text.h"

namespace hdpsim {

std::int64_t micro_batch_limit(PoolFit& pool, std::int64_t cp, std::optional<std::int64_t> tokens_of_rank) {
  const std::int64_t capacity = pool.context().capacity;
  if (tokens_of_rank.value_or(0) > capacity) {
    pool.error(pool.where("max_tokens"),
               fmt::format("'max_tokens' is {}, a rank holds {}", count_text(*tokens_of_rank), count_text(capacity)),
               "use a larger capacity, or leave it out");
  }
  return tokens_of_rank.value_or(capacity) * cp;
}

}  // namespace hdpsim
