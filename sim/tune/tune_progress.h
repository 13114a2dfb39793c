#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace hdpsim {

/// What steps have taken, by the clock, from the end of one to the end of the next.
struct MeasuredSteps {
  double seconds = 0;
  std::int64_t steps = 0;
  void add(double taken_s, std::int64_t count) {
    seconds += taken_s;
    steps += count;
  }
  [[nodiscard]] double mean_s() const { return steps > 0 ? seconds / static_cast<double>(steps) : 0; }
};

/// Steps of one kind that a tuning has computed, that it is expected to compute in all (Forecast), and what those have
/// taken that it did not find in a journal.
struct TuneWork {
  std::int64_t done = 0;
  std::int64_t expected = 0;
  MeasuredSteps measured{};
  [[nodiscard]] std::int64_t left() const { return std::max<std::int64_t>(0, expected - done); }
};

/// By kind: of plans alone, in closed form, in full, and in full where the closed form is known, which may be the same.
using TuneWorks = std::array<TuneWork, 4>;

/// The progress of a tuning.
struct TuneProgress {
  std::string stage;
  std::int64_t candidates = 0;
  std::int64_t left = 0;   ///< Candidates that are still in the running.
  std::int64_t steps = 0;  ///< Simulated so far, in any fidelity.
  TuneWorks work{};

  /// The time that it still takes, at what its steps of each kind have taken so far; a kind that has not been measured
  /// counts as the costliest of those that have. Empty before the first measurement.
  [[nodiscard]] std::optional<double> seconds_left() const;
  /// What is done of most(): milliseconds at these times, or steps before the first measurement.
  [[nodiscard]] std::int64_t done() const;
  [[nodiscard]] std::int64_t most() const;

 private:
  [[nodiscard]] double costliest_s() const;
  template <class Count>
  [[nodiscard]] double total(const Count& count, double unmeasured) const;
};

// Inline: a program without tunings shows their progress, too.

inline double TuneProgress::costliest_s() const {
  double most = 0;
  for (const TuneWork& each : work) most = std::max(most, each.measured.mean_s());
  return most;
}

// The counts of all kinds, each at what a step takes.
template <class Count>
double TuneProgress::total(const Count& count, double unmeasured) const {
  double sum = 0;
  for (const TuneWork& each : work) {
    const double step = each.measured.seconds > 0 ? each.measured.mean_s() : unmeasured;
    sum += step * static_cast<double>(count(each));
  }
  return sum;
}

inline std::optional<double> TuneProgress::seconds_left() const {
  const double costliest = costliest_s();
  if (costliest == 0) return std::nullopt;
  return total([](const TuneWork& each) { return each.left(); }, costliest);
}

inline std::int64_t TuneProgress::done() const {
  const double costliest = costliest_s();
  const auto so_far = [](const TuneWork& each) { return each.done; };
  return std::llround(costliest > 0 ? 1000 * total(so_far, costliest) : total(so_far, 1));
}

inline std::int64_t TuneProgress::most() const {
  const double costliest = costliest_s();
  const auto to_come = [](const TuneWork& each) { return each.left(); };
  return done() + std::llround(costliest > 0 ? 1000 * total(to_come, costliest) : total(to_come, 1));
}

}  // namespace hdpsim
