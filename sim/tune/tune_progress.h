#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace hdpsim {

/// Steps that a tuning has computed in one fidelity, and that it is expected to compute in all.
struct TuneWork {
  std::int64_t done = 0;
  std::int64_t expected = 0;
};

/// By Fidelity: of plans alone, in closed form, in full.
using TuneWorks = std::array<TuneWork, 3>;

/// The usual times of steps in each fidelity, in those of a plan.
inline constexpr std::array<std::int64_t, 3> usual_costs_of_steps = {1, 6, 6};

/// The progress of a tuning.
struct TuneProgress {
  std::string stage;
  std::int64_t candidates = 0;
  std::int64_t left = 0;   ///< Candidates that are still in the running.
  std::int64_t steps = 0;  ///< Simulated so far, in any fidelity.
  TuneWorks work{};
  std::size_t works_on = 0;  ///< The fidelity of what has just been computed.
  bool is_new = true;        ///< It was computed, and not taken from a journal.

  /// What is done of most(), in the usual time of a plan.
  [[nodiscard]] std::int64_t done() const;
  [[nodiscard]] std::int64_t most() const;
};

/// The size of a search.
struct TuneSize {
  std::int64_t candidates = 0;  ///< Without those of Refinement.
  std::int64_t policies = 1;
  std::int64_t places = 1;  ///< TuneOptions::keep.
  std::int64_t steps = 1;
};

/// Steps that a search of this size usually computes, by fidelity.
[[nodiscard]] std::array<std::int64_t, 3> usual_steps(const TuneSize& size);

/// The time that a tuning still takes, from what its steps have taken in each fidelity so far.
class TuneTimeLeft {
 public:
  /// `seconds` have passed since the last progress, or since the begin.
  void add(const TuneProgress& progress, double seconds);
  /// A fidelity that has not been measured is assumed to take its usual multiple of those that have. Empty before the
  /// first measurement.
  [[nodiscard]] std::optional<double> seconds() const;

 private:
  struct Measured {
    double seconds = 0;
    std::int64_t steps = 0;
  };
  std::array<Measured, 3> measured_{};
  TuneWorks work_{};
};

// Inline: a program without tunings shows their progress, too.

inline std::int64_t TuneProgress::done() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < work.size(); ++i) sum += usual_costs_of_steps[i] * work[i].done;
  return sum;
}

inline std::int64_t TuneProgress::most() const {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < work.size(); ++i)
    sum += usual_costs_of_steps[i] * std::max(work[i].done, work[i].expected);
  return sum;
}

inline void TuneTimeLeft::add(const TuneProgress& progress, double seconds) {
  const TuneWork& now = progress.work[progress.works_on];
  Measured& measured = measured_[progress.works_on];
  if (progress.is_new) {
    measured.seconds += seconds;
    measured.steps += std::max<std::int64_t>(0, now.done - work_[progress.works_on].done);
  }
  work_ = progress.work;
}

inline std::optional<double> TuneTimeLeft::seconds() const {
  double measured_s = 0;
  double measured_cost = 0;
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    measured_s += measured_[i].seconds;
    measured_cost += static_cast<double>(usual_costs_of_steps[i] * measured_[i].steps);
  }
  if (measured_cost == 0) return std::nullopt;
  double left_s = 0;
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const auto& [seconds, steps] = measured_[i];
    const double usual_s = static_cast<double>(usual_costs_of_steps[i]) * measured_s / measured_cost;
    const double step_s = steps > 0 ? seconds / static_cast<double>(steps) : usual_s;
    left_s += step_s * static_cast<double>(std::max<std::int64_t>(0, work_[i].expected - work_[i].done));
  }
  return left_s;
}

}  // namespace hdpsim
