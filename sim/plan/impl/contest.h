#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "sim/plan/planner.h"

namespace hdpsim {

/// How much a search for the best plan tries, which is less for larger batches and pools.
struct Effort {
  std::int64_t size;      ///< Sequences and ranks.
  bool is_quick = false;  ///< A little of everything: what is compared needs no more.

  /// How often something is tried whose time grows with the size: `often` times at 4,096, for smaller sizes up to
  /// `most` times, at least twice.
  [[nodiscard]] std::int64_t times(std::int64_t often, std::int64_t most) const {
    return std::clamp<std::int64_t>(often * small / size, 2, is_quick ? few : most);
  }
  [[nodiscard]] std::int64_t times(std::int64_t most) const { return times(most, most); }
  /// Of what grows with the passes of pipelines.
  [[nodiscard]] Effort on_stages(std::int64_t stages) const { return {size * stages, is_quick}; }
  /// Whether the policies of others make plans, some of which take much longer than ours.
  [[nodiscard]] bool asks_others() const { return !is_quick && size <= small; }
  /// Whether also those that take much longer do where they seldom find more.
  [[nodiscard]] bool asks_all_others() const { return !is_quick && size <= small / 32; }
  /// Whether simulated steps decide.
  [[nodiscard]] bool simulates() const { return size <= 4 * small; }
  /// Whether they decide between the last few.
  [[nodiscard]] bool simulates_the_last() const { return size <= 32 * small; }

 private:
  static constexpr std::int64_t small = 4096;
  static constexpr std::int64_t few = 3;
};

/// Plans of one batch that compete. Keeps those that may be the best.
class Contest {
 public:
  /// `context` must outlive it.
  Contest(const PlanningContext& context, const Effort& effort);

  /// Seconds of the shortest plan so far, by the work model.
  [[nodiscard]] double shortest() const { return shortest_; }
  /// Seconds from which on a plan need not be entered.
  [[nodiscard]] double limit() const { return shortest_ * (1 + slack_); }

  /// A plan that leaves more on a rank than it holds takes no part, but for the first. Where no simulated step decides,
  /// neither does one with exchanges that the work model does not know.
  void enter(Plan plan);
  /// The best plan, once. At least one must have been entered.
  [[nodiscard]] Plan take();

 private:
  struct Entry {
    Plan plan;
    double seconds;
    bool is_priced;  ///< The work model knows its time.
  };
  static bool is_shorter(const Entry& a, const Entry& b) { return a.seconds < b.seconds; }

  /// Seconds by the work model and the speeds of ranks that planners know.
  [[nodiscard]] double estimate(const Plan& plan) const;
  /// The same where ranks wait for each other in pipelines and waves, which takes longer to know.
  [[nodiscard]] double estimate_in_order(const Plan& plan) const;
  [[nodiscard]] std::vector<double> speeds_in(std::int64_t step) const;
  [[nodiscard]] bool is_known(const Plan& plan, double seconds) const;
  void enter_checked(Plan plan, double seconds);
  void put_in_order();
  void simulate();
  void simulate_the_least();
  void try_one_way(Entry& best) const;

  const PlanningContext& context_;
  bool in_waves_;
  bool is_quick_;
  bool simulates_;
  bool simulates_the_last_;
  double slack_;  ///< By how much the work model may be wrong about which of two plans is shorter.
  std::int64_t most_simulated_;
  std::vector<Entry> entries_;
  double shortest_ = std::numeric_limits<double>::infinity();
};

}  // namespace hdpsim
