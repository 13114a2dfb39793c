#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/planner.h"

namespace hdpsim {

/// The speeds of ranks in a step that the planner knows, relative to the device of its work model.
class KnownSpeeds {
 public:
  KnownSpeeds(const PlanningContext& context, std::int64_t step);

  /// Speed by rank. Empty: all are 1.
  [[nodiscard]] const std::vector<double>& by_rank() const { return speeds_; }
  [[nodiscard]] bool differ() const { return !slow_ranks().empty(); }
  /// The ranks slower than the fastest, ascending.
  [[nodiscard]] std::vector<std::int64_t> slow_ranks() const;
  /// The total speed of the pool, which has `ranks` ranks, in ranks of nominal speed.
  [[nodiscard]] double sum(std::int64_t ranks) const;
  /// The speed of the slowest of `ranks`, which sets the pace of a ring.
  [[nodiscard]] double slowest(const std::vector<std::int64_t>& ranks) const;

 private:
  std::vector<double> speeds_;
};

}  // namespace hdpsim
