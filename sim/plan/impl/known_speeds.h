#pragma once

#include <cstdint>
#include <vector>

#include "sim/plan/planner.h"

namespace hdpsim {

/// How fast the planner knows ranks to be in a step, relative to the device of its work model.
class KnownSpeeds {
 public:
  KnownSpeeds(const PlanningContext& context, std::int64_t step);

  /// Empty: all are 1.
  [[nodiscard]] const std::vector<double>& by_rank() const { return speeds_; }
  [[nodiscard]] bool differ() const { return !slow_ranks().empty(); }
  /// Those slower than the fastest, ascending.
  [[nodiscard]] std::vector<std::int64_t> slow_ranks() const;
  /// Ranks of nominal speed that would do the same in the same time.
  [[nodiscard]] double sum(std::int64_t ranks) const;
  /// A ring goes at the pace of its slowest rank.
  [[nodiscard]] double slowest(const std::vector<std::int64_t>& ranks) const;

 private:
  std::vector<double> speeds_;
};

}  // namespace hdpsim
