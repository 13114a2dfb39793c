#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/document/document.h"
#include "sim/plan/impl/shared_options.h"
#include "sim/plan/planner.h"

namespace hdpsim {

/// Checks a policy's options against a pool and a context. What does not fit is reported at the option, or at the
/// policy if the option is not stated.
class PoolFit {
 public:
  /// The arguments must outlive it. `stated`: Policy::stated.
  PoolFit(const Value& stated, const PlanningContext& context, Diagnostics& diagnostics)
      : stated_(stated), context_(context), diagnostics_(diagnostics) {}

  [[nodiscard]] const PlanningContext& context() const { return context_; }
  /// Where a study asks for the policy.
  [[nodiscard]] const Position& position() const { return stated_.position; }
  /// Whether the study states an option.
  [[nodiscard]] bool states(std::string_view option) const { return stated_.find(option) != nullptr; }
  /// The value of an option, or that of the policy if the option is not stated.
  [[nodiscard]] const Value& where(std::string_view option) const;

  /// The degree of context parallelism that option `cp` states: it must divide the pool and hold the context.
  std::int64_t checked_degree(std::int64_t degree);
  /// The smallest divisor of the pool whose ranks hold the context, or hold it with this offload where they do not
  /// without. `option`: the one that asks for it.
  std::int64_t least_degree_that_fits(std::string_view option, const OffloadRule& offload = {});
  /// The smallest divisor of the pool whose ranks hold so many times the context; if there is none, the smallest one
  /// that fits.
  std::int64_t least_degree_with_room(std::int64_t contexts, std::string_view option);
  /// The degree that option `cp` states or, if it is `auto`, the smallest one that fits.
  std::int64_t degree_of(const std::optional<std::int64_t>& cp);
  /// The least degree of a group that option `min_cp` states: it must be a power of two that the pool has.
  std::int64_t least_group(std::int64_t min_cp);
  /// The tokens that a micro-batch on `cp` ranks should have, in policies that derive the number of micro-batches from
  /// tokens, but then balance work, so that a micro-batch of short sequences may have more. `tokens_of_rank`: what a
  /// rank should hold; if empty, its capacity, and an error if more.
  std::int64_t micro_batch_limit(std::int64_t cp, std::optional<std::int64_t> tokens_of_rank);
  /// The whole pool must hold the context.
  void require_room();
  /// Micro-batches that continue others must suit the pipeline and the experts.
  void require_chunks_in_order(const Value& where);
  /// Ranks must be able to attend for each other.
  void require_servers(const Value& where);
  /// The offload rule as far as the cluster and the model support it.
  OffloadRule allowed(const OffloadRule& stated);
  /// The same; with it the pool must hold the context.
  OffloadRule fitting(const OffloadRule& stated);

  void error(const Value& where, std::string message, std::string help);

 private:
  [[nodiscard]] std::int64_t least_ranks_for_context(std::int64_t tokens_per_rank) const;
  [[nodiscard]] std::vector<std::int64_t> divisors() const;
  [[nodiscard]] std::string divisors_text() const;
  void require_movable_layers(const Value& value);
  void does_not_fit(const Value& where, std::int64_t tokens_per_rank);

  const Value& stated_;
  const PlanningContext& context_;
  Diagnostics& diagnostics_;
};

}  // namespace hdpsim
