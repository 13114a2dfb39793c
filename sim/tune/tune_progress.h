#pragma once

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

}  // namespace hdpsim
